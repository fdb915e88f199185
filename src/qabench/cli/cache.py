"""``qabench cache``: shows the caches and their sizes, and clears model replies."""

from __future__ import annotations

import re
from dataclasses import asdict
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
    from qabench.io.files import cache_dir, run_replies_dir
    from qabench.io.tables import Table
    from qabench.llm.cache import replies_path, stored_replies
    from qabench.runs.stored_replies import stored_run_replies

    chosen = checked_format(format, as_json)
    replies = stored_replies() + stored_run_replies()
    sizes = {str(path): _size(path) for path in _caches(cache_dir())}
    if chosen == "json":
        print_json({"folder": str(cache_dir()), "files": sizes, "replies": [asdict(one) for one in replies]})
        return
    cells: list[list[Any]] = [
        [one.model, one.replies, _shown(one.bytes), one.oldest[:10], one.newest[:10]] for one in replies
    ]
    title = f"Model replies of judges, in {replies_path()}, and of runs, in {run_replies_dir()}"
    notes = ["kept until `qabench cache clear`"] if cells else ["none"]
    tables = [Table(title, ["model", "replies", "size", "oldest", "newest"], cells, notes)]
    paths: list[list[Any]] = [[path, _shown(size)] for path, size in sizes.items()]
    print_tables([*tables, Table("Caches", ["path", "size"], paths, [] if paths else ["none"])], chosen)


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
    from qabench.llm.cache import clear, stored_replies
    from qabench.runs.stored_replies import clear_run_replies, stored_run_replies

    seconds = _seconds(older_than) if older_than else None
    names = {row.model for row in stored_replies() + stored_run_replies()}
    if model and not any(name == model or name.endswith(f"/{model}") for name in names):
        known = ", ".join(sorted(names)) or "none"
        raise InputError(f"the cache has no replies of the model {model!r}; it has: {known}")
    count = clear(model, seconds) + clear_run_replies(model, seconds)
    if as_json:
        print_json({"deleted": count})
    else:
        say(f"deleted {count} {'reply' if count == 1 else 'replies'}")


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text)
    if not found:
        raise InputError(f"--older-than is {text!r}; it must be a number with a unit of m, h, d or w, such as 30d")
    return float(found[1]) * SECONDS[found[2]]


def _caches(folder: Path) -> list[Path]:
    """The contents of qabench's folder, the datasets registered with the `datasets` library, and Inspect's folder."""
    import os

    from huggingface_hub.constants import HF_HOME
    from platformdirs import user_cache_path

    own = [path for path in sorted(folder.glob("*")) if not path.name.startswith(".")]
    registered = sorted((Path(os.environ.get("HF_DATASETS_CACHE") or Path(HF_HOME) / "datasets")).glob("qabench___*"))
    inspect = Path(os.environ.get("INSPECT_CACHE_DIR") or user_cache_path("inspect_ai"))
    return [*own, *registered, *([inspect] if inspect.is_dir() else [])]


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _shown(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} KB"
