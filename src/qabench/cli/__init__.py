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
from typing import Annotated, Any

import typer
from typer import Exit, Option
from typer.core import TyperCommand, TyperGroup

from qabench.benchmarks import benchmark, benchmark_names, shipped_names
from qabench.cli.output import set_quiet
from qabench.errors import InputError, QabenchError, unknown_name
from qabench.evaluation.signature import version
from qabench.io.tables import write_line
from qabench.loading_scripts import custom_folders, custom_module, outside_error, raised_outside

DATA, HUB = "qabench.cli.data", "qabench.cli.hub"
MACHINE, RETRIEVE = "qabench.cli.machine", "qabench.cli.retrieve"
REPORTS, SCORE = "qabench.cli.reports", "qabench.cli.score"
# Section of the help -> command -> (module, function or Typer application in it, help in one line).
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
        "leaderboard": (REPORTS, "leaderboard", "Rank systems: published, on the Hub, and your own."),
        "report": (REPORTS, "report", "Write an HTML report of runs."),
        "results": (HUB, "results", "Turn scores into entries for a model's page on the Hub."),
    },
    "Models": {
        "run": ("qabench.cli.run", "run", "Run a model over a benchmark and score its answers."),
        "export": (REPORTS, "export", "Write a run's answers as predictions or records."),
        "path": (MACHINE, "path", "Print the path of a folder for another program."),
        "cache": (MACHINE, "cache_app", "Show the size of the caches, clear model replies."),
        "env": (MACHINE, "env", "Print versions, models, caches and environment variables."),
    },
    "Retrieval": {
        "retrieve": (RETRIEVE, "retrieve", "Rank the rows of a file or dataset for queries, by BM25."),
        "wiki": (
            RETRIEVE,
            "wiki_app",
            "Wikipedia as of the dataset's epoch, and the cache of its pages.",
        ),
    },
}


# What the help calls a value, by Typer's name of its type.
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
OUTSIDE = "qabench.outside"  # in a context's meta: the benchmark from outside that the arguments name
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
FOLDERS = (
    "; set HF_HOME (Hugging Face's caches), QABENCH_CACHE (qabench's) or XDG_DATA_HOME (Inspect AI's) to a folder "
    "that you can write to"
)


class _ShortHelp:
    """A command whose help is quick, and names values instead of Python types.

    Typer imports pydantic to convert None, the default of ``--help``.
    """

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters.

        Flags that only call a function are False by default.
        """
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
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # raised again in every case
            if hasattr(error, "possibilities"):
                error.possibilities = [
                    option for param in self.params for option in param.opts if option[:2] == "--"
                ]
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the command's name in the usage."""
        return ["[OPTIONS]"] + [
            str(each.metavar) if each.required else f"[{each.metavar}]"
            for each in self.params
            if each.param_type_name == "argument"
        ]


class CommandGroup(_ShortHelp, TyperGroup):
    """A group of commands whose error for an unknown name lists the valid names."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to run."""
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names:
            ctx.fail(str(unknown_name("No such command", args[0], names)))
        return super().resolve_command(ctx, args)


class TopLevel(CommandGroup):
    """The top-level commands, and one group per benchmark with specific commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to run. A benchmark from outside is imported only if it is named."""
        words = [word.removeprefix("--benchmark=").removeprefix("qabench/") for word in args[1:]]
        benchmarks = [word for word in words if word in benchmark_names()]
        if benchmarks and benchmarks[0] in custom_folders():
            ctx.meta[OUTSIDE] = benchmarks[0]
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names, without importing a command."""
        return [*(name for commands in COMMANDS.values() for name in commands), *_with_commands()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with this name, or None."""
        for commands in COMMANDS.values():
            if cmd_name in commands:
                module, attribute, _ = commands[cmd_name]
                command = getattr(importlib.import_module(module), attribute)
                if module == SCORE:  # the options depend on the benchmark
                    command = command(ctx.meta.get(OUTSIDE) if ctx else None)
                return command_of(cmd_name, command)
        return _benchmark_group(cmd_name) if cmd_name in _with_commands() else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands to the help, by section."""
        sections = {
            title: [(name, about) for name, (_, _, about) in commands.items()]
            for title, commands in COMMANDS.items()
        }
        sections["Benchmarks"] = [
            (name, f"Commands of {benchmark(name).title}: {', '.join(benchmark(name).commands)}.")
            if name in shipped_names()
            else (name, f"Commands of {name}.")
            for name in _with_commands()
        ]
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def command_of(name: str, command: Any) -> Any:
    """Return the click command of a function or of a Typer application."""
    if isinstance(command, typer.Typer):
        functions = {str(info.name): info.callback for info in command.registered_commands}
        return _group(name, str(command.info.help), functions)
    wrapper = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    wrapper.command(name, cls=Command)(_with_common_options(command))
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
    """Return the names of the benchmarks that have specific commands. Those from outside are not imported."""
    names = [name for name in shipped_names() if benchmark(name).commands]
    for name, folder in custom_folders().items():
        if os.path.isfile(folder / "commands.py") or os.path.isfile(folder / "commands/__init__.py"):
            names.append(name)
    return sorted(names)


def _benchmark_group(name: str) -> CommandGroup:
    benchmark(name)
    package = custom_module(name) if name in custom_folders() else f"qabench.benchmarks.{name}"
    try:
        module = importlib.import_module(f"{package}.commands")
    except BaseException as error:  # code from outside may raise anything, also SystemExit
        if name in shipped_names() or isinstance(error, KeyboardInterrupt):
            raise
        what = f"the commands of the benchmark {name} cannot be imported"
        raise outside_error(what, error, custom_folders()[name]) from error
    about = f"Commands of {benchmark(name).title} only. Others take its name: qabench score {name} FILE"
    functions = {command: getattr(module, command) for command in benchmark(name).commands}
    return _group(name, about, functions)


def with_parameters(
    function: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Return the function with additional keyword parameters in the signature that Typer reads."""
    signature = inspect.signature(function, eval_str=True)
    own = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]

    @functools.wraps(function)
    def extended(**values: Any) -> None:
        function(**values)

    everything = [*own, *parameters]
    extended.__signature__ = signature.replace(parameters=everything)  # type: ignore[attr-defined]
    extended.__annotations__ = {parameter.name: parameter.annotation for parameter in everything}
    return extended


