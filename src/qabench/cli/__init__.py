"""The ``qabench`` command line.

Exit codes: 0 success; 1 something failed; 2 wrong usage or unusable input; 130 and 143 interrupted.
A command's module is imported when the command runs: ``qabench --help`` must not wait for
``datasets``.
"""

from __future__ import annotations

import errno
import functools
import gc
import importlib
import inspect
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Exit, Option
from typer.core import TyperCommand, TyperGroup

import qabench.benchmarks
from qabench.benchmarks import benchmark as benchmark_of
from qabench.benchmarks import benchmark_names, shipped_names
from qabench.benchmarks.outside import custom_module, outside_error, raised_outside
from qabench.cli.output import set_quiet
from qabench.errors import InputError, QabenchError, nearest_name, unknown_name
from qabench.evaluation.signature import version
from qabench.io.redaction import write_line
from qabench.loading_scripts import custom_folders

DATA, HUB = "qabench.cli.data", "qabench.cli.hub"
MACHINE = "qabench.cli.machine"
REPORTS = "qabench.cli.reports"
# The commands that read answers, print their scores, and end.
READERS = {"score", "compare", "leaderboard", "report"}
# The commands by section of the help: module, function or Typer application in it, and one line of
# help.
COMMANDS = {
    "Data": {
        "list": (DATA, "list_all", "List benchmarks with their configs, and metrics."),
        "fetch": (DATA, "fetch", "Download the pinned source files and verify them."),
        "stats": (DATA, "stats", "Print a dataset's statistics next to the published ones."),
        "reproduce": (DATA, "reproduce", "Recompute published scores."),
        "register": (DATA, "register", 'Make load_dataset("qabench/...") work on this machine.'),
        "new": ("qabench.cli.new", "new", "Write a small example benchmark to start a custom one."),
        "build": (HUB, "build", "Write Hub-ready dataset repositories."),
        "publish": (HUB, "publish", "Publish datasets and metrics to the Hugging Face Hub."),
    },
    "Scores": {
        "quickstart": (
            "qabench.cli.quickstart",
            "quickstart",
            "Score three synthetic systems on a built-in sample.",
        ),
        "score": ("qabench.cli.score", "score", "Score predictions with the official metrics."),
        "compare": (
            "qabench.cli.compare",
            "compare",
            "Compare systems on the same questions, with paired tests.",
        ),
        "leaderboard": (
            REPORTS,
            "leaderboard",
            "Rank systems: published, on the Hub, and your own.",
        ),
        "report": (REPORTS, "report", "Write an HTML report of runs."),
        "cite": (MACHINE, "cite", "Print what to cite, in BibTeX."),
        "results": (HUB, "results", "Turn scores into entries for a model's page on the Hub."),
    },
    "Judges": {
        "judge": (
            "qabench.cli.judge",
            "judge",
            "Measure how well judges agree with people's labels.",
        ),
        "sample": (
            "qabench.cli.judge",
            "sample",
            "Draw a random sample of judged items for people to label.",
        ),
        "plan": ("qabench.cli.judge", "plan", "Estimate how many questions a comparison needs."),
    },
    "Models": {
        "run": ("qabench.cli.run", "run", "Run a model over a benchmark and score its answers."),
        "export": (REPORTS, "export", "Write a run's answers as predictions or records."),
        "path": (MACHINE, "path", "Print the path of a folder for another program."),
        "cache": (MACHINE, "cache_app", "Show the size of the caches, or clear model replies."),
        "env": (MACHINE, "env", "Print versions, models, caches and environment variables."),
    },
    "Retrieval": {
        "retrieve": (
            "qabench.cli.retrieve",
            "retrieve",
            "Rank the rows of a file or dataset for queries, by BM25.",
        ),
        "wiki": (
            "qabench.cli.wiki",
            "wiki_app",
            "Wikipedia as of the dataset's date, and the cache of its pages.",
        ),
    },
}


