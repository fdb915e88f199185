"""No pattern takes quadratic time: tested with 10,000 and 100,000 adversarial characters."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import qabench
import qabench.loading_scripts
import qabench.metrics
import qabench.retrieval

PARTS = [*" \nA1.!\"')(<{-*_|`:[é²", "a", "[1]", "{}", "a1", "1a", "a.", "a b", "1,", "1.", ". ", ".\n", "\n ", " \n"]
PARTS += ["n't", "'s", "a'", "\ud800", "\u0663", "<search>", "</search>", "https://a", "?a", "segment ", "claim 1."]
PARTS += [
    "Dr",
    "e.g.",
    "sources\n",
    "\n__",
    "\n_a",
    "- ",
    "1. ",
    "\n- ",
    "[1] ",
    "!)",
    '."',
    "yes ",
    "a_",
    "\t",
    "\n[1",
]
SLOW = 0.05  # seconds of this thread for 10,000 characters: a linear pattern takes a tenth of it
# These read only the package's cards and tables.
OWN_FILES = {"qabench.hub.staging._CODE_BLOCK", "qabench.sources.table._REPO"}
SLOWEST = 6  # inputs of each pattern that are tried with 100,000 characters, too
METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
ENDS = ("", "x", "\0")


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every compiled pattern of the package's modules and classes, by name."""
    for module in pkgutil.walk_packages(qabench.__path__, "qabench."):
        if ".metrics." in module.name or module.name.endswith("__main__") or ".lm_eval" in module.name:
            continue
        try:
            found: Any = importlib.import_module(module.name)
        except ImportError:
            continue  # an extra is not installed
        for holder in (found, *(kind for kind in vars(found).values() if isinstance(kind, type))):
            if getattr(holder, "__module__", module.name) != module.name:
                continue
            for name, value in vars(holder).items():
                if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                    yield f"{module.name}.{name}", value


FOUND = dict(patterns())

# These are built at run time from names of this package.
FLAGS = re.compile(r"re\.[A-Z]+( \| re\.[A-Z]+)*")
COMPUTED = {"card.re.sub", "official.re.fullmatch", "submission_metadata.re.search"}


def calls_of_re() -> Iterator[tuple[str, ast.Call]]:
    """Every call such as ``re.search(...)`` in the package that does not define a module's or class's attribute."""
    packages = [
        qabench.__path__,
        qabench.retrieval.__path__,
        qabench.loading_scripts.__path__,
        qabench.metrics.__path__,
    ]
    for path in sorted({file for (folder, *_) in packages for file in Path(folder).rglob("*.py")}):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
        named = {id(node.value) for body in bodies for node in body if isinstance(node, ast.Assign | ast.AnnAssign)}
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and id(node) not in named
                and re.fullmatch(r"re\.\w+", ast.unparse(node.func))
            ):
                yield f"{path.stem}.{ast.unparse(node.func)}", node


def literals() -> Iterator[tuple[str, re.Pattern[str]]]:
    """The patterns of these calls, by name. Raises AssertionError for one that is not a literal."""
    for name, call in calls_of_re():
        if name.endswith(".escape"):
            continue
        if not isinstance(call.args[0], ast.Constant):
            assert name in COMPUTED, f"{name}, line {call.lineno}: test this pattern here, or use a literal"
            continue
        flags = [ast.unparse(given.value) for given in call.keywords if given.arg == "flags"]
        flags += [
            text for text in map(ast.unparse, call.args[1:]) if re.fullmatch(r"re\.[A-Z]+( \| re\.[A-Z]+)*", text)
        ]
        yield f"{name} {call.args[0].value}", re.compile(call.args[0].value, eval(flags[0]) if flags else 0)


LITERALS = dict(literals())


def uses(name: str, pattern: re.Pattern[str]) -> list[Callable[[str], object]]:
    """The methods of a pattern that its module calls; all methods if it calls none by the pattern's name."""
    *_, attribute = name.split(".")
    module = next(sys.modules[part] for part in (name.rsplit(".", n)[0] for n in (1, 2)) if part in sys.modules)
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    called = {found for found in METHODS if re.search(rf"\b{attribute}\.{found}\(", source)}
    calls: dict[str, Callable[[str], object]] = {"search": pattern.search, "match": pattern.match}
    calls |= {"fullmatch": pattern.fullmatch}
    scans = called - set(calls)
    if scans or not called:
        calls["finditer"] = scan(pattern)
        called |= {"finditer"}
    return [call for kind, call in calls.items() if kind in called]


def scan(pattern: re.Pattern[str]) -> Callable[[str], object]:
    return lambda text: deque(pattern.finditer(text), maxlen=0)


def seconds(calls: list[Callable[[str], object]], part: str, size: int, end: str) -> float:
    text = (part * size)[:size] + end
    start = time.thread_time()
    for call in calls:
        call(text)
    return time.thread_time() - start


def fastest(calls: list[Callable[[str], object]], part: str, size: int, end: str, allowed: float) -> float:
    """The shortest of up to five tries; stops at the first within ``allowed``, because machines are shared."""
    tries: list[float] = []
    while len(tries) < 5 and (not tries or min(tries) >= allowed):
        tries.append(seconds(calls, part, size, end))
    return min(tries)


def test_the_patterns_are_found() -> None:
    assert len(FOUND) > 30 and len(LITERALS) > 15


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FOUND.keys() - OWN_FILES))
def test_linear_time(name: str) -> None:
    check_time(uses(name, FOUND[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LITERALS))
def test_linear_time_of_literals(name: str) -> None:
    pattern = LITERALS[name]
    method = name.partition(" ")[0].rpartition(".")[2]
    call = getattr(pattern, method) if method in ("search", "match", "fullmatch") else scan(pattern)
    check_time([call])


def check_time(calls: list[Callable[[str], object]]) -> None:
    short = {(part, end): seconds(calls, part, 10_000, end) for part in PARTS for end in ENDS}
    for part, end in sorted(short, key=short.__getitem__, reverse=True)[:SLOWEST]:
        first = min(short[part, end], fastest(calls, part, 10_000, end, SLOW))
        assert first < SLOW, f"{part!r}, {end!r}: {first} s for 10,000 characters"
        allowed = 15 * max(first, SLOW / 2)
        second = fastest(calls, part, 100_000, end, allowed)
        assert second < allowed, f"{part!r}, {end!r}: {first} s, then {second} s"


FUNCTIONS = ("expertqa.claims.sentences", "fastbook.retrieval.cut", "expertqa.prompts.split_answer")


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "part", ["A. ", ". ", "\n", "1. ", "a\n[1] x\n", "Dr. B", " ", "sources\n", "[1]", "e.g. X", "aa. "]
)
def test_functions_take_linear_time(name: str, part: str) -> None:
    module, _, function = f"qabench.benchmarks.{name}".rpartition(".")
    call = getattr(pytest.importorskip(module, exc_type=ImportError), function)
    allowed = 15 * max(fastest([call], part, 10_000, "", SLOW), SLOW)
    assert fastest([call], part, 100_000, "", allowed) < allowed
