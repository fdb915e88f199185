"""Every function that reads text takes linear time, also for repetitions of spaCy's prefixes and
suffixes.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import pytest
from fuzz_targets import TARGETS, check

from qabench.benchmarks.expertqa.claims import sentences, split_claims
from qabench.benchmarks.expertqa.factscore import entities_of, first_sentence, post_processed
from qabench.errors import QabenchError
from qabench.io.escaping import csv_text, html_text, markdown_text, one_line, visible
from qabench.text.lemmatizers import resolve_lemmatizer

UNITS = ['"', "'", "(", "[", "**", "$", "—", "…", "..", "!", "?", "«", "」", "。", "%", "'s", "km", "😀", "é", "²"]
UNITS += ["a", "a-", "1", "1km", '"a', "a.", '"".', ". ", "a? ", '" ', "[1", "[1] ", "[^", "http://", "<a", "{", "\n"]
SHORT, TIMES = 2_000, 8
GROWTH = 24  # linear: 8, quadratic: 64
NEGLIGIBLE = 0.05  # seconds of this thread: the growth of shorter times is noise


def split_both(text: str) -> None:
    split_claims(text, ["https://a.b"])
    split_claims(text, ["https://a.b"], bing=True)


def facts(text: str) -> None:
    entities_of(text, lambda part: [(part, "DATE")])
    first_sentence(text, sentences)
    post_processed(text, [text[:100], text], lambda part: entities_of(part, lambda span: [(span, "DATE")]))


FUNCTIONS: dict[str, Callable[[str], object]] = {
    **{name: lambda text, target=target: check(target, text.encode()) for name, target in TARGETS.items()},
    "claims": split_both,
    "facts": facts,
    "terminal": visible,
    "table": lambda text: (markdown_text(text), html_text(text), csv_text(text), one_line(text)),
}
if find_spec("simplemma"):
    FUNCTIONS["simplemma"] = lambda text: resolve_lemmatizer("simplemma")([text])


def seconds(function: Callable[[str], object], text: str) -> float:
    """The CPU time of one call in this thread. Errors of qabench are results."""
    start = time.thread_time()
    with contextlib.suppress(QabenchError):
        function(text)
    return time.thread_time() - start


def grows_linearly(function: Callable[[str], object], unit: str) -> bool:
    """Whether eight times the text takes far less than 64 times the time, in one of three tries."""
    short, long = [(unit * (length // len(unit) + 1))[:length] for length in (SHORT, SHORT * TIMES)]
    for _ in range(3):
        slow = seconds(function, long)
        if slow < NEGLIGIBLE or slow < GROWTH * seconds(function, short):
            return True
    return False


def slow_units(function: Callable[[str], object], units: Sequence[str] = UNITS) -> list[str]:
    """Return the texts whose repetitions take quadratic time."""
    seconds(function, "warm-up")
    return [unit for unit in units if not grows_linearly(function, unit)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_time_grows_linearly(name: str) -> None:
    assert slow_units(FUNCTIONS[name]) == []


def test_time_of_a_spacy_model_grows_linearly(spacy_model: str) -> None:
    lemmatizer = resolve_lemmatizer("spacy")
    assert slow_units(lambda text: lemmatizer([text]), UNITS[::4]) == []
