"""Commands for the Hugging Face Hub: ``qabench build``, ``publish`` and ``results``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
from typer import Argument, Exit, Option

from qabench.cli.options import (
    AsJson,
    BenchmarkNames,
    ConfigNames,
    Scores,
    SkipMissing,
    output_folder,
)
from qabench.cli.output import (
    plain_warnings,
    print_json,
    print_table,
    progress_bar,
    say,
    say_on_stderr,
    warn,
)
from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError
from qabench.io.files import write_text
from qabench.io.redaction import write_document
from qabench.io.tables import Table

if TYPE_CHECKING:
    from qabench.hub.build import Built
    from qabench.hub.publish import Published
    from qabench.hub.staging import Repository

Files = dict[str, list[EvalResultEntry]]
Framework = Annotated[
    str,
    Option(
        help="The framework of the tasks in each dataset's eval.yaml: `inspect-ai`, or `qabench` for all official "
        "scores. The Hub accepts `qabench` only after adding it to its list of frameworks."
    ),
]


def build(
    out: Annotated[
        Path,
        Argument(
            metavar="OUT",
            file_okay=False,
            callback=output_folder,
            help="Write each repository to OUT/BENCHMARK.",
        ),
    ],
    benchmarks: BenchmarkNames = None,
    config: ConfigNames = None,
    skip_missing: SkipMissing = False,
    framework: Framework = "inspect-ai",
    as_json: AsJson = False,
) -> None:
    """Write Hub-ready dataset repositories: Parquet files, card, eval.yaml, manifest.

    The output is reproducible byte for byte. A folder that qabench did not write is never replaced.
    Exit code: 0 all configs were built; 1 the data of a config is missing or damaged; 2 wrong
    usage.
    """
    import datasets

    from qabench.hub.build import build as build_all

    # One bar for all repositories is shown instead.
    datasets.disable_progress_bars()
    with progress_bar("Building", "configs") as progress:
        repositories = build_all(
            out, benchmarks or [], config or [], framework=framework, progress=progress
        )
    if as_json:
        print_json({"repositories": [repository.as_dict() for repository in repositories]})
    else:
        _print_built(repositories, skip_missing)
    for repository in repositories:
        if repository.restriction:
            warn(f"do not upload {repository.path}: {repository.restriction}")
    if any(repository.missing for repository in repositories) and not skip_missing:
        raise Exit(1)


def _print_built(repositories: list[Built], skip_missing: bool) -> None:
    columns = ["repository", "configs", "rows", "bytes"]
    cells = []
    for built in repositories:
        n_rows = 0
        for rows_by_split in built.rows.values():
            n_rows += sum(rows_by_split.values())
        cells.append([str(built.path), len(built.rows), n_rows, built.size])
    hint = 'load one: datasets.load_dataset("OUT/BENCHMARK", "CONFIG")'
    print_table(Table("Built", columns, cells, [hint]))
    for built in repositories:
        if built.missing:
            missing = ", ".join(built.missing)
            fix = "run `qabench fetch` with network access, or set QABENCH_MIRROR"
            if not skip_missing:
                fix += "; or use --skip-missing"
            say_on_stderr(f"{built.benchmark}: no data for {missing}: {fix}", "red")


def publish(
    what: Annotated[
        Literal["datasets", "metrics", "all"],
        Argument(metavar="WHAT", help="datasets, metrics, or all."),
    ],
    org: Annotated[
        str, Option(metavar="ORG", help="The organization or user that will own the repositories.")
    ],
    benchmark: Annotated[
        list[str] | None, Option(help="Only this benchmark and its metrics. May be repeated.")
    ] = None,
    private: Annotated[bool, Option("--private", help="Make new repositories private.")] = False,
    dry_run: Annotated[
        bool,
        Option(
            "--dry-run", help="Build, check and compare, but send nothing. --json lists the files."
        ),
    ] = False,
    accept_licenses: Annotated[
        bool,
        Option(
            "--accept-licenses",
            help="Confirm that you have read and accept the licenses of the data.",
        ),
    ] = False,
    skip_missing: Annotated[
        bool,
        Option(
            "--skip-missing",
            help="Publish datasets without the configs whose data is not available.",
        ),
    ] = False,
    unreleased: Annotated[
        bool,
        Option(
            "--unreleased",
            help="Publish a version that is not on PyPI. Spaces then install the wheel that they contain.",
        ),
    ] = False,
    framework: Framework = "inspect-ai",
    output: Annotated[
        Path | None,
        Option(
            file_okay=False,
            metavar="DIR",
            callback=output_folder,
            help="Write the repositories to this new folder, with all files as they are sent. Use it with --dry-run "
            "to review them first.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Publish the datasets and metrics to the Hugging Face Hub, each checked first.

    A dataset is published if its rows equal the rows of the source files, a metric if the example
    in its card gives the stated results. Files that are already on the Hub are not uploaded again,
    so the command can be repeated after an error. The token comes from `hf auth login` or HF_TOKEN.
    Datasets that must not be redistributed are skipped. Exit code: 0 nothing failed; 1 a repository
    was not published, because a check or a request failed; 2 wrong usage, or the licenses were not
    accepted.
    """
    import datasets
    from huggingface_hub.utils.tqdm import disable_progress_bars

    from qabench.hub.publish import publish as publish_all

    # One bar for all repositories is shown instead.
    datasets.disable_progress_bars()
    disable_progress_bars()
    with progress_bar("Checking" if dry_run else "Publishing", "repositories") as progress:
        published = publish_all(
            what,
            org,
            names=benchmark or (),
            private=private,
            dry_run=dry_run,
            accept_licenses=accept_licenses,
            skip_missing=skip_missing,
            unreleased=unreleased,
            framework=framework,
            output=output,
            progress=progress,
        )
    if as_json:
        print_json(published.as_dict())
    else:
        _print_published(published)
    if not published.ok:
        raise Exit(1)


