"""The strings of the authors' Python files, which are parsed and never executed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from qabench.errors import InputError

_NO_FIELDS: Mapping[str, str] = {}
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class PromptSource:
    """The strings of a Python source file, as templates with fields such as ``{question}``.

    An expression that builds a string becomes a template: string constants, f-strings,
    concatenation with ``+``, and ``"...{}...".format(...)`` are followed. Any other expression in
    them becomes a field. A field has the name of its variable. ``fields`` can rename it, and names
    the fields of other expressions. Braces that are part of the string itself are kept.

    The methods take ``within``, the scope: "function", "Class.method", or "" for the module
    including its ``if`` blocks. They raise InputError if the statement does not exist.

    Args:
        path: the file, such as one from ``DatasetTable.open_path``.

    Raises:
        InputError: the file cannot be read or is not Python source.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Parsing may warn about the authors' code, which is not executed.
            with warnings.catch_warnings(action="ignore"):
                self._module = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError) as error:
            raise InputError(f"{path} is not a Python source file: {error}") from None

    def assigned(
        self, name: str, within: str = "", *, fields: Mapping[str, str] = _NO_FIELDS, nth: int = 0
    ) -> str:
        """Return the string assigned to a variable.

        Args:
            name: the variable.
            within: the scope.
            fields: expression -> field name, for expressions that are not variables or need another
                name.
            nth: the position among several assignments, from 0 in the order of the file.
        """
        return _template(self._values(ast.Assign, name, within, nth)[nth], fields)

    def returned(self, within: str, *, fields: Mapping[str, str] = _NO_FIELDS, nth: int = 0) -> str:
        """Return the string that a function returns. The arguments are as in ``assigned``."""
        return _template(self._values(ast.Return, "", within, nth)[nth], fields)

    def appended(
        self, name: str, within: str, *, fields: Mapping[str, str] = _NO_FIELDS
    ) -> list[str]:
        """Return the strings that a function appends to a variable with ``+=``, as templates."""
        added = self._values(ast.AugAssign, name, within)
        return [_template(value, fields) for value in added]

    def constants(self, name: str, within: str) -> list[str]:
        """Return all string constants in the first assignment to a variable, such as a list."""
        value = self._values(ast.Assign, name, within)[0]
        constants = [node for node in ast.walk(value) if isinstance(node, ast.Constant)]
        # ``ast.walk`` is breadth-first, but the parts of a prompt have the order of the file.
        constants.sort(key=lambda node: (node.lineno, node.col_offset))
        return [node.value for node in constants if isinstance(node.value, str)]

    def docstring(self, within: str) -> str:
        """Return the dedented docstring of a function or class, or "" if there is none."""
        return ast.get_docstring(self._scope(within)) or ""

    def _scope(self, within: str) -> ast.Module | _Definition:
        scope: ast.Module | _Definition = self._module
        for name in filter(None, within.split(".")):
            definitions = [node for node in _statements(scope) if isinstance(node, _Definition)]
            named = [node for node in definitions if node.name == name]
            if not named:
                raise InputError(f"{self.path} has no {within}; is it the right file?")
            scope = named[0]
        return scope

    def _values(self, kind: type[ast.stmt], name: str, within: str, nth: int = 0) -> list[ast.expr]:
        """Return the values of the statements of a kind that assign to ``name`` ("" for all).

        Raises:
            InputError: there are not more than ``nth`` of them.
        """
        values = []
        for node in _statements(self._scope(within)):
            if not isinstance(node, kind) or not _assigns(node, name):
                continue
            value = getattr(node, "value", None)
            # A bare ``return`` has no value.
            if value:
                values.append(value)
        if nth >= len(values):
            scope = str(self.path)
            if within:
                scope += f", {within}"
            what = f"assignment to {name}" if name else "return"
            raise InputError(
                f"{scope}: there is no {what} (number {nth + 1}); is it the right file?"
            )
        return values


def _assigns(node: ast.AST, name: str) -> bool:
    """Tell whether a statement assigns to the variable. Every statement does if the name is ""."""
    if not name:
        return True
    # An assignment has several targets (a = b = 1), and ``+=`` has one.
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    for target in targets:
        if target and ast.unparse(target) == name:
            return True
    return False


def _statements(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a scope and of its blocks, in order, without inner scopes."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node
            if not isinstance(node, _Definition):
                yield from _statements(node)


def _template(node: ast.expr, fields: Mapping[str, str]) -> str:
    """Return an expression as a template: text unchanged, every other part as a field."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_template(part, fields) for part in parts)
        case ast.FormattedValue(value=value):
            return _template(value, fields)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _template(left, fields) + _template(right, fields)
        case ast.Call(func=ast.Attribute(value=text, attr="format"), args=values):
            template = _template(text, fields)
            # Each argument fills the first field that is still empty.
            for value in values:
                template = template.replace("{}", _template(value, fields), 1)
            return template
    expression = ast.unparse(node)
    return f"{{{fields.get(expression, expression)}}}"
