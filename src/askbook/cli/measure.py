"""`askbook eval`: ask known questions, and tell how often the right page was found and the right thing said."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn
from rich.table import Table
from rich.text import Text

from askbook.cli.book import progress_bars
from askbook.cli.find import choose_book
from askbook.cli.render import clean, err, out, progress_bar
from askbook.cli.running import run_async
from askbook.errors import InputError
from askbook.evals.figures import Changes, Check, Figures, build_figures
from askbook.evals.measures import Retrieval
from askbook.evals.report import load_last_run, to_json, write_junit, write_report
from askbook.evals.run import ASKBOOK, SetRun, ask_set, ingest_set, set_home, settings_of_set
from askbook.evals.sets import check_lessons, load_questions, load_set
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
    out.print(_to_table(figures))
    if any(measured.trust.bins or measured.trust.auc for measured in figures.sets):
        out.print()
        out.print(_to_trust_table(figures))
    if any(measured.answers for measured in figures.sets):
        out.print()
        out.print(_to_answer_table(figures))
    out.print()
    for measured in figures.sets:
        if measured.left_out:
            sample = f"a sample of {measured.questions} questions, {measured.left_out} were left out"
            out.say(f"{measured.name}: {sample}")
        _show_check(measured.name, measured.check)
    _show_changes(figures.changes)
    out.say(f"The report: {folder / 'report.html'}")


def _start_table(texts: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in (*texts, *numbers):
        table.add_column(name, justify="right" if name in numbers else "left")
    return table


def _to_table(figures: Figures) -> Table:
    table = _start_table(
        ("set", "system"), ("n", "hit@1", "hit@5", "MRR@10", "nDCG@10", "AUC", "p50 ms", "p95 ms", "CPU p95")
    )
    for measured in figures.sets:
        latency = measured.latency
        times = (latency.wall_p50_ms, latency.wall_p95_ms, latency.cpu_p95_ms) if latency else ()
        own = (_number(measured.trust.auc.get("all")), *map(_whole, times))
        _add_rows(table, measured.name, measured.retrieval, own)
        if measured.follow_ups:
            _add_rows(table, "  follow-ups", measured.follow_ups, ())
        if measured.context_dependent:
            _add_rows(table, "  in context", measured.context_dependent, ())
    if len(figures.sets) > 1:
        _add_rows(table, "mean", figures.mean, ())
    return table


def _add_rows(table: Table, name: str, by_system: Mapping[str, Retrieval], own: Sequence[str]) -> None:
    for system, retrieval in by_system.items():
        ours = system == ASKBOOK
        values = (f"{value:.3f}" for value in (retrieval.hit1, retrieval.hit5, retrieval.mrr10, retrieval.ndcg10))
        cells = (clean(name) if ours else "", system, str(retrieval.n), *values, *(own if ours else ()))
        table.add_row(*map(Text, cells), style="bold" if ours else "dim")


def _to_trust_table(figures: Figures) -> Table:
    """How well the confidence tells what the book answers, beside the seed's raw rule; how often answers are right."""
    table = _start_table(
        ("set", "against"),
        (
            *("n", "AUC", "refused", "falsely", "raw: refused", "raw: falsely"),
            *("high right", "medium", "low", "ECE", "answerable", "judged by"),
        ),
    )
    for measured in figures.sets:
        trust = measured.trust
        shown = (trust.levels.get(level) for level in ("high", "medium", "low"))
        levels = ["" if level is None else f"{level[1]:.2f} of {level[0]}" for level in shown]
        errors = (_number(trust.calibration_error), _number(trust.answerable_error))
        rows = [
            (
                kind,
                str(trust.unanswerable.get(kind, "")),
                _number(trust.auc.get(kind)),
                _number(refused),
                _number(trust.false_refusals),
                _number(trust.raw_refused.get(kind)),
                _number(trust.raw_false_refusals),
            )
            for kind, refused in (trust.own_refused or {"": None}).items()
        ]
        _add_group(table, measured.name, rows, (*levels, *errors, trust.judged_by))
    return table


def _to_answer_table(figures: Figures) -> Table:
    """What readers are told: whether it holds the known answer, and where its first citation leads."""
    table = _start_table(("set", "form"), ("n", "holds the answer", "first citation", "verbatim", "words"))
    for measured in figures.sets:
        if answers := measured.answers:
            forms = answers.contained or {"": None}
            rows = [(form, *((str(held[0]), _number(held[1])) if held else ("", ""))) for form, held in forms.items()]
            own = (_number(answers.first_citation), _number(answers.verbatim), _whole(answers.words))
            _add_group(table, measured.name, rows, own)
    return table


def _add_group(table: Table, name: str, rows: Sequence[Sequence[str]], own: Sequence[str]) -> None:
    """The rows of one set; the first of them has its name and the figures that are of the whole set."""
    for at, row in enumerate(rows):
        cells = ("", *row) if at else (name, *row, *own)
        table.add_row(*(Text(clean(cell)) for cell in cells))


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _show_check(name: str, check: Check) -> None:
    if not check.questions:
        return
    reasons = {
        "not among the first five passages": check.missed,
        "refused though the book answers": check.refused,
        "answered though it does not": check.answered,
    }
    told = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count)
    share = f"{check.passed} of {check.questions} questions passed ({check.share:.3f})"
    out.say(f"{name}: {share}{': ' if told else ''}{told}")


def _show_changes(changes: Changes) -> None:
    if not changes.compared:
        return
    right, wrong = changes.became_right, changes.became_wrong
    out.print(f"Since the last run: {len(right)} became right, {len(wrong)} became wrong, of {changes.compared}.")
    for sign, keys in (("+", right), ("-", wrong)):
        for where, name in keys[:CHANGES_SHOWN]:
            out.say(f"  {sign} {where}: {name}")
