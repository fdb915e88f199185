"""Official prompts read from the authors' Python files. The files are parsed, never imported or executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from qabench.errors import InputError
from qabench.prompts.template import FIELD

_NOTHING: Mapping[str, str] = {}
_PLACE = re.compile(r"\{\}")


class PromptSource:
    """The strings of a Python source file, as templates with fields such as ``{question}``; see ``Prompt``.

    An expression that builds a string becomes a template: string constants, f-strings, concatenation with ``+``, and
    ``"...{}...".format(...)`` are followed; any other expression in them becomes a field. A field is named like the
    variable it comes from; other names and other expressions are given by ``fields``. Braces that are part of the
    string itself are kept.

    Args:
        path: the file, such as one from ``qabench.loading_scripts.open_path``.

    Raises:
        InputError: the file cannot be read or is not Python source.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with warnings.catch_warnings(action="ignore"):  # about the authors' code, which is not executed
                self._module = ast.parse(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None
        except (ValueError, SyntaxError) as error:
            raise InputError(f"{path} is not a Python source file: {error}") from None

    def assigned(self, name: str, within: str = "", *, fields: Mapping[str, str] = _NOTHING, nth: int = 0) -> str:
        """The string assigned to a variable.

        Args:
            name: the variable.
            within: the scope, "function" or "Class.method"; "" for the module, including its ``if`` blocks.
            fields: expression -> field name, for expressions that are not variables or need another name.
            nth: the position among several assignments, from 0 in the order of the file.

        Raises:
            InputError: the assignment does not exist, or does not build a string from named parts.
        """
        found = [
            node.value
            for node in _statements(self._scope(within))
            if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets)
        ]
        return self._template(found, nth, f"assignment to {name}", within, fields)

    def returned(self, within: str, *, fields: Mapping[str, str] = _NOTHING, nth: int = 0) -> str:
        """The string that a function returns; arguments and errors as for ``assigned``."""
        found = [
            node.value
            for node in _statements(self._scope(within))
            if isinstance(node, ast.Return) and node.value is not None
        ]
        return self._template(found, nth, "return", within, fields)

    def appended(self, name: str, within: str = "", *, fields: Mapping[str, str] = _NOTHING) -> list[str]:
        """The strings that a function appends to a variable with ``+=``, in the order of the file.

        The arguments are those of ``assigned``; a single variable becomes a field.

        Raises:
            InputError: nothing is appended, or a string is not built from named parts.
        """
        where = f"{self.path}{f', {within}' if within else ''}"
        found = [
            node.value
            for node in _statements(self._scope(within))
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name
        ]
        if not found:
            raise InputError(f"{where} does not append to {name}; is it the right file?")
        return ["".join(_parts(node, fields, where)) for node in found]

    def constants(self, name: str, within: str = "") -> list[str]:
        """All string constants in the first assignment to a variable, such as those of a list of messages.

        Raises:
            InputError: the assignment does not exist.
        """
        for node in _statements(self._scope(within)):
            if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
                found = [part for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
                # ast.walk is breadth-first, so sort by position.
                found.sort(key=lambda part: (part.lineno, part.col_offset))
                return [part.value for part in found if isinstance(part.value, str)]
        raise InputError(f"{self.path}{f', {within}' if within else ''} has no assignment to {name}")

    def docstring(self, within: str) -> str:
        """The docstring of a function or class, with its indentation removed.

        Raises:
            InputError: the function or class does not exist, or has no docstring.
        """
        scope = self._scope(within)
        text = ast.get_docstring(scope) if isinstance(scope, _SCOPES) else None
        if text is None:
            raise InputError(f"{self.path}: {within} has no docstring")
        return text

    def _scope(self, within: str) -> ast.AST:
        scope: ast.AST = self._module
        for name in filter(None, within.split(".")):
            named = [n for n in _statements(scope) if isinstance(n, _SCOPES) and getattr(n, "name", None) == name]
            if not named:
                raise InputError(f"{self.path} has no {within}; is it the right file?")
            scope = named[0]
        return scope

    def _template(self, found: Sequence[ast.expr], nth: int, what: str, within: str, fields: Mapping[str, str]) -> str:
        where = f"{self.path}{f', {within}' if within else ''}"
        if nth >= len(found):
            raise InputError(f"{where} has no {what} (number {nth + 1}); is it the right file?")
        template = "".join(_parts(found[nth], fields, where))
        if not FIELD.sub("", template).strip():
            raise InputError(f"{where}: the {what} is not a string")
        return template


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def _statements(scope: ast.AST) -> Iterator[ast.AST]:
    """The statements of a scope and of its blocks, in order; functions and classes in it are not entered."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node
            if not isinstance(node, _SCOPES):
                yield from _statements(node)


def _parts(node: ast.expr, fields: Mapping[str, str], where: str) -> Iterator[str]:
    """The pieces of a template: unchanged text, and a field for every other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from _part_of_fstring(part, fields, where)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _parts(node.left, fields, where)
        yield from _parts(node.right, fields, where)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        yield _formatted(node, node.func.value, fields, where)
    else:
        yield _field(node, fields, where)


def _part_of_fstring(part: ast.expr, fields: Mapping[str, str], where: str) -> Iterator[str]:
    if isinstance(part, ast.FormattedValue):
        if part.format_spec is not None or part.conversion != -1:
            raise InputError(f"{where}, line {part.lineno}: {ast.unparse(part.value)!r} has a format specification")
        part = part.value
    elif isinstance(part, ast.Constant) and FIELD.search(str(part.value)):
        # In the template it could not be distinguished from a field.
        raise InputError(f"{where}, line {part.lineno}: the text looks like a field: {part.value!r:.60}")
    yield from _parts(part, fields, where)


def _formatted(call: ast.Call, text: ast.expr, fields: Mapping[str, str], where: str) -> str:
    template = "".join(_parts(text, fields, where))
    values = ["".join(_parts(value, fields, where)) for value in call.args]
    if call.keywords or len(_PLACE.findall(template)) != len(values):
        raise InputError(f"{where}, line {call.lineno}: a format call with fields other than {{}} is not supported")
    remaining = iter(values)
    return _PLACE.sub(lambda _: next(remaining), template)


def _field(node: ast.expr, fields: Mapping[str, str], where: str) -> str:
    expression = ast.unparse(node)
    field = f"{{{fields.get(expression, expression)}}}"
    if not FIELD.fullmatch(field):
        raise InputError(f"{where}, line {node.lineno}: the field {expression!r} has no name; name it with fields=")
    return field