# Typer's name for a type -> the placeholder for its values in the help.
METAVARS = {
    "<str>": "NAME",
    "<list[str]>": "NAME",
    "<path>": "FILE",
    "<dir>": "DIR",
    "<int>": "N",
    "<int range>": "N",
    "<float>": "X",
    "<float range>": "X",
}
BENCHMARKS = Path(qabench.benchmarks.__file__).parent
# The key in a context's ``meta`` for the benchmarks whose options a command takes.
WITH_OPTIONS = "qabench.with_options"
# Option whose value is optional -> the value that is used without one.
BARE_VALUES = {"--human": "dataset"}
# Options that take all values up to the next option.
LISTS = {"--from"}
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
FOLDERS = (
    "; set HF_HOME (Hugging Face's caches), QABENCH_CACHE (qabench's) or XDG_DATA_HOME (Inspect AI's) to a folder "
    "that you can write to"
)


class _ShortHelp:
    """A command whose help is fast, and shows names of values instead of Python types.

    Otherwise, Typer would import pydantic just to convert None, the default of ``--help``.
    """

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters. Flags that only call a function get the default False."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            is_flag = getattr(parameter, "is_flag", False)
            if is_flag and parameter.callback and parameter.default is None:
                parameter.default = False
            if not (is_flag or parameter.metavar) and hasattr(parameter, "display_type"):
                parameter.metavar = METAVARS.get(parameter.display_type(ctx))
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda ctx: ""
        return parameters


