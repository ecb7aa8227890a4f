"""Does each citation name the section in which its quote stands? Real answers, checked against the files.

    .venv/bin/python bench/citations.py EVAL_FOLDER …      each with `md/` and `queries.jsonl`

The section is found anew, by a Markdown parser over the lesson's text and the place of the quote.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
from bisect import bisect_right
from pathlib import Path

from markdown_it import MarkdownIt

from askbook.answer.ask import get_reply
from askbook.book.reader import read_book, read_lessons
from askbook.book.sections import Anchors, clean_heading
from askbook.domain import Answer, Filters, Question, Source
from askbook.settings import Settings
from askbook.wiring import open_askbook

ANSWERS = 50
PARSER = MarkdownIt("commonmark").enable("table")


def find_sections(text: str, body_start: int) -> tuple[list[int], list[tuple[str, str]]]:
    """Where each heading of a page begins, and its title and anchor."""
    starts, named = [0], [("", "")]
    lines = [0]
    for line in text.split("\n"):
        lines.append(lines[-1] + len(line) + 1)
    first = text.count("\n", 0, body_start)
    anchors = Anchors()
    tokens = PARSER.parse(text[body_start:])
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.map and token.level == 0:
            raw = tokens[at + 1].content
            starts.append(lines[first + token.map[0]])
            named.append((clean_heading(raw), anchors.take(raw)))
    return starts, named


def is_right(source: Source, sections: tuple[list[int], list[tuple[str, str]]]) -> bool:
    chunk = source.passage.chunk
    title, anchor = sections[1][bisect_right(sections[0], source.start) - 1]
    # The page's own title and what stands above every heading are the page itself.
    is_page = not chunk.section_title and sections[1].index((title, anchor)) <= 1
    return is_page or (chunk.section_title == title and chunk.url.endswith(f"#{anchor}"))


async def measure(folder: Path, home: Path) -> tuple[int, int, int]:
    book_folder = folder / "md"
    lessons = read_lessons(book_folder, read_book(book_folder))[0]
    sections = {one.source_file: find_sections(one.text, one.body_start) for one in lessons}
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    questions = [one["question"] for one in asked if one.get("answerable", True) and 10 <= len(one["question"]) <= 300]
    random.Random(7).shuffle(questions)
    answers = right = cited = 0
    settings = Settings.model_validate({"askbook_home": home, "askbook_embedder": "none"})
    async with open_askbook(settings) as askbook:
        job = await askbook.jobs.submit(read_book(book_folder).book_id, str(book_folder), "incremental")
        await askbook.worker.run_job(job.job_id)
        book_id = (await askbook.ledger.load_books())[0].book_id
        for question in questions:
            reply = (await get_reply(askbook.ask(Question(question, Filters(book_id))))).reply
            if not isinstance(reply, Answer) or not reply.sources:
                continue
            answers += 1
            for source in reply.sources:
                cited += 1
                if is_right(source, sections[source.passage.chunk.source_file]):
                    right += 1
                else:
                    print(f"  {source.passage.chunk.source_file}: {source.title} · {source.quote[:60]!r}")
            if answers == ANSWERS:
                break
    return answers, cited, right


def main(folders: list[str]) -> None:
    print("| book | answers | citations | section right |\n|---|---|---|---|")
    for folder in map(Path, folders):
        with tempfile.TemporaryDirectory() as home:
            answers, cited, right = asyncio.run(measure(folder, Path(home)))
        print(f"| {folder.name} | {answers} | {cited} | {right} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
