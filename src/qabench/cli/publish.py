"""``qabench publish``: upload datasets and metrics to the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from qabench.hub.publish import Outcome, Published
    from qabench.io.tables import Table


def publish(
    what: Annotated[Literal["datasets", "metrics", "all"], typer.Argument(help="What to publish.")],
    org: Annotated[str, typer.Option(metavar="ORG", help="The organization or user that will own the repositories.")],
    private: Annotated[bool, typer.Option("--private", help="Make new repositories private.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Build, check and compare; send nothing.")] = False,
    accept_licenses: Annotated[
        bool, typer.Option("--accept-licenses", help="Confirm that you have read and accept the licenses of the data.")
    ] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Publish datasets without the configs whose data is not available.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the files in this new folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Publish the datasets and metrics to the Hugging Face Hub, each checked first.

    A dataset is published if its rows equal those of the source files, a metric if the example of its card gives the
    stated results. Files that are already on the Hub are not uploaded again, so the command can be repeated after an
    error. The token is that of `hf auth login` or HF_TOKEN. Exit code: 0 everything was published; 1 something was not;
    2 wrong usage, or the licenses were not accepted.
    """
    import datasets
    from huggingface_hub.utils.tqdm import disable_progress_bars

    from qabench.cli.output import print_json, progress_bar
    from qabench.hub.publish import publish as publish_all

    datasets.disable_progress_bars()  # replaced by a single bar
    disable_progress_bars()
    with progress_bar("checking" if dry_run else "publishing") as progress:
        published = publish_all(
            what,
            org,
            private=private,
            dry_run=dry_run,
            accept_licenses=accept_licenses,
            skip_missing=skip_missing,
            out=out,
            progress=progress,
        )
    if as_json:
        print_json(published.as_dict())
    else:
        _print(published)
    if not published.ok:
        raise typer.Exit(1)


def _print(published: Published) -> None:
    from qabench.cli.output import print_table, say, say_on_stderr
    from qabench.io.tables import Table

    if published.dry_run:
        for one in published.repositories:
            if one.files:
                print_table(_files(one))
    columns = ["repository", "kind", "state", "files", "changed", "bytes", "commit"]
    cells = [
        [one.repo_id, one.kind, one.state, len(one.files), one.changes, _bytes(one), (one.commit or "")[:8]]
        for one in published.repositories
    ]
    done = "To be published" if published.dry_run else "Published"
    print_table(Table(f"{done} at {published.endpoint}", columns, cells))
    if published.collection:
        name = published.collection.slug or f"{published.org}/qabench"
        say(f"collection {name}: {published.collection.state}")
    for one in published.repositories:
        if one.missing and one.state != "failed":
            say(f"{one.repo_id} (dataset): without {', '.join(one.missing)}, whose data is not available", "yellow")
    for failed, write, style in ((False, say, "yellow"), (True, say_on_stderr, "red")):
        for reason, names in _reasons(published, failed).items():
            write(f"{', '.join(names)}: {reason}", style)
    if published.collection_error:
        say_on_stderr(f"collection: {published.collection_error}", "red")


def _reasons(published: Published, failed: bool) -> dict[str, list[str]]:
    """The reasons why repositories were not published -> these repositories."""
    reasons: dict[str, list[str]] = {}
    for one in published.repositories:
        if one.reason and (one.state == "failed") == failed:
            reasons.setdefault(one.reason, []).append(f"{one.repo_id} ({one.kind})")
    return reasons


def _files(one: Outcome) -> Table:
    from qabench.io.tables import Table

    cells = [[file.path, file.change, file.size, (file.sha256 or "")[:12]] for file in one.files]
    return Table(f"{one.repo_id} ({one.kind}, {one.tag})", ["file", "change", "bytes", "sha256"], cells)


def _bytes(one: Outcome) -> int:
    return sum(file.size or 0 for file in one.files)
