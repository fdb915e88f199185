"""The ``qabench`` command line.

Exit codes: 0 all right; 1 something failed; 2 wrong usage or unusable input. Imports stay inside the commands:
``qabench --help`` must not wait for ``datasets``.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from qabench.cli.build import build
from qabench.cli.compare import compare
from qabench.cli.env import env
from qabench.cli.evaluators import evaluate_felm
from qabench.cli.export import export
from qabench.cli.fetch import fetch
from qabench.cli.judge import judge
from qabench.cli.list import list_all
from qabench.cli.path import path
from qabench.cli.publish import publish
from qabench.cli.quickstart import quickstart
from qabench.cli.register import register
from qabench.cli.report import report
from qabench.cli.results import results
from qabench.cli.retrieve import retrieve
from qabench.cli.run import run
from qabench.cli.score import score
from qabench.cli.stats import stats
from qabench.cli.submit import submit
from qabench.cli.wiki import wiki_app
from qabench.errors import InputError, QabenchError

app = typer.Typer(
    name="qabench",
    help="FanOutQA, ExpertQA, FELM and fastbook-benchmark: data, official scores, results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # importing rich for the help would double its time
)
app.command("list")(list_all)
app.command("quickstart")(quickstart)
app.command("fetch")(fetch)
app.command("score")(score)
app.command("judge")(judge)
app.command("evaluate-felm")(evaluate_felm)
app.command("run")(run)
app.command("export")(export)
app.command("report")(report)
app.command("submit")(submit)
app.command("results")(results)
app.command("compare")(compare)
app.command("stats")(stats)
app.command("register")(register)
app.command("build")(build)
app.command("publish")(publish)
app.command("path")(path)
app.command("env")(env)
app.command("retrieve")(retrieve)
app.add_typer(wiki_app, name="wiki")


def _print_version(wanted: bool) -> None:
    if wanted:
        from qabench.signature import version

        print(f"qabench {version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """The entry point: runs a command, and prints an error for a person instead of a traceback."""
    try:
        app()
    except InputError as error:
        _stop(error, 2)
    except QabenchError as error:
        _stop(error, 1)
    except BrokenPipeError:  # the reader of our output, such as head, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _stop(error: Exception, code: int) -> None:
    print(f"qabench: {error}", file=sys.stderr)
    sys.exit(code)