def _with_common_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add --quiet to a command, and --json to one that prints tables in a ``Format``, which is checked here."""
    from qabench.cli.options import FORMATS, AsJson, Format, Quiet

    table_format = inspect.signature(function, eval_str=True).parameters.get("format")
    has_tables = table_format is not None and table_format.annotation == Format

    @functools.wraps(function)
    def run(quiet: bool = False, **values: Any) -> None:
        set_quiet(quiet)
        if has_tables and values["format"] not in FORMATS:
            raise unknown_name("unknown format", values["format"], FORMATS)
        if has_tables and values.pop("as_json"):
            values["format"] = "json"
        function(**values)

    kind = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter("quiet", kind, default=False, annotation=Quiet)]
    if has_tables:
        added.append(inspect.Parameter("as_json", kind, default=False, annotation=AsJson))
    return with_parameters(run, added)


app = typer.Typer(
    name="qabench",
    cls=TopLevel,
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


_VERSION = Option("-V", "--version", help="Print the version.", callback=_print_version, is_eager=True)


@app.callback()
def _options(version: Annotated[bool, _VERSION] = False) -> None:
    pass


def main() -> None:
    """Run a command, and print errors as one line instead of a traceback."""
    if None in (sys.stdout, sys.stderr):  # a file opened next would get the descriptor, and the text
        write_line(
            "qabench: standard output or error is closed; redirect it, such as to /dev/null",
            sys.stderr or sys.stdout,
        )
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if sys.platform == "win32" and not stream.isatty():  # else 256 characters in pipes
                stream.reconfigure(encoding="utf-8")
            stream.reconfigure(errors="backslashreplace")
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
        _stop(error, 1)
    except (
        Exception
    ) as error:  # a bug: of a benchmark from outside, whose author gets its line, or of this package
        if (outside := raised_outside(error)) is None:
            raise
        _stop(outside, 1)


def _stop(error: Exception, code: int) -> None:
    advice = _permissions(error) if isinstance(error, OSError) and error.errno in REFUSED else ""
    try:
        write_line(f"qabench: {error}{advice}", sys.stderr)
    except OSError:  # standard error is full, or its reader has exited
        _discard_output()
    if isinstance(error, OSError):
        _discard_output()
    sys.exit(code)


def _permissions(error: OSError) -> str:
    """Return what to do about a file or folder that may not be used: it is in a cache, or the user named it."""
    from pathlib import Path

    from qabench.io.files import cache_dir

    named = (os.environ.get(name) for name in ("HF_HOME", "XDG_DATA_HOME"))
    defaults = map(os.path.expanduser, ("~/.cache", "~/.local", "~/Library"))
    path = Path(os.path.abspath(os.fsdecode(error.filename or "/")))
    is_cache = False
    for folder in [cache_dir(), *map(Path, filter(None, named)), *map(Path, defaults)]:
        # The folders of a cache are made from the top: the first one that cannot be made may be above it.
        is_cache = is_cache or path.is_relative_to(folder) or folder.is_relative_to(path)
    return FOLDERS if is_cache else "; change its permissions, or name another file or folder"


def _discard_output() -> None:
    """Send the remaining output to /dev/null, so that the flush at exit does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
