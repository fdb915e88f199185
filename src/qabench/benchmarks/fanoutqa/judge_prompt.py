"""FanOutQA's official judge prompt, read from its authors' source file. The file is parsed, never run or imported."""

from __future__ import annotations

import ast
import warnings
from importlib.util import find_spec
from pathlib import Path

from qabench.errors import InputError, MissingExtra
from qabench.prompts.template import Prompt

FUNCTION = "factuality_prompt"
SYSTEM = "factuality_system"
# The digest of the text in all versions so far (the model changed, the text never); another one is another text.
KNOWN_DIGEST = "b60545761d84"


def official_prompt(path: Path | None = None) -> Prompt:
    """The official prompt; named "official" where its text is the known one, else "official-changed", with a warning.

    Args:
        path: the authors' ``fanoutqa/eval/llm.py``; None for that of the installed ``fanoutqa`` distribution.

    Raises:
        MissingExtra: fanoutqa is not installed.
        InputError: the file cannot be read, or holds no prompt of the expected form.
    """
    path = path or _installed()
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{path} is no Python source file: {error}") from None
    except SyntaxError as error:
        raise InputError(f"{path} is no Python source file: {error.msg} in line {error.lineno}") from None
    prompt = Prompt("official", _returned_text(tree, path), _constant(tree, path))
    if prompt.digest == KNOWN_DIGEST:
        return prompt
    warnings.warn(f"the judge prompt in {path} is not the one known as official; results may not compare", stacklevel=2)
    return Prompt("official-changed", prompt.user, prompt.system)


def _installed() -> Path:
    spec = find_spec("fanoutqa")
    for folder in (spec and spec.submodule_search_locations) or ():
        if (path := Path(folder) / "eval" / "llm.py").is_file():
            return path
    raise MissingExtra(
        'prompt="official" reads the text of the fanoutqa distribution, which is not installed: '
        "pip install 'qabench[parity]', or give its authors' fanoutqa/eval/llm.py as the prompt"
    )


def _returned_text(tree: ast.Module, path: Path) -> str:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == FUNCTION:
            for statement in node.body:
                if isinstance(statement, ast.Return) and statement.value is not None:
                    return _text(statement.value, path)
    raise InputError(f"{path} has no function {FUNCTION} that returns a text; is it fanoutqa/eval/llm.py?")


def _text(node: ast.expr, path: Path) -> str:
    """A string or f-string as a template: its plain parts, and a field for each variable."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, path) for part in node.values)
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name) and node.format_spec is None:
        return f"{{{node.value.id}}}"
    raise InputError(f"{path}, line {node.lineno}: {FUNCTION} does more than fill texts in; its prompt cannot be read")


def _constant(tree: ast.Module, path: Path) -> str:
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [SYSTEM]:
            return _text(node.value, path)
    raise InputError(f"{path} has no text {SYSTEM}; is it fanoutqa/eval/llm.py?")
