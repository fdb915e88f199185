"""``qabench cache``: shows the caches and their sizes, and clears model replies."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from qabench.cli.options import AsJson, Format, checked_format
from qabench.errors import InputError

cache_app = typer.Typer(
    help="Show the size of every cache; clear model replies. Replies are kept until they are cleared.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)
SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@cache_app.command("list")
def list_caches(format: Format = "table", as_json: AsJson = False) -> None:
    """Show the path and size of each cache; for model replies, by model."""
    from qabench.cli.output import print_json, print_tables
    from qabench.llm.stores import stores
    from qabench.paths import cache_dir
    from qabench.tables import Table

    chosen = checked_format(format, as_json)
    replies = stores()
    files = [path for path in sorted(cache_dir().glob("*")) if not path.name.startswith(".")]
    sizes = {str(path): _size(path) for path in files}
    if chosen == "json":
        rows = [{"kind": one.kind, "model": one.model, "replies": one.replies, "bytes": one.bytes} for one in replies]
        print_json({"folder": str(cache_dir()), "files": sizes, "replies": rows})
        return
    cells: list[list[Any]] = [[one.model, one.kind, one.replies, _shown(one.bytes), str(one.path)] for one in replies]
    tables = [Table("Model replies", ["model", "of", "replies", "size", "path"], cells, [] if cells else ["none"])]
    paths: list[list[Any]] = [[path, _shown(size)] for path, size in sizes.items()]
    print_tables([*tables, Table(f"Files in {cache_dir()}", ["path", "size"], paths)], chosen)


@cache_app.command("clear")
def clear_caches(
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Only replies of this model.")] = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="D", help="Only replies of at least this age, such as 12h, 30d or 2w.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Delete cached model replies, of judges and of runs. Repeating the calls costs money again."""
    from qabench.cli.output import print_json, say
    from qabench.llm.stores import clear, stores

    seconds = _seconds(older_than) if older_than else None
    names = {one.model for one in stores()}
    if model and not any(name == model or name.endswith(f"/{model}") for name in names):
        raise InputError(f"the cache has no replies of the model {model!r}; it has: {', '.join(sorted(names))}")
    count = clear(model, seconds)
    if as_json:
        print_json({"deleted": count})
    else:
        say(f"deleted {count} {'reply' if count == 1 else 'replies'}")


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text)
    if not found:
        raise InputError(f"--older-than is {text!r}; it must be a number with a unit of m, h, d or w, such as 30d")
    return float(found[1]) * SECONDS[found[2]]


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _shown(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:.1f} MB"
