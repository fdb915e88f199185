"""Repositories to publish: folders that passed the checks, or the reasons why they did not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from qabench.errors import QabenchError
from qabench.hub.build import repository
from qabench.hub.build.repository_build import build
from qabench.hub.publish import space
from qabench.hub.publish.gate import check_dataset, check_space
from qabench.hub.publish.remote import Kind
from qabench.loading_scripts import dataset_table


@dataclass(frozen=True, slots=True)
class Staged:
    """A repository to publish.

    Attributes:
        kind: "dataset" or "space".
        repo_id: its name on the Hub.
        folder: its files.
        skipped: why it is not published, or None.
        problems: the problems found by the checks; it must not be published unless this is empty.
        missing: the configs that are left out because their data is not available.
    """

    kind: Kind
    repo_id: str
    folder: Path
    skipped: str | None = None
    problems: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def stage_dataset(name: str, org: str, root: Path, *, skip_missing: bool = False) -> Staged:
    """Builds a benchmark's repository below ``root`` and checks it.

    A benchmark with a restriction is skipped, including its sample: an incomplete dataset with this name on the Hub
    would be found before the complete one that ``qabench register`` prepares.
    """
    folder = root / "datasets" / org / name
    staged = Staged("dataset", f"{org}/{name}", folder)
    table = dataset_table(name)
    if table.restriction:
        where = f"`qabench register {name}` prepares it on your machine."
        return replace(staged, skipped=f"{table.restriction} {where}")
    try:
        (built,) = build(folder.parent, [name], namespace=org, skip_missing=True)
        if built.missing and not skip_missing:
            return replace(staged, problems=(_missing(built.missing),))
        if not repository.read_manifest(folder)["redistributable"]:
            return replace(staged, problems=("its manifest says that it may not be redistributed",))
        return replace(staged, problems=tuple(check_dataset(name, folder)), missing=tuple(built.missing))
    except (QabenchError, OSError) as error:
        return replace(staged, problems=(str(error),))


def stage_space(name: str, org: str, root: Path) -> Staged:
    """Writes the Space of a metric below ``root``, checks it and adds its signature."""
    folder = root / "spaces" / org / name
    staged = Staged("space", f"{org}/{name}", folder)
    try:
        space.stage(name, folder, org)
        problems, signature = check_space(name, folder)
        if not problems:
            space.sign(name, folder, signature)
        return replace(staged, problems=tuple(problems))
    except (QabenchError, OSError) as error:
        return replace(staged, problems=(str(error),))


def _missing(missing: dict[str, str]) -> str:
    return (
        f"no data for {', '.join(missing)}: run `qabench fetch`, or set QABENCH_MIRROR; --skip-missing publishes the "
        "other configs"
    )
