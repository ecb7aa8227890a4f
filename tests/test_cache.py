"""What was read is known again, within bounds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from askbook.cache import Cache, key_of


def test_what_was_used_longest_ago_goes_first() -> None:
    cache: Cache[bytes, int] = Cache(3)
    for n in range(3):
        cache.put(bytes([n]), n)
    assert cache.get(b"\0") == 0
    cache.put(b"new", 9)
    assert cache.get(b"\1") is None
    assert [cache.get(key) for key in (b"\0", b"\2", b"new")] == [0, 2, 9]


def test_a_hundred_thousand_puts_from_eight_threads_stay_within_bounds() -> None:
    cache: Cache[bytes, int] = Cache(50)

    def use(thread: int) -> None:
        for n in range(12_500):
            key = (n * 7 + thread) % 97
            assert cache.put(bytes([key]), key) == key
            assert cache.get(bytes([(n * 5) % 97])) in (None, (n * 5) % 97)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(8)))
    assert len(cache) == 50


def test_keys_tell_texts_apart_wherever_they_are_cut() -> None:
    texts = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("\ud800",), ("?",), ("\0",), ("",)]
    assert len({key_of(*one) for one in texts}) == len(texts)
