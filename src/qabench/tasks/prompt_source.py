"""Official prompts read from the authors' Python files. The files are parsed, never imported or executed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from qabench.errors import InputError

_NO_FIELDS: Mapping[str, str] = {}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class PromptSource:
    """The strings of a Python source file, as templates with fields such as ``{question}``; see ``Prompt``.

    An expression that builds a string becomes a template: string constants, f-strings, concatenation with ``+``, and
    ``"...{}...".format(...)`` are followed; any other expression in them becomes a field. A field is named like the
    variable it comes from; other names and other expressions are given by ``fields``. Braces that are part of the
    string itself are kept.

    The methods take ``within``, the scope: "function", "Class.method", or "" for the module including its ``if``
    blocks. They raise InputError if the statement does not exist.

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
        except (OSError, ValueError, SyntaxError) as error:
            raise InputError(f"{path} is not a Python source file: {error}") from None

    def assigned(self, name: str, within: str = "", *, fields: Mapping[str, str] = _NO_FIELDS, nth: int = 0) -> str:
        """Return the string assigned to a variable.

        Args:
            name: the variable.
            within: the scope.
            fields: expression -> field name, for expressions that are not variables or need another name.
            nth: the position among several assignments, from 0 in the order of the file.
        """
        return _template(self._nth(self._assigned(name, within), nth, f"assignment to {name}", within), fields)

    def returned(self, within: str, *, fields: Mapping[str, str] = _NO_FIELDS, nth: int = 0) -> str:
        """Return the string that a function returns; the arguments are those of ``assigned``."""
        values = [node.value for node in self._statements(within) if isinstance(node, ast.Return) and node.value]
        return _template(self._nth(values, nth, "return", within), fields)

    def appended(self, name: str, within: str, *, fields: Mapping[str, str] = _NO_FIELDS) -> list[str]:
        """Return the strings that a function appends to a variable with ``+=``; a single variable becomes a field."""
        added = [node for node in self._statements(within) if isinstance(node, ast.AugAssign)]
        return [_template(node.value, fields) for node in added if ast.unparse(node.target) == name]

    def constants(self, name: str, within: str) -> list[str]:
        """Return all string constants in the first assignment to a variable, such as those of a list of messages."""
        value = self._nth(self._assigned(name, within), 0, f"assignment to {name}", within)
        constants = [node for node in ast.walk(value) if isinstance(node, ast.Constant)]
        constants.sort(key=lambda node: (node.lineno, node.col_offset))  # ast.walk is breadth-first
        return [node.value for node in constants if isinstance(node.value, str)]

    def docstring(self, within: str) -> str:
        """Return the docstring of a function or class, with its indentation removed; "" if there is none."""
        scope = self._scope(within)
        return (ast.get_docstring(scope) if isinstance(scope, _SCOPES) else None) or ""

    def _assigned(self, name: str, within: str) -> list[ast.expr]:
        assignments = [node for node in self._statements(within) if isinstance(node, ast.Assign)]
        return [node.value for node in assignments if name in map(ast.unparse, node.targets)]

    def _statements(self, within: str) -> list[ast.AST]:
        return list(_statements(self._scope(within)))

    def _scope(self, within: str) -> ast.AST:
        scope: ast.AST = self._module
        for name in filter(None, within.split(".")):
            inner = [node for node in _statements(scope) if isinstance(node, _SCOPES) and node.name == name]
            if not inner:
                raise InputError(f"{self.path} has no {within}; is it the right file?")
            scope = inner[0]
        return scope

    def _nth(self, values: list[ast.expr], nth: int, what: str, within: str) -> ast.expr:
        if nth >= len(values):
            raise InputError(f"{self.path}, {within}: there is no {what} (number {nth + 1}); is it the right file?")
        return values[nth]


def _statements(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements of a scope and of its blocks, in order; functions and classes in it are not entered."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node
            if not isinstance(node, _SCOPES):
                yield from _statements(node)


def _template(node: ast.expr, fields: Mapping[str, str]) -> str:
    """Return an expression as a template: unchanged text, and a field for every part that is not a string."""
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
            for value in values:
                template = template.replace("{}", _template(value, fields), 1)
            return template
    expression = ast.unparse(node)
    return f"{{{fields.get(expression, expression)}}}"
