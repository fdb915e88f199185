"""``qabench results``: converts scores to ``.eval_results`` entries, which the Hub shows on a model's page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.errors import InputError

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

    from qabench.hub.results import About

    Files = dict[str, list[EvalResultEntry]]


def results(
    reports: Annotated[
        list[Path],
        typer.Argument(
            metavar="REPORT...",
            help="Logs of runs, folders of logs, or files written by `qabench score` or `qabench run` with --output.",
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this metric, such as acc.loose; may be repeated. Default: all metrics that the authors report.",
        ),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(help="How the model answered, such as closed-book. Required for reports of files of predictions."),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Date of the evaluation, such as 2026-01-31. Default: the report's."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="ID", help="The dataset on the Hub. Default: qabench/BENCHMARK.")
    ] = None,
    revision: Annotated[str | None, typer.Option(metavar="REV", help="Commit or tag of that dataset.")] = None,
    source_url: Annotated[
        str | None, typer.Option(metavar="URL", help="A link to the evaluation, such as its logs.")
    ] = None,
    source_name: Annotated[str | None, typer.Option(metavar="TEXT", help="The text of that link.")] = None,
    allow_unofficial: Annotated[
        bool,
        typer.Option("--allow-unofficial", help="Accept unofficial scores; the notes state the deviations."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the files to DIR, such as a clone of the model's repository."),
    ] = None,
    push: Annotated[
        str | None, typer.Option(metavar="MODEL_ID", help="Open a pull request on this model on the Hub.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Convert scores to `.eval_results/*.yaml` for a model's repository: printed, written, or as a pull request.

    Each entry is one score. Its notes contain n, the 95% interval, the deviations from the official score and the
    signature.
    """
    from qabench.cli.output import plain_warnings, say_on_stderr
    from qabench.hub.results import About, read_reports
    from qabench.hub.results import push as open_pull_request

    about = About(
        setting, date, dataset, revision, **_source(source_url, source_name), allow_unofficial=allow_unofficial
    )
    files: Files = {}
    for path in reports:
        with plain_warnings():
            found = read_reports(path)
        for report in found:
            _warn_of_another_model(path, report.get("model"), push)
            _add(files, path, report, about, metric or [])
    written = _write(files, output) if output else []
    pull_request = open_pull_request(push, files) if push else None
    _report(files, written, push, pull_request, as_json)
    say_on_stderr(
        "note: the Hub shows these scores on the model's page; the dataset's leaderboard shows only the tasks of its "
        "eval.yaml, which are graded by a model",
        "dim",
    )


def _source(url: str | None, name: str | None) -> dict[str, Any]:
    if name and not url:
        raise InputError("--source-name needs --source-url")
    return {"source_url": url, "source_name": name or url} if url else {}


def _warn_of_another_model(path: Path, ran: str | None, model: str | None) -> None:
    from qabench.cli.output import warn

    if model and ran and not ran.endswith(model):
        warn(f"{path} is about the model {ran}, not {model}")


def _add(files: Files, path: Path, report: Mapping[str, Any], about: About, metrics: list[str]) -> None:
    from qabench.hub.results import entries, path_of

    new = entries(report, about, metrics)
    present = files.setdefault(path_of(report, about), [])
    if again := {entry.task_id for entry in present} & {entry.task_id for entry in new}:
        raise InputError(
            f"{path} and an earlier report both have {', '.join(sorted(again))}: give one report per setting"
        )
    present += new


def _write(files: Files, out: Path) -> list[str]:
    from qabench.hub.results import to_yaml
    from qabench.io.files import write_text

    texts = {}
    for name, entries in files.items():
        path = out / name
        try:
            old = path.read_text(encoding="utf-8") if path.is_file() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read {path}: {error}") from None
        texts[path] = to_yaml(entries, old, path)
    for path, text in texts.items():
        write_text(path, text)
    return [str(path) for path in texts]


def _report(files: Files, written: list[str], model: str | None, pull_request: str | None, as_json: bool) -> None:
    from huggingface_hub import eval_result_entries_to_yaml

    from qabench.cli.output import print_json, say
    from qabench.hub.results import to_yaml
    from qabench.io.terminal import write_document

    if as_json:
        shown = {path: eval_result_entries_to_yaml(entries) for path, entries in files.items()}
        print_json({"files": shown, "written": written, "model": model, "pull_request": pull_request})
        return
    for path in written:
        say(f"Wrote {path}")
    if model and pull_request:
        say(f"Opened {pull_request}")
    elif model:
        say(f"{model} already has these results: no pull request was opened")
    if not written and not model:
        for path, entries in files.items():
            write_document(f"# {path}\n{to_yaml(entries)}")
