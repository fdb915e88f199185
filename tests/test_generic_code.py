"""Generic code knows benchmarks only through their descriptors: their names do not occur in it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src/qabench"
GENERIC = (
    *("report", "runs", "hub", "space", "lm_eval", "llm", "models", "stats", "evaluation", "tasks", "cli"),
    *("data", "loading.py", "adapters", "benchmarks/base.py", "benchmarks/published.py"),
    *("inspect_tasks.py", "citations.py", "benchmarks/reproduction.py"),
)
QUICKSTART = "cli/quickstart.py"  # shows one benchmark
NAMES = re.compile(r"fan[-_ ]?out|expert[-_ ]?qa|(?<![a-z])felm|fast[-_ ]?book", re.IGNORECASE)
SKIPPED = {tokenize.ENCODING, tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT}


def files() -> list[str]:
    found = [path for name in GENERIC for path in (ROOT / name).rglob("*.py")]
    found += [ROOT / name for name in GENERIC if name.endswith(".py")]
    return sorted({str(path.relative_to(ROOT)) for path in found} - {QUICKSTART})


def docstring_lines(tree: ast.AST) -> set[int]:
    """The numbers of the lines of all docstrings: documentation may use a benchmark as its example."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for statement in body:  # also the strings that document attributes
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                lines |= set(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return lines


def named(source: str) -> Iterator[str]:
    """Each token of code, strings and comments that names a benchmark, with its line."""
    documented = docstring_lines(ast.parse(source))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SKIPPED and token.start[0] not in documented and NAMES.search(token.string):
            yield f"line {token.start[0]}: {token.string[:80]}"


@pytest.mark.parametrize("file", files())
def test_no_benchmark_is_named(file: str) -> None:
    found = list(named((ROOT / file).read_text(encoding="utf-8")))
    assert not found, f"{file} must ask the benchmark's descriptor (qabench.benchmarks)"


def test_every_spelling_is_found() -> None:
    source = '"""FELM."""\nFANOUTQA = 1\nx = "Expert QA"\n# fast_book\nfrom a.felm import b\nanfelm = "fan-out"\n'
    assert [line.partition(":")[0] for line in named(source)] == ["line 2", "line 3", "line 4", "line 5", "line 6"]
