"""Official prompts read from the authors' Python files. The files are parsed, never imported or executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from qabench.errors import InputError
from qabench.tasks.prompts import FIELD

_NO_FIELDS: Mapping[str, str] = {}
_PLACE = re.compile(r"\{\}")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


class PromptSource:
    """The strings of a Python source file, as templates with fields such as ``{question}``; see ``Prompt``.

    An expression that builds a string becomes a template: string constants, f-strings, concatenation with ``+``, and
    ``"...{}...".format(...)`` are followed; any other expression in them becomes a field. A field is named like the
    variable it comes from; other names and other expressions are given by ``fields``. Braces that are part of the
    string itself are kept.

    The methods take ``within``, the scope: "function", "Class.method", or "" for the module including its ``if``
    blocks. They raise InputError if the statement does not exist, or does not build a string from named parts.

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

    def assigned(self, name: str, within: str = "", *, fields: Mapping[str, str] = _NO_FIELDS, nth: int = 0) -> str:
        """Return the string assigned to a variable.

        Args:
            name: the variable.
            within: the scope.
            fields: expression -> field name, for expressions that are not variables or need another name.
            nth: the position among several assignments, from 0 in the order of the file.
        """
        return self._template(self._assigned(name, within), nth, f"assignment to {name}", within, fields)

    def returned(self, within: str, *, fields: Mapping[str, str] = _NO_FIELDS, nth: int = 0) -> str:
        """Return the string that a function returns; the arguments are those of ``assigned``."""
        values = [
            node.value
            for node in _statements(self._scope(within))
            if isinstance(node, ast.Return) and node.value is not None
        ]
        return self._template(values, nth, "return", within, fields)

    def appended(self, name: str, within: str = "", *, fields: Mapping[str, str] = _NO_FIELDS) -> list[str]:
        """Return the strings that a function appends to a variable with ``+=``; a single variable becomes a field."""
        values = [
            node.value
            for node in _statements(self._scope(within))
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name
        ]
        if not values:
            raise InputError(f"{self._place(within)} does not append to {name}; is it the right file?")
        return ["".join(_parts(node, fields, self._place(within))) for node in values]

    def constants(self, name: str, within: str = "") -> list[str]:
        """Return all string constants in the first assignment to a variable, such as those of a list of messages."""
        for value in self._assigned(name, within):
            constants = [node for node in ast.walk(value) if isinstance(node, ast.Constant)]
            constants.sort(key=lambda node: (node.lineno, node.col_offset))  # ast.walk is breadth-first
            return [node.value for node in constants if isinstance(node.value, str)]
        raise InputError(f"{self._place(within)} has no assignment to {name}")

    def docstring(self, within: str) -> str:
        """Return the docstring of a function or class, with its indentation removed."""
        scope = self._scope(within)
        text = ast.get_docstring(scope) if isinstance(scope, _SCOPES) else None
        if text is None:
            raise InputError(f"{self.path}: {within} has no docstring")
        return text

    def _assigned(self, name: str, within: str) -> list[ast.expr]:
        return [
            node.value
            for node in _statements(self._scope(within))
            if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets)
        ]

    def _scope(self, within: str) -> ast.AST:
        scope: ast.AST = self._module
        for name in filter(None, within.split(".")):
            inner = (n for n in _statements(scope) if isinstance(n, _SCOPES) and getattr(n, "name", None) == name)
            if (named := next(inner, None)) is None:
                raise InputError(f"{self.path} has no {within}; is it the right file?")
            scope = named
        return scope

    def _template(self, values: list[ast.expr], nth: int, what: str, within: str, fields: Mapping[str, str]) -> str:
        place = self._place(within)
        if nth >= len(values):
            raise InputError(f"{place} has no {what} (number {nth + 1}); is it the right file?")
        template = "".join(_parts(values[nth], fields, place))
        if not FIELD.sub("", template).strip():
            raise InputError(f"{place}: the {what} is not a string")
        return template

    def _place(self, within: str) -> str:
        return f"{self.path}, {within}" if within else str(self.path)


def _statements(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a scope and of its blocks, in order; functions and classes in it are not entered."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node
            if not isinstance(node, _SCOPES):
                yield from _statements(node)


def _parts(node: ast.expr, fields: Mapping[str, str], place: str) -> Iterator[str]:
    """Yield the pieces of a template: unchanged text, and a field for every other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from _part_of_fstring(part, fields, place)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _parts(node.left, fields, place)
        yield from _parts(node.right, fields, place)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        yield _formatted(node, node.func.value, fields, place)
    else:
        yield _field(node, fields, place)


def _part_of_fstring(part: ast.expr, fields: Mapping[str, str], place: str) -> Iterator[str]:
    if isinstance(part, ast.FormattedValue):
        if part.format_spec is not None or part.conversion != -1:
            raise InputError(f"{place}, line {part.lineno}: {ast.unparse(part.value)!r} has a format specification")
        part = part.value
    elif isinstance(part, ast.Constant) and FIELD.search(str(part.value)):
        # In the template it could not be distinguished from a field.
        raise InputError(f"{place}, line {part.lineno}: the text looks like a field: {part.value!r:.60}")
    yield from _parts(part, fields, place)


def _formatted(call: ast.Call, text: ast.expr, fields: Mapping[str, str], place: str) -> str:
    template = "".join(_parts(text, fields, place))
    values = ["".join(_parts(value, fields, place)) for value in call.args]
    if call.keywords or len(_PLACE.findall(template)) != len(values):
        raise InputError(f"{place}, line {call.lineno}: a format call with fields other than {{}} is not supported")
    remaining = iter(values)
    return _PLACE.sub(lambda _: next(remaining), template)


def _field(node: ast.expr, fields: Mapping[str, str], place: str) -> str:
    expression = ast.unparse(node)
    field = f"{{{fields.get(expression, expression)}}}"
    if not FIELD.fullmatch(field):
        raise InputError(f"{place}, line {node.lineno}: the field {expression!r} has no name; name it with fields=")
    return field
