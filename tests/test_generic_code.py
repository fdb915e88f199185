"""Generic code knows benchmarks only through their classes: their names do not occur in it."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from qabench.benchmarks import benchmark, benchmark_names

ROOT = Path(__file__).parent.parent
FOLDERS = ("src/qabench", "retrieval", "loading_scripts", "metrics")
EXCEPTIONS = {
    "src/qabench/__init__.py": "qabench.normalize is the normal form of one benchmark",
    "src/qabench/cli/quickstart.py": "shows one benchmark",
    "src/qabench/io/environment.py": "lists environment variables, also those that the authors' code reads",
    "src/qabench/llm/endpoint.py": "environment variables that the authors' code reads",
    "retrieval/wiki/cache.py": "the folder of the authors' cache",
    "retrieval/wiki/client.py": "environment variables that the authors' code reads",
    "retrieval/wiki/kiwix.py": "environment variables that the authors' code reads",
    "retrieval/wiki/mediawiki.py": "environment variables that the authors' code reads",
}
SKIPPED = {tokenize.ENCODING, tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT}


def spelling(name: str) -> str:
    """A pattern of a name such as "FanOutQA": its words with or without separators; acronyms not
    within words.
    """
    words = re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return "(?<![a-z])" + "[-_ ]?".join(words)


TITLES = [benchmark(name).title for name in benchmark_names()]
NAMES = re.compile("|".join(map(spelling, [*benchmark_names(), *TITLES])), re.IGNORECASE)


def files() -> list[str]:
    """All modules outside of the folders of benchmarks, which have folders for their data and
    metrics, too.
    """
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return sorted(str(path.relative_to(ROOT)) for path in paths if not is_of_benchmark(path.relative_to(ROOT)))


def is_of_benchmark(path: Path) -> bool:
    """A metric belongs to the benchmark that it names."""
    if path.parts[0] == "metrics":
        return path.name != "__init__.py"
    return not set(benchmark_names()).isdisjoint(path.parts)


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
    if file in EXCEPTIONS:
        assert found, f"{file} names no benchmark: remove it from EXCEPTIONS"
    else:
        assert not found, f"{file} must ask the benchmark's class (qabench.benchmarks)"


def test_exceptions_are_generic_files() -> None:
    assert EXCEPTIONS.keys() <= set(files())


def test_the_registry_has_all_benchmarks() -> None:
    folders = {path.parent.name for path in (ROOT / "src/qabench/benchmarks").glob("*/__init__.py")}
    assert folders == set(benchmark_names())


def test_every_spelling_is_found() -> None:
    source = '"""FELM."""\nFANOUTQA = 1\nx = "Expert QA"\n# fastbook\nfrom a.felm import b\nanfelm = "fan-out qa"\n'
    assert [line.partition(":")[0] for line in named(source)] == ["line 2", "line 3", "line 4", "line 5", "line 6"]
