"""Does each citation name the section in which its quote stands, and does its page mark all that the answer shows?

    .venv/bin/python bench/citations.py EVAL_FOLDER …      each with `md/` and `queries.jsonl`

Real answers, checked against the files. The section is found anew, by a Markdown parser over the lesson's text and the
place of the quote. What is marked is read off the reader's page, word by word.
"""

from __future__ import annotations

import asyncio
import html
import json
import random
import re
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from askbook.answer.ask import get_reply
from askbook.api.lesson_text import rebuild_text, render_lesson
from askbook.book.reader import read_book, read_lessons
from askbook.book.sections import Anchors, clean_heading
from askbook.domain import Answer, Chunk, Filters, Question, Source
from askbook.settings import Settings
from askbook.wiring import open_askbook

ANSWERS = 50
PARSER = MarkdownIt("commonmark").enable("table")


def find_sections(text: str, body_start: int, style: str) -> tuple[list[int], list[tuple[str, str]]]:
    """Where each heading of a page begins, and its title and anchor, as its generator makes them."""
    starts, named = [0], [("", "")]
    lines = [0]
    for line in text.split("\n"):
        lines.append(lines[-1] + len(line) + 1)
    first = text.count("\n", 0, body_start)
    anchors = Anchors(style)
    tokens = PARSER.parse(text[body_start:])
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.map and token.level == 0:
            raw = re.sub(r"(?<!`)\{[\w:]+\}`([^`<]+?)(?: <[^`<>]*>)?`", r"\1", tokens[at + 1].content)
            starts.append(lines[first + token.map[0]])
            named.append((clean_heading(raw), anchors.take(raw)))
    return starts, named


def is_right(source: Source, sections: tuple[list[int], list[tuple[str, str]]]) -> bool:
    """Of the source itself, and of each place that it quotes."""
    chunk = source.passage.chunk
    named = [(source.start, source.title, chunk.url), *((one.start, one.section, one.url) for one in source.quotes)]
    return all(
        (name, url) == (chunk.at(start).name, chunk.at(start).url) and _is_there(start, chunk.at(start), sections)
        for start, name, url in named
    )


def _is_there(start: int, chunk: Chunk, sections: tuple[list[int], list[tuple[str, str]]]) -> bool:
    title, anchor = sections[1][bisect_right(sections[0], start) - 1]
    # The page's own title and what stands above every heading are the page itself.
    is_page = not chunk.section_title and sections[1].index((title, anchor)) <= 1
    return is_page or (chunk.section_title == title and chunk.url.endswith(f"#{anchor}"))


@dataclass
class Figures:
    answers: int = 0
    cited: int = 0
    right: int = 0
    shown: int = 0
    """Words of the answers, and how many of them the page marks."""
    marked: int = 0
    whole: int = 0
    """Citations all of whose words are marked."""


def read_words(page: str) -> Counter[str]:
    """Without the language that is named above a listing."""
    text = re.sub('<div class="code-head">.*?</div>|<[^>]*>', " ", page)
    return Counter(re.findall(r"\w+", html.unescape(text)))


def count_marked(figures: Figures, answer: Answer, source: Source, lesson: list[Chunk]) -> None:
    said = Counter[str]()
    for one in answer.statements:
        if source.number in one.cites:
            said += read_words(render_lesson(re.sub(r"\s*\[\d+\]$", "", one.text), lambda _: None).html)
    rebuilt = rebuild_text(lesson)
    cited = [rebuilt.find((one.start, one.end)) for one in source.quotes]
    page = render_lesson(rebuilt.text, lambda _: None, cited).html
    marked = said & read_words(" ".join(re.findall("<mark>(.*?)</mark>", page, re.DOTALL)))
    figures.shown += said.total()
    figures.marked += marked.total()
    figures.whole += marked == said


async def measure(folder: Path, home: Path) -> Figures:
    book_folder = folder / "md"
    lessons = read_lessons(book_folder, read_book(book_folder))[0]
    sections = {one.source_file: find_sections(one.text, one.body_start, one.anchors) for one in lessons}
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    questions = [one["question"] for one in asked if one.get("answerable", True) and 10 <= len(one["question"]) <= 300]
    random.Random(7).shuffle(questions)
    figures = Figures()
    settings = Settings.model_validate({"askbook_home": home, "askbook_embedder": "none"})
    async with open_askbook(settings) as askbook:
        job = await askbook.jobs.submit(read_book(book_folder).book_id, str(book_folder), "incremental")
        await askbook.worker.run_job(job.job_id)
        book_id = (await askbook.ledger.load_books())[0].book_id
        for question in questions:
            reply = (await get_reply(askbook.ask(Question(question, Filters(book_id))))).reply
            if not isinstance(reply, Answer) or not reply.sources:
                continue
            figures.answers += 1
            for source in reply.sources:
                chunk = source.passage.chunk
                figures.cited += 1
                if is_right(source, sections[chunk.source_file]):
                    figures.right += 1
                else:
                    print(f"  {chunk.source_file}: {source.title} · {source.quote[:60]!r}")
                count_marked(figures, reply, source, await askbook.ledger.load_lesson(book_id, chunk.parent_doc_id))
            if figures.answers == ANSWERS:
                break
    return figures


def main(folders: list[str]) -> None:
    print(
        "| book | answers | citations | section right | words shown | marked | wholly marked |\n"
        "|---|---|---|---|---|---|---|"
    )
    for folder in map(Path, folders):
        with tempfile.TemporaryDirectory() as home:
            one = asyncio.run(measure(folder, Path(home)))
        counts = f"{one.answers} | {one.cited} | {one.right} | {one.shown} | {one.marked / one.shown:.1%} | {one.whole}"
        print(f"| {folder.name} | {counts} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
