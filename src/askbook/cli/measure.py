"""`askbook eval`: ask known questions, and tell how often the right page was found and the right thing said."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn
from rich.table import Table as RichTable
from rich.text import Text

from askbook.cli.book import progress_bars
from askbook.cli.render import clean, err, out, progress_bar
from askbook.cli.running import choose_book, run_async
from askbook.errors import InputError
from askbook.evals.figures import Changes, Figures, build_figures
from askbook.evals.report import load_last_run, to_json, write_junit, write_report
from askbook.evals.run import SetRun, ask_set, ingest_set, set_home, settings_of_set
from askbook.evals.sets import check_lessons, load_questions, load_set
from askbook.evals.tables import build_tables, tell_check
from askbook.settings import Settings, load_settings
from askbook.wiring import open_askbook

CHANGES_SHOWN = 10


def evaluate(
    targets: Annotated[
        list[Path], typer.Argument(metavar="TARGET…", help="A questions.yaml for your own book, or folders of sets.")
    ],
    book: Annotated[
        str | None, typer.Option(help="The book that a questions.yaml asks; needed when there are several.")
    ] = None,
    out_folder: Annotated[
        Path, typer.Option("--out", help="Folder for figures.json, run.jsonl and report.html.")
    ] = Path("askbook-eval"),
    junit: Annotated[Path | None, typer.Option(help="Write a JUnit file, a test case for each question.")] = None,
    fail_under: Annotated[
        float,
        typer.Option(
            help="Exit 1 when a smaller share of a set's questions passes. One passes when a lesson that answers it is "
            "among the first five passages and it is not refused; one that is not in the book, when it is refused.",
            min=0,
            max=1,
        ),
    ] = 0.0,
    model: Annotated[
        bool, typer.Option("--model", help="Let the configured model answer; else the book's own sentences do.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Ask only so many questions of each kind and form, the same ones each time."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Ask known questions, and measure how well the book answers them: a table, a report, a check for CI."""
    settings = load_settings()
    if not model:
        settings = settings.model_copy(update={"askbook_answerer": "extractive"})
    runs = [run_async(_measure(settings, target, book, sample)) for target in targets]
    for run in runs:
        if run.chosen.notice:
            err.say(f"{run.name}: {run.chosen.notice}")
    figures = build_figures(runs, load_last_run(out_folder))
    write_report(out_folder, figures, runs)
    if junit is not None:
        write_junit(junit, runs)
    if as_json:
        sys.stdout.write(to_json(figures))
    else:
        _print_figures(figures, out_folder)
    below = [
        measured for measured in figures.sets if measured.check.share is not None and measured.check.share < fail_under
    ]
    for measured in below:
        told = f"{measured.name}: {measured.check.share:.3f} of the questions passed, fewer than {fail_under:g}"
        err.say(told, style="bold red")
    raise typer.Exit(bool(below))


async def _measure(settings: Settings, target: Path, book: str | None, sample: int | None) -> SetRun:
    """Asks a set, which brings its own book along, or a file of questions to a book that is there."""
    if target.is_dir():
        eval_set = load_set(target, set_home(settings, target.resolve().name))
        settings = settings_of_set(settings, eval_set.name)
    elif target.suffix.lower() in (".yaml", ".yml"):
        eval_set = load_questions(target)
    else:
        raise InputError(f"{target} is neither a folder nor a .yaml file", "Give a questions.yaml or a set's folder.")
    async with open_askbook(settings) as askbook:
        for notice in askbook.notices:
            err.print(notice)
        if target.is_dir():
            book_id = eval_set.name
            with progress_bars() as watch:
                await ingest_set(askbook, eval_set, watch)
        else:
            book_id = (await choose_book(askbook.ledger, book)).book_id
            check_lessons(eval_set, await askbook.ledger.load_records(book_id))
        # Drawn seldom, because the CPU of this process is measured.
        with progress_bar(MofNCompleteColumn(), refreshes=1) as progress:
            task = progress.add_task(clean(eval_set.name), total=None)
            asked = eval_set.take_sample(sample) if sample else eval_set

            def tick(done: int, total: int) -> None:
                progress.update(task, completed=done, total=total)

            return await ask_set(askbook, asked, book_id, tick)


# --- what the terminal shows


def _print_figures(figures: Figures, folder: Path) -> None:
    for told in build_tables(figures):
        table = RichTable(box=None, pad_edge=False)
        for head in (*told.texts, *told.numbers):
            table.add_column(head, justify="left" if head in told.texts else "right")
        for row in told.rows:
            table.add_row(*(Text(clean(cell)) for cell in row), style="bold" if row[0] else "")
        out.print(table)
        out.print()
    for measured in figures.sets:
        if measured.left_out:
            sample = f"a sample of {measured.questions} questions, {measured.left_out} were left out"
            out.say(f"{measured.name}: {sample}")
        if measured.check.questions:
            out.say(tell_check(measured.name, measured.check))
    _show_changes(figures.changes)
    out.say(f"The report: {folder / 'report.html'}")


def _show_changes(changes: Changes) -> None:
    if not changes.compared:
        return
    right, wrong = changes.became_right, changes.became_wrong
    out.print(f"Since the last run: {len(right)} became right, {len(wrong)} became wrong, of {changes.compared}.")
    for sign, keys in (("+", right), ("-", wrong)):
        for where, name in keys[:CHANGES_SHOWN]:
            out.say(f"  {sign} {where}: {name}")
