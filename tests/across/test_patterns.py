"""No pattern takes quadratic time: tested with 10,000 and 100,000 adversarial characters."""

import ast
import importlib
import pkgutil
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import qabench
import qabench.loading_scripts
import qabench.metrics
import qabench.retrieval
from qabench.errors import InputError

PARTS = [*" \nA1.!\"')(<{-*_|`:[é²\ud800\u0663\t", "a", "[1]", "{}", "a1", "1a", "a.", "a b", "1,", "1.", ". ", ".\n"]
PARTS += ["\n ", " \n", "n't", "'s", "a'", "<search>", "</search>", "https://a", "?a", "segment ", "claim 1.", "Dr"]
PARTS += ["e.g.", "sources\n", "\n__", "\n_a", "- ", "1. ", "\n- ", "[1] ", "!)", '."', "yes ", "a_", "\n[1"]
SLOW = 0.05  # seconds of this thread for 10,000 characters: a linear pattern takes a tenth of it
SLOWEST = 6  # inputs of each pattern that are tried with 100,000 characters, too
METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
OWN_FILES = {"_CODE_BLOCK", "_REPO"}  # these read only the package's cards and tables
ENDS = ("", "x", "\0")
Call = Callable[[str], object]


def patterns() -> Iterator[tuple[str, re.Pattern[str], str]]:
    """Yield every compiled pattern of the package's modules and classes, with its name and its
    module's source.
    """
    for info in pkgutil.walk_packages(qabench.__path__, "qabench."):
        if ".metrics." in info.name or info.name.endswith("__main__") or ".lm_eval" in info.name:
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:
            continue  # an extra is not installed
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        for holder in (module, *(kind for kind in vars(module).values() if isinstance(kind, type))):
            if getattr(holder, "__module__", info.name) == info.name:
                for name, value in vars(holder).items():
                    if isinstance(value, re.Pattern) and isinstance(value.pattern, str) and name not in OWN_FILES:
                        yield f"{info.name}.{name}", value, source


def literals() -> Iterator[tuple[str, re.Pattern[str], str]]:
    """Yield the pattern and the method of every call such as ``re.search("a+", text)`` in the
    package.
    """
    for package in (qabench, qabench.retrieval, qabench.loading_scripts, qabench.metrics):
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                function = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
                if isinstance(node, ast.Call) and re.fullmatch(rf"re\.({'|'.join(METHODS)})", function):
                    texts = [ast.unparse(value) for value in (*node.args[1:], *(word.value for word in node.keywords))]
                    flags = [text for text in texts if re.fullmatch(r"re\.[A-Z]+( \| re\.[A-Z]+)*", text)]
                    if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                        compiled = re.compile(node.args[0].value, eval(flags[0]) if flags else 0)
                        yield f"{path.stem}.{function} {compiled.pattern}", compiled, function[3:]


def calls_of(pattern: re.Pattern[str], methods: set[str]) -> list[Call]:
    """Return the methods that are called; if none is known, a scan and all others."""
    calls: dict[str, Call] = {"search": pattern.search, "match": pattern.match, "fullmatch": pattern.fullmatch}
    scans = [] if methods and methods <= calls.keys() else [lambda text: deque(pattern.finditer(text), maxlen=0)]
    return scans + [call for name, call in calls.items() if name in methods or not methods]


def seconds(calls: list[Call], part: str, size: int, end: str) -> float:
    text = (part * size)[:size] + end
    start = time.thread_time()
    for call in calls:
        call(text)
    return time.thread_time() - start


def fastest(calls: list[Call], part: str, size: int, end: str, allowed: float) -> float:
    """Return the shortest of up to five tries; stop at the first within ``allowed``, because
    machines are shared.
    """
    tries: list[float] = []
    while len(tries) < 5 and (not tries or min(tries) >= allowed):
        tries.append(seconds(calls, part, size, end))
    return min(tries)


def check_time(name: str, calls: list[Call]) -> None:
    short = {(part, end): seconds(calls, part, 10_000, end) for part in PARTS for end in ENDS}
    for part, end in sorted(short, key=short.__getitem__, reverse=True)[:SLOWEST]:
        first = min(short[part, end], fastest(calls, part, 10_000, end, SLOW))
        assert first < SLOW, f"{name}: {part!r}, {end!r}: {first} s for 10,000 characters"
        allowed = 15 * max(first, SLOW / 2)
        second = fastest(calls, part, 100_000, end, allowed)
        assert second < allowed, f"{name}: {part!r}, {end!r}: {first} s, then {second} s"


@pytest.mark.slow
def test_patterns_take_linear_time() -> None:
    checked = [check_time(name, calls_of(pattern, {method})) for name, pattern, method in literals()]
    assert len(checked) > 5
    for name, pattern, source in patterns():
        attribute = name.rpartition(".")[2]
        methods = {method for method in METHODS if re.search(rf"\b{attribute}\.{method}\(", source)}
        checked.append(check_time(name, calls_of(pattern, methods)))
    assert len(checked) > 30


def test_a_quadratic_pattern_is_noticed() -> None:
    with pytest.raises(AssertionError, match="slow: 'a', "):
        check_time("slow", calls_of(re.compile(r"a*$"), {"search"}))


def long_texts(size: int) -> Iterator[tuple[str, Call]]:
    """Yield calls of the parsers that once took quadratic time, with the texts that slowed them
    down.
    """
    from qabench.benchmarks.expertqa.claims import split_claims
    from qabench.benchmarks.expertqa.factscore import entities_of, first_sentence, post_processed
    from qabench.benchmarks.expertqa.prompts import split_answer
    from qabench.loading_scripts.fastbook.chunks import cut_spans

    yield "cut_spans", lambda _: list(cut_spans("Dr. B\n" * (size // 6), 20, 0))
    yield "split_answer", lambda _: split_answer("So.\n[1] a\n" + "b\n" * (size // 2))
    yield "split_claims", lambda _: split_claims("".join(f"S{i}? " for i in range(size // 7)), [])
    yield "entities_of", lambda _: entities_of(" ".join(map(str, range(size // 7))), lambda text: [])
    facts = [f"{i} was born." for i in range(size // 16)]
    yield "post_processed", lambda _: post_processed("He was born.", facts, lambda text: [])
    yield "first_sentence", lambda _: first_sentence("A. B. " * (size // 6), lambda text: text.split(" "))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _ in long_texts(0)])
def test_long_texts_are_parsed_or_refused(name: str) -> None:
    """A million characters take seconds, or are refused with one error; none takes minutes."""
    start = time.thread_time()
    try:
        dict(long_texts(1_000_000))[name]("")
    except InputError as error:
        assert "characters; allowed: " in str(error)
    assert time.thread_time() - start < 30
