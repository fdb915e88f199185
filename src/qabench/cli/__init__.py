"""The ``qabench`` command line.

Exit codes: 0 success; 1 something failed; 2 wrong usage or unusable input; 130 and 143 interrupted.
A command's module is imported when the command runs: ``qabench --help`` must not wait for
``datasets``.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from typing import Annotated, TextIO

import typer
from typer import Exit, Option

from qabench.cli.lazy import LazyGroup
from qabench.errors import InputError, QabenchError
from qabench.evaluation.signature import version
from qabench.io.tables import write_line

DATA, HUB = "qabench.cli.data", "qabench.cli.hub"
MACHINE, RETRIEVE, SCORE = "qabench.cli.machine", "qabench.cli.retrieve", "qabench.cli.score"
COMMANDS = {
    "Data": {
        "list": (DATA, "list_all", "List benchmarks with their configs, and metrics."),
        "fetch": (DATA, "fetch", "Download the pinned source files and verify them."),
        "stats": (DATA, "stats", "Print a dataset's statistics next to the published ones."),
        "reproduce": (DATA, "reproduce", "Recompute published scores."),
        "register": (DATA, "register", 'Make load_dataset("qabench/...") work on this machine.'),
        "new": ("qabench.cli.new", "new", "Write a small benchmark, as a start for a custom one."),
        "build": (HUB, "build", "Write Hub-ready dataset repositories."),
        "publish": (HUB, "publish", "Publish datasets and metrics to the Hugging Face Hub."),
    },
    "Scores": {
        "quickstart": (
            "qabench.cli.quickstart",
            "quickstart",
            "Score three synthetic systems on a built-in sample.",
        ),
        "score": (SCORE, "score", "Score predictions with the official metrics."),
        "compare": (SCORE, "compare", "Compare systems on the same questions, with paired tests."),
        "leaderboard": (SCORE, "leaderboard", "Rank systems: published, on the Hub, and your own."),
        "report": (SCORE, "report", "Write an HTML report of runs."),
        "results": (HUB, "results", "Turn scores into entries for a model's page on the Hub."),
    },
    "Models": {
        "run": ("qabench.cli.run", "run", "Run a model over a benchmark and score its answers."),
        "export": (SCORE, "export", "Write a run's answers as predictions or records."),
        "path": (MACHINE, "path", "Print the path of a folder for another program."),
        "cite": (MACHINE, "cite", "Print what to cite, in BibTeX."),
        "cache": (MACHINE, "cache_app", "Show the size of every cache; clear model replies."),
        "env": (MACHINE, "env", "Print versions, models, caches and environment variables."),
    },
    "Retrieval": {
        "retrieve": (
            RETRIEVE,
            "retrieve",
            "Rank the rows of a file or dataset for queries, by BM25.",
        ),
        "wiki": (
            RETRIEVE,
            "wiki_app",
            "Wikipedia as of the dataset's epoch, and the cache of its pages.",
        ),
        "index": (
            RETRIEVE,
            "index",
            "Build a Lucene index of a corpus, for --retriever lucene:DIR.",
        ),
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
    # the terminal's width
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 1000},
)


def _print_version(requested: bool) -> None:
    if requested:
        write_line(f"qabench {version()}")
        raise Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        Option(
            "-V",
            "--version",
            help="Print the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command, and print errors as one line instead of a traceback."""
    for name, stream, other in (
        ("output", sys.stdout, sys.stderr),
        ("error", sys.stderr, sys.stdout),
    ):
        # a file that is opened next would get its descriptor, and the text meant for it
        if stream is None:
            if other is not None:
                write_line(
                    f"qabench: standard {name} is closed; redirect it to a file, such as /dev/null",
                    other,
                )
            sys.exit(1)
        _encode_all_characters(stream)
    # Records have no cycles: full collections took a fifth of the time of 100,000 answers.
    gc.set_threshold(10_000, 10, 200)
    try:
        app()
    except InputError as error:
        _stop(error, 2)
    except QabenchError as error:
        _stop(error, getattr(error, "exit_code", 1))
    except BrokenPipeError:  # the reader of the output, such as head, has exited
        _discard_output()
        sys.exit(1)
    except OSError as error:  # such as a full disk, below HF_HOME or on standard output
        _stop(_with_variables(error), 1)


def _encode_all_characters(stream: TextIO) -> None:
    """Write UTF-8 into files and pipes on Windows too, where Python uses an encoding with 256 characters."""
    if isinstance(stream, io.TextIOWrapper):
        if sys.platform == "win32" and not stream.isatty():
            stream.reconfigure(encoding="utf-8")
        stream.reconfigure(errors="backslashreplace")


def _with_variables(error: OSError) -> OSError:
    """Return the error.

    For a folder that cannot be written, with the variables that choose another one.
    """
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or not error.filename:
        return error
    return OSError(
        f"{error.filename} cannot be written: {error.strerror}. Set HF_HOME (Hugging Face's caches), QABENCH_CACHE "
        "(qabench's) or XDG_DATA_HOME (Inspect AI's) to a folder that you can write to"
    )


def _stop(error: Exception, code: int) -> None:
    try:
        write_line(f"qabench: {error}", sys.stderr)
    except OSError:  # standard error is full, or its reader has exited
        _discard_output()
    if isinstance(error, OSError):
        _discard_output()
    sys.exit(code)


def _discard_output() -> None:
    """Send the remaining output to /dev/null, so that the flush at exit does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
