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
        for outcome in published.repositories:
            if outcome.files:
                print_table(_files(outcome))
    cells = [
        [outcome.repo_id, outcome.kind, outcome.state, len(outcome.files), _bytes(outcome), (outcome.commit or "")[:8]]
        for outcome in published.repositories
    ]
    title = f"{'To be published' if published.dry_run else 'Published'} at {published.endpoint}"
    print_table(Table(title, ["repository", "kind", "state", "files", "bytes", "commit"], cells))
    if published.collection:
        say(f"collection {published.collection}")
    for outcome in published.repositories:
        if outcome.missing and outcome.state != "failed":
            configs = ", ".join(outcome.missing)
            say(f"{outcome.repo_id} (dataset): without {configs}, whose data is not available", "yellow")
    for failed, write, style in ((False, say, "yellow"), (True, say_on_stderr, "red")):
        for reason, names in _reasons(published, failed).items():
            write(f"{', '.join(names)}: {reason}", style)
    if published.collection_error:
        say_on_stderr(f"collection: {published.collection_error}", "red")


def _reasons(published: Published, failed: bool) -> dict[str, list[str]]:
    """Return the reasons why repositories were not published, each with these repositories."""
    reasons: dict[str, list[str]] = {}
    for outcome in published.repositories:
        if outcome.reason and (outcome.state == "failed") == failed:
            reasons.setdefault(outcome.reason, []).append(f"{outcome.repo_id} ({outcome.kind})")
    return reasons


def _files(outcome: Outcome) -> Table:
    from qabench.io.tables import Table

    cells = [[path, digest["size"], digest["sha256"][:12]] for path, digest in outcome.files.items()]
    return Table(f"{outcome.repo_id} ({outcome.kind}, {outcome.tag})", ["file", "bytes", "sha256"], cells)


def _bytes(outcome: Outcome) -> int:
    return sum(digest["size"] for digest in outcome.files.values())
