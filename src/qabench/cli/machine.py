"""Commands for this machine and for papers: ``qabench path``, ``cite``, ``cache`` and ``env``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from importlib.resources import files
from typing import Annotated, Any

import typer
from typer import Argument, Option

from qabench.cli.options import AsJson, Format
from qabench.cli.output import print_json, print_table, print_tables, say, say_on_stderr
from qabench.cli.outside import listing
from qabench.errors import InputError, installable, unknown_name
from qabench.io.environment import environment, folder_size
from qabench.io.files import cache_dir, run_replies_dir
from qabench.io.redaction import write_document, write_line
from qabench.io.tables import Table
from qabench.llm.cache import replies_path
from qabench.llm.stored_replies import select, stored_replies

cache_app = typer.Typer(
    help="Show the size of the caches, or clear model replies, which never expire."
)


def path(
    name: Annotated[
        str, Argument(metavar="NAME", help="lm-eval: the tasks for lm-evaluation-harness.")
    ],
) -> None:
    """Print the path of files for another program.

    For example, to run the tasks for lm-evaluation-harness:
    lm_eval run --include_path "$(qabench path lm-eval)" --tasks qabench
    """
    if name != "lm-eval":
        raise unknown_name("unknown name", name, ["lm-eval"])
    write_line(files("qabench.benchmarks"))


def cite(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="[NAME]...",
            help="Benchmarks, metrics, and models on the Hub, such as ORG/NAME or ORG/NAME@REVISION. Default: all "
            "benchmarks.",
        ),
    ] = None,
) -> None:
    """Print what to cite, in BibTeX: benchmarks, metrics, models and qabench.

    The entry of a model is for its page on the Hub. If the model's card names a paper, cite that
    paper instead.
    """
    from qabench.hub.citations import bibtex

    write_document(bibtex(names or ()))


@cache_app.command("list")
def list_caches(format: Format = "table") -> None:
    """Show the path and size of each cache, and the model replies by model."""
    replies = stored_replies()
    cells: list[list[Any]] = []
    for row in replies:
        cells.append([row.model, row.replies, _size_text(row.bytes)])
    sizes: dict[str, int] = {}
    paths: list[list[Any]] = []
    # Names that begin with a dot are files that are being written.
    for path in sorted(cache_dir().glob("[!.]*")):
        size = folder_size(path) if path.is_dir() else path.stat().st_size
        sizes[str(path)] = size
        paths.append([str(path), _size_text(size)])
    document = {"folder": str(cache_dir()), "files": sizes, "replies": list(map(asdict, replies))}
    title = f"Model replies of judges, in {replies_path()}, and of runs, in {run_replies_dir()}"
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
        float | None, Option(min=0, metavar="DAYS", help="Only replies that are at least this old.")
    ] = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Delete without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete cached model replies, of judges and of runs. Repeating the calls costs money again.

    Shows which replies these are, and asks for confirmation. Exit code: 0 deleted; 1 not confirmed;
    2 there is no terminal to ask on, and --yes is missing.
    """
    # Only the replies that are shown are deleted, not those that arrive in the meantime.
    selection = select(model, empty=empty, older_than=older_than)
    if selection.models and not yes:
        for row in selection.models:
            say_on_stderr(f"{row.model}: {row.replies} replies, {_size_text(row.bytes)}")
        prompt_tokens, reply_tokens = selection.tokens
        # The tokens of runs are unknown. To count them, every reply would have to be read.
        if prompt_tokens or reply_tokens:
            say_on_stderr(f"judges used {prompt_tokens:,} prompt and {reply_tokens:,} reply tokens")
        if not _can_ask():
            raise InputError(
                "deleted replies have to be paid for again, and there is no terminal to ask on; add --yes"
            )
        typer.confirm("Delete them? The same calls are paid for again", abort=True, err=True)
    count = selection.delete()
    if as_json:
        print_json({"deleted": count})
    else:
        say(f"deleted replies: {count}")


def _can_ask() -> bool:
    # There is no such stream if it was closed before the start.
    return sys.stdin is not None and sys.stdin.isatty()


def _size_text(size: int) -> str:
    if size < 1000:
        return f"{size:,} B"
    if size < 1e6:
        return f"{size / 1e3:,.1f} kB"
    return f"{size / 1e6:,.1f} MB"


def env(as_json: AsJson = False) -> None:
    """Show versions, caches, variables (never keys), and whether official models and data are here."""
    benchmarks = listing("needs")
    official = benchmarks.rows
    facts = environment()
    if as_json:
        print_json(facts | {"official": official} | benchmarks.document)
        return
    versions = [[name, facts[name]] for name in ("qabench", "python", "platform")]
    for name, version in facts["packages"].items():
        versions.append([name, version or "not installed"])
    versions.append(["cache", f"{facts['cache']['path']} ({_size_text(facts['cache']['bytes'])})"])
    print_table(Table("Versions and folders", ["name", "value"], versions))
    variables = list(map(list, facts["variables"].items()))
    print_table(Table("Environment variables", ["name", "value"], variables))
    rows = []
    for row in official:
        missing = f"no: {', '.join(row['missing'])} missing; {installable(row['fix'])}"
        rows.append([row["benchmark"], row["what"], missing if row["missing"] else "yes"])
    title = "What is official on this machine"
    print_table(Table(title, ["benchmark", "what", "official"], rows, benchmarks.notes))
