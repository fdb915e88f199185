"""Commands for this machine: ``qabench path``, ``cache`` and ``env``."""

from __future__ import annotations

from dataclasses import asdict
from importlib.resources import files
from typing import Annotated, Any

import typer
from typer import Argument, Option

from qabench.cli.options import AsJson, Format
from qabench.cli.output import print_json, print_table, print_tables, say
from qabench.cli.outside import listing
from qabench.errors import unknown_name
from qabench.io.environment import environment, folder_size
from qabench.io.files import cache_dir, run_replies_dir
from qabench.io.tables import Table, write_line
from qabench.llm.cache import clear, replies_path, stored_replies

cache_app = typer.Typer(
    help="Show the size of the caches, clear model replies. Replies are kept until then."
)


def path(
    name: Annotated[str, Argument(metavar="NAME", help="lm-eval: the tasks for lm-evaluation-harness.")],
) -> None:
    """Print the path of files for another program: lm_eval --include_path "$(qabench path lm-eval)"."""
    if name != "lm-eval":
        raise unknown_name("unknown name", name, ["lm-eval"])
    write_line(files("qabench.benchmarks"))


@cache_app.command("list")
def list_caches(format: Format = "table") -> None:
    """Show the path and size of each cache, and the model replies by model."""
    replies = stored_replies()
    sizes = {
        str(path): folder_size(path) if path.is_dir() else path.stat().st_size
        for path in sorted(cache_dir().glob("[!.]*"))
    }
    document = {"folder": str(cache_dir()), "files": sizes, "replies": list(map(asdict, replies))}
    cells: list[list[Any]] = [[row.model, row.replies, _size_text(row.bytes)] for row in replies]
    title = f"Model replies of judges, in {replies_path()}, and of runs, in {run_replies_dir()}"
    paths: list[list[Any]] = [[path, _size_text(size)] for path, size in sizes.items()]
    tables = [
        Table(title, ["model", "replies", "size"], cells),
        Table("Caches", ["path", "size"], paths),
    ]
    print_tables(tables, format, document)


@cache_app.command("clear")
def clear_caches(
    model: Annotated[
        str | None, Option(help="Only the replies of this model, as `qabench cache list` names it.")
    ] = None,
    empty: Annotated[bool, Option("--empty", help="Only replies without text.")] = False,
    older_than: Annotated[
        float | None, Option(min=0, metavar="DAYS", help="Only replies that are at least so old.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Delete cached model replies, of judges and of runs. Repeating the calls costs money again."""
    count = clear(model, empty=empty, older_than=older_than)
    if as_json:
        print_json({"deleted": count})
    else:
        say(f"deleted replies: {count}")


def _size_text(size: int) -> str:
    return f"{size / 1e6:,.3f} MB"


def env(as_json: AsJson = False) -> None:
    """Show versions, caches, variables and what is official here, for bug reports.

    Keys are never shown.
    """
    benchmarks = listing("needs")
    official = benchmarks.rows
    facts = environment()
    if as_json:
        print_json(facts | {"official": official} | benchmarks.document)
        return
    versions = [[name, facts[name]] for name in ("qabench", "python", "platform")]
    versions += [[name, version or "not installed"] for name, version in facts["packages"].items()]
    versions.append(["cache", f"{facts['cache']['path']} ({_size_text(facts['cache']['bytes'])})"])
    print_table(Table("Versions and folders", ["name", "value"], versions))
    variables = [[name, value] for name, value in facts["variables"].items()]
    print_table(Table("Environment variables", ["name", "value"], variables))
    rows = []
    for row in official:
        missing = f"no: {', '.join(row['missing'])} missing; {row['fix']}"
        rows.append([row["benchmark"], row["what"], missing if row["missing"] else "yes"])
    title = "What is official on this machine"
    print_table(Table(title, ["benchmark", "what", "official"], rows, benchmarks.notes))
