"""The questions to books that the reader learns to choose from."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "train"))

import choices


def test_no_book_of_choices_is_trained_on_and_measured() -> None:
    held, trained = list(choices.read_choices(held=True)), list(choices.read_choices(held=False))
    assert len(held) > 500
    assert len(trained) > 10_000
    assert not {one.text for each in held for one in each.excerpts} & {
        one.text for each in trained for one in each.excerpts
    }


def test_what_nobody_has_read_is_neither_an_answer_nor_none() -> None:
    labels = {one.label for each in choices.read_choices(held=False) for one in each.excerpts}
    assert labels == {0.0, choices.UNREAD, choices.PART, 1.0}


def test_a_reader_that_knows_the_answer_picks_it_and_refuses_what_is_absent() -> None:
    excerpt = choices.Excerpt
    asked = choices.Choice("asked", False, (excerpt("elsewhere", 0, choices.UNREAD), excerpt("here", 3, 1.0)))
    absent = choices.Choice("absent", True, (excerpt("near", 0, 0.0),))
    known = [*[asked] * 20, absent]
    labels = np.array([one.label for each in known for one in each.excerpts])
    knows = np.where(labels == 1, 40.0, -40.0)
    told = choices.measure_choices(known, knows, np.zeros(len(labels)))
    assert (told["first answers"], told["absent refused where .05 are refused by mistake"]) == (1.0, 1.0)
    blind = choices.measure_choices(known, np.zeros(len(labels)), np.zeros(len(labels)))
    assert blind["first answers"] == 0.0