def _print_published(published: Published) -> None:
    columns = ["repository", "kind", "state", "files", "bytes", "commit"]
    title = f"Published at {published.endpoint}"
    if published.dry_run:
        title = f"To be published at {published.endpoint}"
    notes = []
    if published.output:
        notes.append(f"the files are in {published.output}")
    rows = list(map(_outcome_cells, published.repositories))
    print_table(Table(title, columns, rows, notes))
    for outcome in published.repositories:
        if outcome.missing and outcome.state != "failed":
            missing = ", ".join(outcome.missing)
            say(
                f"{outcome.repo_id} (dataset): without {missing}, whose data is not available",
                "yellow",
            )
        if outcome.reason:
            text = f"{outcome.repo_id} ({outcome.kind}): {outcome.reason}"
            if outcome.state == "failed":
                say_on_stderr(text, "red")
            else:
                say(text, "yellow")


def _outcome_cells(outcome: Repository) -> list[Any]:
    size = sum(digest["size"] for digest in outcome.files.values())
    return [
        outcome.repo_id,
        outcome.kind,
        outcome.state,
        len(outcome.files),
        size,
        (outcome.commit or "")[:8],
    ]


def results(
    reports: Annotated[
        list[Path],
        Argument(
            metavar="REPORT...",
            help="Logs of runs, folders of logs, or files written by `qabench score` or `qabench run` with --output.",
        ),
    ],
    scores: Scores = None,
    setting: Annotated[
        str | None,
        Option(
            help="How the model answered, such as closed-book. Required for reports on files of predictions."
        ),
    ] = None,
    dataset: Annotated[
        str | None, Option(metavar="ID", help="The dataset on the Hub. Default: qabench/BENCHMARK.")
    ] = None,
    dataset_revision: Annotated[
        str | None,
        Option(
            metavar="COMMIT",
            help="The commit of the dataset on the Hub with the data that was scored. Default with --push: the current "
            "commit, if it has the same data.",
        ),
    ] = None,
    source_url: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="A link to the evaluation, such as its logs: https://... or http://...",
        ),
    ] = None,
    allow_unofficial: Annotated[
        bool,
        Option(
            "--allow-unofficial", help="Accept unofficial scores. The notes state the deviations."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            callback=output_folder,
            help="Write the files to DIR, such as a clone of the model's repository.",
        ),
    ] = None,
    push: Annotated[
        str | None,
        Option(metavar="MODEL_ID", help="Open a pull request for this model on the Hub."),
    ] = None,
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="Print what --output and --push would write and send, and exit."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Convert scores to `.eval_results/*.yaml` for a model's repository on the Hub.

    The files are printed, written with --output, or sent as a pull request with --push. An open
    pull request of the same user with the same title is updated. Each entry is one score. Without
    --scores, there is one for each score that the benchmark's authors report. The notes of an entry
    contain n, the 95% interval, the deviations from the official score and the signature.
    """
    from qabench.hub import results as hub_results
    from qabench.hub.client import check_name

    about = hub_results.About(setting, dataset, dataset_revision, source_url, allow_unofficial)
    if push:
        check_name("the model", push, "ORG/NAME")

    # Make the entries of all reports, by their path in the model's repository.
    files: Files = {}
    for path in reports:
        with plain_warnings():
            documents = hub_results.read_reports(path)
        for report in documents:
            if push and (other := hub_results.other_model(report, push)):
                warn(f"{path} is about the model {other}, not {push}")
            new = hub_results.entries(report, about, scores)
            present = files.setdefault(hub_results.path_of(report, about), [])
            repeated = {entry.task_id for entry in present} & {entry.task_id for entry in new}
            if repeated:
                raise InputError(
                    f"{path} and an earlier report both have {', '.join(sorted(repeated))}: give one report per setting"
                )
            if push:
                # Only --push needs the Hub, which is asked for the revisions.
                new = hub_results.with_revisions(new, report)
            present += new
    if not files:
        # The warnings printed above say which files in folders were left out.
        raise InputError(f"nothing to convert in {', '.join(map(str, reports))}")
    # Create all texts before the first file is written, so that an error does not leave only some
    # files updated.
    texts = {}
    if output:
        for name, entries in files.items():
            path = output / name
            old = path.read_bytes() if path.is_file() else b""
            texts[path] = hub_results.to_yaml(entries, old, path)

    # Write and send them.
    pull_request = None
    if not dry_run:
        for path, text in texts.items():
            write_text(path, text)
        if push:
            pull_request = hub_results.push(push, files)

    # Print what was done, or what --dry-run would do.
    yaml_texts = {name: hub_results.to_yaml(entries) for name, entries in files.items()}
    planned = list(map(str, texts))
    written = [] if dry_run else planned
    if as_json:
        rows = {name: eval_result_entries_to_yaml(entries) for name, entries in files.items()}
        document: Json = {"files": rows, "written": written}
        document |= {"model": push, "pull_request": pull_request}
        if dry_run:
            document |= {"dry_run": True, "would_write": planned}
        print_json(document)
    elif dry_run:
        _print_entries(yaml_texts, [], None, None)
        for name in planned:
            say(f"--dry-run: would write {name}")
        if push:
            say(f"--dry-run: would send {', '.join(files)} to {push}")
    else:
        _print_entries(yaml_texts, written, push, pull_request)
    if push:
        # Without --push, the command does not need the Hub.
        _say_where_shown(files)


def _say_where_shown(files: Files) -> None:
    """Say which of the entries the leaderboards of their datasets will show."""
    from qabench.hub.leaderboards import shown_tasks

    task_ids: dict[str, list[str]] = {}
    for entries in files.values():
        for entry in entries:
            task_ids.setdefault(entry.dataset_id, []).append(str(entry.task_id))
    for dataset, ids in task_ids.items():
        try:
            shown = shown_tasks(dataset)
        except QabenchError as error:
            note = (
                f"could not check which leaderboards of {dataset} will show these scores: {error}"
            )
            say_on_stderr(note, "dim")
            continue
        on_leaderboards = [id for id in ids if id in shown]
        if on_leaderboards:
            note = f"scores that leaderboards of {dataset} will show: {', '.join(on_leaderboards)}"
            say_on_stderr(note, "dim")
        if missing := len(ids) - len(on_leaderboards):
            note = (
                f"{missing} of {len(ids)} scores are only on the model's page: "
                f"eval.yaml of {dataset} has no such task"
            )
            say_on_stderr(note, "dim")


def _print_entries(
    documents: dict[str, str], written: list[str], model: str | None, pull_request: str | None
) -> None:
    for path in written:
        say(f"Wrote {path}")
    if model and pull_request:
        say(f"Sent as {pull_request}")
    elif model:
        say(f"{model} already has these results: no pull request was opened")
    if not written and not model:
        # Nothing was written or sent, so the files themselves are the output.
        for path, text in documents.items():
            write_document(f"# {path}\n{text}")
