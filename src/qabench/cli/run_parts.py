"""The parts of ``qabench run``: start, resume, suites, plans, and the list of options."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from qabench.benchmarks import benchmark as benchmark_of
from qabench.cli.evaluations import print_evaluations, print_notes
from qabench.cli.evaluations import report as report_of
from qabench.cli.output import hint, plain_warnings, print_json, print_table, progress_bar, warn
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.io.files import write_json
from qabench.io.limits import yaml_of
from qabench.io.tables import Table
from qabench.io.terminal import write_line

if TYPE_CHECKING:
    from qabench.benchmarks import Setting
    from qabench.evaluation import Evaluation
    from qabench.llm.client import Prices
    from qabench.runs.running import Watch

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Shown:
    """How the scores are shown: the format of tables, and a file for the JSON report."""

    format: str
    output: Path | None


def start(what: tuple[str, str | None, str], task_args: Options, shown: Shown, watching: Options, how: Options) -> None:
    """Runs (benchmark, setting, model) and prints the scores."""
    with watched(Path(how["log_dir"]), watching) as watch:
        from qabench.runs.running import start as start_run

        log = start_run(*what, task_args=task_args, watch=watch, **how)
    report([log], shown)


def resume(
    log: Path,
    base_url: str | None,
    model_args: Options,
    task_args: Options,
    shown: Shown,
    watching: Options,
    sending: Options,
) -> None:
    """Resume a run and print the scores of the whole run."""
    with watched(log.parent, watching) as watch:
        from qabench.runs.running import resume as resume_run

        new = resume_run(log, base_url=base_url, model_args=model_args, task_args=task_args, watch=watch, **sending)
    report([new], shown)


def run_suite(file: Path, log_dir: Path, shown: Shown, sending: Options) -> None:
    """Runs the suite of a YAML file, prints one row of scores per run, and writes a report of all runs."""
    write_line(f"logs: {log_dir}", sys.stderr)
    with watched(log_dir, {}) as watch:
        from qabench.runs.suite import read_suite
        from qabench.runs.suite import run_suite as run

        logs, unfinished = run(read_suite(file), log_dir, watch=watch, **sending)
    if not watch.total:
        hint(f"nothing was asked: {log_dir} has the logs of all runs")
    evaluations = report(logs, shown)
    _write_page(evaluations, log_dir / "report")
    for name in unfinished:
        warn(f"{name} is not finished; repeat the command to continue it")
    if unfinished:
        raise typer.Exit(1)


def _write_page(evaluations: Sequence[Evaluation], folder: Path) -> None:
    from qabench.report import build_report

    try:
        hint(f"report: {build_report(evaluations, folder)}")
    except MissingExtra as error:
        hint(f"no report: {error}")


def plan(
    name: str,
    setting: str | None,
    model: str,
    task_args: Options,
    asking: Options,
    price: Prices | None,
    format: str,
) -> None:
    """Prints the estimated cost of a run."""
    _needs_inspect()
    from qabench.llm.client import ESTIMATE
    from qabench.runs.plan import plan_run

    with plain_warnings():
        made = plan_run(name, setting, model, task_args, price, **asking)
    if format == "json":
        print_json(made.as_dict() | {"benchmark": name, "model": model})
        return
    rows: list[list[Any]] = [
        ["calls", made.calls],
        ["prompt tokens (estimate)", made.prompt_tokens],
        ["reply tokens (estimate)", made.completion_tokens],
        ["cost (estimate)", "unknown: give --price-in and --price-out" if made.cost is None else f"{made.cost:.4f}"],
    ]
    title = f"Plan of qabench run {name} --model {model}"
    print_table(
        Table(title, ["", "number"], rows, [ESTIMATE, "not counted: further turns in which a model uses tools"]), format
    )


def list_options(name: str, setting: str | None, format: str) -> None:
    """Prints the options for -T, for one setting of a benchmark or for all."""
    from qabench.runs.plan import task_options

    found = benchmark_of(name)
    for one in [found.setting(setting)] if setting else found.settings:
        rows: list[list[Any]] = [[of.name, _default(of.default), of.about] for of in task_options(found, one)]
        title = f"{found.title}, --setting {one.name}: options for -T NAME=VALUE"
        print_table(Table(title, ["option", "default", "description"], rows, _notes(one)), format)


def _notes(setting: Setting) -> list[str]:
    return [setting.about, *([f"Requires: {setting.requires}"] if setting.requires else [])]


def report(logs: list[Path], shown: Shown) -> list[Evaluation]:
    """Prints the scores of logs, and returns their evaluations. Exits with 1 if no question was answered."""
    from qabench.runs.sources import read_evaluations

    read = read_evaluations(logs)
    reports = [report_of(evaluation) for evaluation in read.evaluations]
    document: dict[str, Any] = reports[0] if len(reports) == 1 else {"evaluations": reports}
    if shown.format == "json":
        print_json(document)
    else:
        print_evaluations(read.evaluations, [], shown.format)
    print_notes(read.evaluations, read.notes, shown.format)
    if shown.output:
        _write(shown.output, document, shown.format)
    if not any(one["scores"] for one in reports) and not all(one.unscored for one in read.evaluations):
        raise typer.Exit(1)
    return read.evaluations


def _write(path: Path, document: dict[str, Any], format: str) -> None:
    try:
        write_json(path, document)
    except QabenchError:
        if format != "json":
            print_json(document)  # so that the scores, which may have cost money, are not lost
        raise


@contextmanager
def watched(log_dir: Path, options: Options) -> Iterator[Watch]:
    """A watch that prints the log's path first, then progress."""
    _needs_inspect()
    from qabench.runs.running import Watch

    with plain_warnings(), progress_bar("Questions") as progress:
        yield Watch(
            log_dir,
            on_log=lambda path: write_line(f"log: {path}", sys.stderr),
            on_progress=progress or (lambda done, total: None),
            **options,
        )


def limited(text: str | None) -> int | tuple[int, int] | None:
    """--limit as Inspect takes it. Raises InputError if it is not N or A-B."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    numbers = [int(part) for part in (first, last) if part.isascii() and part.isdecimal() and len(part) < 10]
    if len(numbers) != 1 + bool(dash) or min(numbers) < 1 or numbers != sorted(numbers):
        raise InputError(f"--limit is {text!r}; it must be a number such as 50, or a range such as 51-100")
    # Inspect's ranges begin at 0 and exclude the end.
    return (numbers[0] - 1, numbers[1]) if dash else numbers[0]


def pairs(option: str, given: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE arguments; values are read as YAML, as on Inspect's command line."""
    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InputError(f"{option} is {text!r}; it must be NAME=VALUE")
        try:
            found[name.replace("-", "_")] = yaml_of(value)
        except ValueError as error:
            raise InputError(f"{option} {name}: the value is not valid YAML: {error}") from None
    return found


def _needs_inspect() -> None:
    try:
        import inspect_ai  # noqa: F401
    except ImportError:
        raise MissingExtra('running models needs inspect_ai: pip install "qabench[run]"') from None


def _default(value: Any) -> str:
    return "" if value is None else str(value)
