"""The ``qabench`` command line.

Exit codes: 0 success; 1 something failed; 2 wrong usage or unusable input; 130 and 143 interrupted. A command's module
is imported when the command runs: ``qabench --help`` must not wait for ``datasets``.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated

import typer

from qabench.cli.lazy import LazyGroup
from qabench.errors import InputError, QabenchError
from qabench.io.terminal import write_line

# Section of the help -> command -> (module:function or module:Typer, help in one line).
COMMANDS = {
    "Data": {
        "list": ("qabench.cli.list:list_all", "List benchmarks with their configs, and metrics."),
        "fetch": ("qabench.cli.fetch:fetch", "Download the pinned source files and verify them."),
        "stats": ("qabench.cli.stats:stats", "Print a dataset's statistics next to the published ones."),
        "reproduce": ("qabench.cli.reproduce:reproduce", "Recompute published scores."),
        "register": ("qabench.cli.register:register", 'Make load_dataset("qabench/...") work on this machine.'),
        "build": ("qabench.cli.build:build", "Write Hub-ready dataset repositories."),
        "publish": ("qabench.cli.publish:publish", "Publish datasets and metrics to the Hugging Face Hub."),
    },
    "Scores": {
        "quickstart": ("qabench.cli.quickstart:quickstart", "Score three synthetic systems on a built-in sample."),
        "score": ("qabench.cli.score:score", "Score predictions with the official metrics."),
        "compare": ("qabench.cli.compare:compare", "Compare systems on the same questions, with paired tests."),
        "report": ("qabench.cli.report:report", "Write an HTML report of runs."),
        "results": ("qabench.cli.results:results", "Turn scores into entries for a model's page on the Hub."),
    },
    "Models": {
        "run": ("qabench.cli.run:run", "Run a model over a benchmark and score its answers."),
        "export": ("qabench.cli.export:export", "Write a run's answers as predictions or records."),
        "path": ("qabench.cli.path:path", "Print the path of a folder for another program."),
        "cite": ("qabench.cli.cite:cite", "Print what to cite, in BibTeX."),
        "cache": ("qabench.cli.cache:cache_app", "Show the size of every cache; clear model replies."),
        "env": ("qabench.cli.env:env", "Print versions, models, caches and environment variables."),
    },
    "Retrieval": {
        "wiki": ("qabench.cli.wiki:wiki_app", "Wikipedia as of the dataset's epoch, and the cache of its pages."),
        "index": ("qabench.cli.index:index", "Build a Lucene index of a corpus, for --retriever lucene:DIR."),
    },
}


class _Commands(LazyGroup):
    sections = COMMANDS


app = typer.Typer(
    name="qabench",
    cls=_Commands,
    help="Question-answering benchmarks: data, official scores, results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # importing rich for the help would double its time
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from qabench.evaluation.signature import version

        write_line(f"qabench {version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("-V", "--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    pass


def main() -> None:
    """The entry point: runs a command and prints errors as one line instead of a traceback."""
    try:
        app()
    except InputError as error:
        _stop(error, 2)
    except QabenchError as error:
        _stop(error, getattr(error, "exit_code", 1))
    except BrokenPipeError:  # the reader of the output, such as head, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # such as a full disk, below HF_HOME or on standard output
        _stop(_named(error), 1)


def _named(error: OSError) -> OSError:
    """The error; for a folder that cannot be written, with the variables that choose another one."""
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or not error.filename:
        return error
    place = str(error.filename)
    return OSError(
        f"{place} cannot be written: {error.strerror}. Set HF_HOME (Hugging Face's caches), QABENCH_CACHE (qabench's) "
        "or XDG_DATA_HOME (Inspect AI's) to a folder that you can write to"
    )


def _stop(error: Exception, code: int) -> None:
    write_line(f"qabench: {error}", sys.stderr)
    if isinstance(error, OSError) and sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit must not fail again
    sys.exit(code)
