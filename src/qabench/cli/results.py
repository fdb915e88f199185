"""``qabench results``: scores as entries of ``.eval_results``, which the Hub shows on a model's page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qabench.errors import InputError

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

    Files = dict[str, list[EvalResultEntry]]


def results(
    reports: Annotated[
        list[Path],
        typer.Argument(
            metavar="REPORT...",
            help="What `qabench score --output FILE` wrote or `evaluate-felm --json` printed, or a run's log.",
        ),
    ],
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this figure, such as acc.loose; may be repeated."),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(help="How the model answered, such as closed-book; needed where the report does not say."),
    ] = None,
    date: Annotated[
        str | None, typer.Option(metavar="DATE", help="Of the evaluation, such as 2026-01-31; by default the report's.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="ID", help="The dataset on the Hub; by default qabench/BENCHMARK.")
    ] = None,
    revision: Annotated[str | None, typer.Option(metavar="REV", help="Commit or tag of that dataset.")] = None,
    source_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the evaluation is found, such as its logs.")
    ] = None,
    source_name: Annotated[str | None, typer.Option(metavar="TEXT", help="How to call that place.")] = None,
    allow_unofficial: Annotated[
        bool, typer.Option("--allow-unofficial", help="Take unofficial scores; their notes say that they are.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write below DIR, such as a clone of the model's repository.")
    ] = None,
    push: Annotated[
        str | None, typer.Option(metavar="MODEL_ID", help="Open a pull request on this model on the Hub.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Turn scores into `.eval_results/*.yaml` for a model's repository: printed, written, or as a pull request.

    Each entry is one number; its notes hold interval, signature, and UNOFFICIAL where that is so.
    """
    from qabench.cli.output import errors
    from qabench.hub.results.eval_push import push as open_pull_request

    given = {"dataset": dataset, "revision": revision} | _source(source_url, source_name)
    files: Files = {}
    for path in reports:
        _add(files, path, figure or [], setting, date, given, allow_unofficial, push)
    written = _write(files, out) if out else []
    pull_request = open_pull_request(push, files) if push else None
    _report(files, written, push, pull_request, as_json)
    errors().print(
        "note: the Hub shows these on the model's page; the dataset's leaderboard takes only the tasks of its "
        "eval.yaml, which a model grades",
        style="dim",
        markup=False,
    )


def _source(url: str | None, name: str | None) -> dict[str, str]:
    if name and not url:
        raise InputError("--source-name names the place that --source-url is the address of: give both")
    return {"source_url": url, "source_name": name or url} if url else {}


def _add(
    files: Files,
    path: Path,
    names: list[str],
    setting: str | None,
    date: str | None,
    given: dict[str, Any],
    allow_unofficial: bool,
    model: str | None,
) -> None:
    from qabench.cli.output import errors
    from qabench.hub.results import eval_reports, eval_results

    log = eval_reports.log_of(path)
    report = _of_run(log) if log else eval_reports.read_report(path)
    stated = eval_reports.setting(report)
    if stated and setting and stated != setting:
        raise InputError(f"{path} is of the setting {stated}, not of {setting}: leave --setting out")
    chosen_setting = stated or setting
    if not chosen_setting:
        raise InputError(f"{path} does not say how the model answered: add --setting closed-book, open-book, ...")
    ran = report.get("model")
    if model and ran and not ran.endswith(model):
        errors().print(f"warning: {path} is of the model {ran}, and goes to {model}", style="yellow", markup=False)
    evaluation = eval_results.Evaluation(
        benchmark=report["benchmark"],
        config=report["config"],
        setting=chosen_setting,
        date=date or report["date"],
        unofficial=eval_reports.unofficial(report),
        remarks=eval_reports.remarks(report),
        **given,
    )
    figures = eval_reports.chosen(eval_reports.figures(report), names, path)
    new = eval_results.entries(figures, evaluation, allow_unofficial=allow_unofficial)
    entries = files.setdefault(eval_results.path(evaluation.benchmark, evaluation.config, chosen_setting), [])
    if again := {entry.task_id for entry in entries} & {entry.task_id for entry in new}:
        raise InputError(
            f"{path} has {', '.join(sorted(again))}, as a report before it: give one report of each setting"
        )
    entries += new


def _of_run(log: Path) -> dict[str, Any]:
    """The report of a run, in the shape of those that are files."""
    from qabench.runs.log import read_header, read_run
    from qabench.runs.results import as_dict

    run, asked = read_run(log), read_header(log).eval.config
    return as_dict(run) | {
        "date": run.created,
        "n": len({record.id for record in run.records if record.scores}),
        "partial": bool(asked.limit or asked.sample_id or run.arguments.get("ids") or run.arguments.get("category")),
    }


def _write(files: Files, out: Path) -> list[str]:
    from qabench.files import write_text
    from qabench.hub.results.eval_results import to_yaml

    texts = {}
    for name, entries in files.items():
        path = out / name
        texts[path] = to_yaml(entries, path.read_text(encoding="utf-8") if path.is_file() else "")
    for path, text in texts.items():
        write_text(path, text)
    return [str(path) for path in texts]


def _report(files: Files, written: list[str], model: str | None, pull_request: str | None, as_json: bool) -> None:
    from huggingface_hub import eval_result_entries_to_yaml

    from qabench.cli.output import console, print_json
    from qabench.hub.results.eval_results import to_yaml

    if as_json:
        shown = {path: eval_result_entries_to_yaml(entries) for path, entries in files.items()}
        print_json({"files": shown, "written": written, "model": model, "pull_request": pull_request})
        return
    out = console()
    for path in written:
        out.print(f"Wrote {path}", markup=False, soft_wrap=True)
    if model and pull_request:
        out.print(f"Opened {pull_request}", markup=False, soft_wrap=True)
    elif model:
        out.print(f"{model} has these results already: no pull request was opened", markup=False, soft_wrap=True)
    if not written and not model:
        for path, entries in files.items():
            print(f"# {path}\n{to_yaml(entries)}", end="")