class Command(_ShortHelp, TyperCommand):
    """A command whose errors list its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments. The error for an unknown option lists all options of the command."""
        args = _with_bare_values(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # Only the message is extended here. Every exception is raised again.
            if hasattr(error, "possibilities"):
                options = []
                for parameter in self.params:
                    options += [name for name in parameter.opts if name.startswith("--")]
                error.possibilities = options
                # Without the dashes, which would make any two short names similar.
                misspelled = str(error.option_name).removeprefix("--")  # type: ignore[attr-defined]
                names = [option.removeprefix("--") for option in options]
                if nearest := nearest_name(misspelled, names):
                    error.message += f" (did you mean '--{nearest}'?)"  # type: ignore[attr-defined]
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the command's name in the usage."""
        pieces = ["[OPTIONS]"]
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                metavar = str(parameter.metavar)
                pieces.append(metavar if parameter.required else f"[{metavar}]")
        return pieces

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help. Names of groups and settings are only looked up here."""
        from qabench.cli.options import with_names

        for parameter in self.params:
            text = getattr(parameter, "help", None)
            if text:
                parameter.help = with_names(text)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


class CommandGroup(_ShortHelp, TyperGroup):
    """A group of commands whose error for an unknown name lists the valid names."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to run."""
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names:
            ctx.fail(str(unknown_name("No such command", args[0], names)))
        return super().resolve_command(ctx, args)


class TopLevel(CommandGroup):
    """The top-level commands, and one group for each benchmark that has its own commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to run.

        If the first argument is a benchmark, the command has the options of this benchmark only,
        and no other benchmark is imported. A benchmark from outside is imported only if an argument
        names it.
        """
        words = []
        for word in args[1:]:
            words.append(word.removeprefix("--benchmark=").removeprefix("qabench/"))
        outside = custom_folders()
        if words and words[0] in benchmark_names():
            ctx.meta[WITH_OPTIONS] = words[:1]
        else:
            from_outside = [word for word in words if word in outside]
            ctx.meta[WITH_OPTIONS] = [*shipped_names(), *from_outside[:1]]
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names, without importing a command."""
        return [*chain.from_iterable(COMMANDS.values()), *_with_commands()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with this name, or None."""
        for commands in COMMANDS.values():
            if cmd_name in commands:
                path, attribute, _ = commands[cmd_name]
                command = getattr(importlib.import_module(path), attribute)
                options: list[inspect.Parameter] = []
                if _takes_benchmark_options(command):
                    from qabench.cli.options import benchmark_options

                    names = ctx.meta.get(WITH_OPTIONS) if ctx else None
                    options = benchmark_options(names or shipped_names())
                return command_of(cmd_name, command, options)
        if cmd_name not in _with_commands():
            return None
        return _benchmark_group(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands to the help, by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for title, commands in COMMANDS.items():
            sections[title] = []
            for name, (_, _, about) in commands.items():
                sections[title].append((name, about))
        sections["Benchmarks"] = []
        for name in _with_commands():
            about = f"Commands of {name}."
            if name in shipped_names():
                # The help imports no benchmark from outside.
                benchmark = benchmark_of(name)
                about = f"Commands of {benchmark.title}: {', '.join(benchmark.commands)}."
            sections["Benchmarks"].append((name, about))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def _with_bare_values(args: Sequence[str]) -> list[str]:
    """Insert the values of options that were given without one. Typer requires a value."""
    completed = _with_lists(args)
    args = list(completed)
    for place, word in enumerate(args):
        is_bare = place + 1 == len(args) or args[place + 1].startswith("-")
        if word in BARE_VALUES and is_bare:
            completed[place] = f"{word}={BARE_VALUES[word]}"
    return completed


def _with_lists(args: Sequence[str]) -> list[str]:
    """Repeat an option before each of its values: ``--from A B`` is ``--from A --from B``."""
    completed: list[str] = []
    listing = ""
    for word in args:
        if word.startswith("-"):
            listing = word if word in LISTS else ""
        elif listing and completed[-1] != listing:
            completed.append(listing)
        completed.append(word)
    return completed


def _takes_benchmark_options(command: Any) -> bool:
    """Return whether a command takes a benchmark's options: it is a function with ``**options``."""
    if isinstance(command, typer.Typer):
        return False
    parameters = inspect.signature(command).parameters.values()
    return inspect.Parameter.VAR_KEYWORD in [parameter.kind for parameter in parameters]


def command_of(name: str, command: Any, options: Sequence[inspect.Parameter] = ()) -> Any:
    """Return the click command of a function or a Typer application.

    A function gets ``options`` in addition to its own parameters. An application has commands of
    its own, so it ignores them.
    """
    if isinstance(command, typer.Typer):
        functions = {str(info.name): info.callback for info in command.registered_commands}
        return _group(name, str(command.info.help), functions)
    wrapper = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    wrapper.command(name, cls=Command)(_with_options(command, options))
    return typer.main.get_command(wrapper)


def _group(name: str, about: str, functions: Mapping[str, Any]) -> CommandGroup:
    return CommandGroup(
        name=name,
        commands={name: command_of(name, function) for name, function in functions.items()},
        help=about,
        no_args_is_help=True,
        rich_markup_mode=None,
    )


def _with_commands() -> list[str]:
    """Return the names of the benchmarks that have their own commands, without importing them."""
    packages = {name: BENCHMARKS / name for name in shipped_names()}
    packages.update(custom_folders())
    names = []
    for name, package in packages.items():
        files = (package / "commands.py", package / "commands" / "__init__.py")
        if any(map(os.path.isfile, files)):
            names.append(name)
    return sorted(names)


def _benchmark_group(name: str) -> CommandGroup:
    benchmark = benchmark_of(name)
    package = custom_module(name) if name in custom_folders() else f"qabench.benchmarks.{name}"
    try:
        module = importlib.import_module(f"{package}.commands")
    except BaseException as error:
        # Code from outside may raise anything, including SystemExit.
        if name in shipped_names() or isinstance(error, KeyboardInterrupt):
            raise
        what = f"the commands of the benchmark {name} cannot be imported"
        raise outside_error(what, error, custom_folders()[name]) from error
    about = f"Commands of {benchmark.title} only. General commands take its name: qabench score {name} FILE"
    functions = {command: getattr(module, command) for command in benchmark.commands}
    return _group(name, about, functions)


def _with_options(
    function: Callable[..., None], options: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Add ``options`` and --quiet to a command, and --json if it prints tables in a ``Format``."""
    from qabench.cli.options import FORMATS, AsJson, Format, Quiet

    signature = inspect.signature(function, eval_str=True)
    table_format = signature.parameters.get("format")
    has_tables = table_format is not None and table_format.annotation == Format

    @functools.wraps(function)
    def run(quiet: bool = False, **values: Any) -> None:
        set_quiet(quiet)
        if function.__name__ in READERS:
            # Records have no reference cycles, so garbage collection frees nothing, but takes
            # seconds for 100,000 of them.
            gc.set_threshold(20_000_000)
        if has_tables and values["format"] not in FORMATS:
            raise unknown_name("unknown format", values["format"], FORMATS)
        if has_tables and values.pop("as_json"):
            values["format"] = "json"
        function(**values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = []
    for parameter in signature.parameters.values():
        # Typer cannot read ``**options``, so the options of benchmarks replace it.
        if parameter.kind != parameter.VAR_KEYWORD:
            parameters.append(parameter)
    parameters += options
    parameters.append(inspect.Parameter("quiet", keyword, default=False, annotation=Quiet))
    if has_tables:
        parameters.append(inspect.Parameter("as_json", keyword, default=False, annotation=AsJson))
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


app = typer.Typer(
    name="qabench",
    cls=TopLevel,
    help="Question-answering benchmarks: data, official scores, results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Importing rich would make the help take twice as long.
    rich_markup_mode=None,
    # Use the terminal's whole width. Click's default ends at 80 columns.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 1000},
)


def _print_version(requested: bool) -> None:
    if requested:
        write_line(f"qabench {version()}")
        raise Exit


_VERSION = Option(
    "-V", "--version", help="Print the version.", callback=_print_version, is_eager=True
)


@app.callback()
def _options(version: Annotated[bool, _VERSION] = False) -> None:
    pass


is_command = False
"""Whether this process is a qabench command, which imports only the benchmarks that it needs."""


def main() -> None:
    """Run a command, and print errors as one line. Only a bug of qabench has a traceback."""
    global is_command
    is_command = True
    if None in (sys.stdout, sys.stderr):
        # If a standard stream is closed, the next file that is opened gets its descriptor, and what
        # is printed would be written into that file.
        write_line(
            "qabench: standard output or error is closed; redirect it, such as to /dev/null",
            sys.stderr or sys.stdout,
        )
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if sys.platform == "win32" and not stream.isatty():
                # On Windows, pipes use a code page of 256 characters by default.
                stream.reconfigure(encoding="utf-8")
            stream.reconfigure(errors="backslashreplace")
    # Records have no reference cycles, so full garbage collections free nothing. They took a fifth
    # of the time for 100,000 answers.
    gc.set_threshold(100_000, 50, 1000)
    try:
        app()
    except InputError as error:
        _stop(error, 2)
    except QabenchError as error:
        _stop(error, getattr(error, "exit_code", 1))
    except BrokenPipeError:
        # The reader of the output, such as head, has exited.
        _discard_output()
        sys.exit(1)
    except OSError as error:
        # For example, the disk with HF_HOME or with the output file is full.
        _stop(error, 1)
    # A bug. For a benchmark from outside, the message names the line, for its author.
    except Exception as error:
        if (outside := raised_outside(error)) is None:
            raise
        _stop(outside, 1)


def _stop(error: Exception, code: int) -> None:
    advice = _permissions(error) if isinstance(error, OSError) and error.errno in REFUSED else ""
    try:
        write_line(f"qabench: {error}{advice}", sys.stderr)
    except OSError:
        # Standard error is full, or its reader has exited.
        _discard_output()
    if isinstance(error, OSError):
        _discard_output()
    sys.exit(code)


def _permissions(error: OSError) -> str:
    """Return advice after a permission error. Environment variables can move the caches."""
    from qabench.io.files import cache_dir

    folders = [cache_dir()]
    for name in ("HF_HOME", "XDG_DATA_HOME"):
        if value := os.environ.get(name):
            folders.append(Path(value))
    # On Linux and macOS, caches are in these folders unless a variable names another one.
    for default in ("~/.cache", "~/.local", "~/Library"):
        folders.append(Path(os.path.expanduser(default)))
    path = Path(os.path.abspath(os.fsdecode(error.filename or "/")))
    is_cache = False
    for folder in folders:
        # A missing cache folder is created with its parents, so the path that fails may be a
        # parent.
        is_cache = is_cache or path.is_relative_to(folder) or folder.is_relative_to(path)
    return FOLDERS if is_cache else "; change its permissions, or name another file or folder"


def _discard_output() -> None:
    """Send the remaining output to /dev/null, so that the flush at exit does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
