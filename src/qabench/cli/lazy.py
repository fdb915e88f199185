"""A group of commands that imports a command's module only when that command runs."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from qabench.benchmarks import benchmark, benchmark_names
from qabench.cli.quiet import set_quiet

Sections = Mapping[str, Mapping[str, tuple[str, str]]]
BENCHMARKS = "Benchmarks"


class Command(TyperCommand):
    """A command that lists its options when it gets an unknown one."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Same as click's, but the error for an unknown option lists all options of the command."""
        if ctx.resilient_parsing and args and args[-1].startswith("-"):
            args = args[:-1]  # the option being completed has no value yet, at which click would parse no argument
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if hasattr(error, "possibilities"):
                error.possibilities = [option for param in self.params for option in param.opts if option[:2] == "--"]
            raise


class Group(TyperGroup):
    """A group of commands whose help does not import pydantic, which takes longer than everything else."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Same as Typer's. It would convert the default None of a flag by pydantic, but does not convert bools."""
        for parameter in self.get_params(ctx):
            if getattr(parameter, "is_flag", False) and parameter.default is None:
                parameter.default = False
        return super().parse_args(ctx, args)


class LazyGroup(Group):
    """The top-level commands of ``sections``, and one group per benchmark with specific commands."""

    sections: ClassVar[Sections] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, without importing a command."""
        return [*(name for commands in self.sections.values() for name in commands), *_with_commands()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command with this name, or None."""
        references = {name: of[0] for commands in self.sections.values() for name, of in commands.items()}
        if cmd_name in references:
            module, _, attribute = references[cmd_name].partition(":")
            return command_of(cmd_name, getattr(importlib.import_module(module), attribute))
        return _benchmark_group(cmd_name) if cmd_name in _with_commands() else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Same as click's, but the error for an unknown name lists the valid names."""
        if args and not args[0].startswith("-") and not self._has(args[0]):
            ctx.fail(unknown_name("command", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def _has(self, name: str) -> bool:
        return any(name in commands for commands in self.sections.values()) or name in _with_commands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The help's list of commands, by section."""
        own = {name: f"Commands of {benchmark(name).title}: {', '.join(of)}." for name, of in _with_commands().items()}
        sections = {title: {name: of[1] for name, of in commands.items()} for title, commands in self.sections.items()}
        for title, commands in {**sections, BENCHMARKS: own}.items():
            if commands:
                with formatter.section(title):
                    formatter.write_dl(list(commands.items()))


def command_of(name: str, command: Any) -> Any:
    """The click command of a function or of a Typer application."""
    if isinstance(command, typer.Typer):
        command.info.cls = Group
        group = typer.main.get_command(command)
        group.name = name
        return group
    wrapper = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    wrapper.command(name, cls=Command)(_with_quiet(command))
    return typer.main.get_command(wrapper)


def with_parameters(function: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """The function with additional keyword parameters in the signature that Typer reads."""
    signature = inspect.signature(function, eval_str=True)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]

    @functools.wraps(function)
    def extended(**values: Any) -> None:
        function(**values)

    everything = [*own, *parameters]
    extended.__signature__ = signature.replace(parameters=everything)  # type: ignore[attr-defined]
    extended.__annotations__ = {one.name: one.annotation for one in everything}
    return extended


def _with_quiet(function: Callable[..., None]) -> Callable[..., None]:
    quiet = Annotated[bool, typer.Option("--quiet", help="Do not print progress and hints.")]

    @functools.wraps(function)
    def run(quiet: bool = False, **values: Any) -> None:
        set_quiet(quiet)
        function(**values)

    parameter = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=quiet)
    return with_parameters(run, [parameter])


def unknown_name(kind: str, name: str, allowed: list[str]) -> str:
    """An error message for an unknown name, with the closest valid one and all valid ones."""
    close = difflib.get_close_matches(name, allowed, 1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"No such {kind} {name!r}{hint}; allowed: {', '.join(allowed)}"


def _with_commands() -> dict[str, list[str]]:
    """The benchmarks with specific commands, and the names of these commands."""
    return {name: list(benchmark(name).commands) for name in benchmark_names() if benchmark(name).commands}


def _benchmark_group(name: str) -> Any:
    module = importlib.import_module(f"qabench.benchmarks.{name}.commands")
    names = benchmark(name).commands
    return Group(
        name=name,
        commands={command: command_of(command, getattr(module, command)) for command in names},
        help=f"Commands of {benchmark(name).title}.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
