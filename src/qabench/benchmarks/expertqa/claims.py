"""Claims of answers as ExpertQA cuts them: sentences that say something, each with the evidence that it cites.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and its repository.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from qabench.scoring.factscore import is_void

SHORTEST = 6  # characters
MARK = re.compile(r"\[(\d{1,4})\]")
LEADING_MARK = re.compile(r"\s*\[(\d{1,4})\]")
# A sentence ends at . ! or ? with closing quotes and the citations behind it, unless a small letter follows.
STOP = re.compile(r"""[.!?]+["'”’)]*(?:\s*\[\d{1,4}\])*(?:[.!?])?(?=\s+[^\sa-z]|\s*$)""")
ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|No|Fig|vs|e\.g|i\.e|cf|al|approx)|^\s*\d{1,3})$")
BULLET = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s+(\S.*)")


def claims_of(
    answer: str, attribution: Sequence[str] = (), split: Callable[[str], Iterable[str]] | None = None
) -> list[dict[str, Any]]:
    """The claims of an answer, each with its evidence, as the dataset has them before anyone has judged them.

    Sentences of 5 characters or fewer, questions, and void ones (see ``is_void``) are left out.

    Args:
        answer: its text, with marks such as [2].
        attribution: what the marks point to.
        split: cuts a text into sentences; by default ``sentences``.

    Returns:
        {"claim_string", "evidence"} a claim, in order; evidence is the list of attributions that its marks name.
    """
    stripped = (sentence.strip() for sentence in (split or sentences)(answer))
    kept = [text for text in stripped if len(text) >= SHORTEST and not _asks(text) and not is_void(text)]
    return [{"claim_string": text, "evidence": cited(text, attribution)} for text in kept]


def cited(text: str, attribution: Sequence[str]) -> list[str]:
    """The attributions that the marks of a text name, each once, in the order of the marks.

    [n] names those that begin with "[n]"; where none begins with a mark, the n-th one. Marks that name none count for
    nothing.
    """
    marked = [(found[1] if (found := LEADING_MARK.match(entry)) else None, entry) for entry in attribution]
    if not any(mark for mark, _ in marked):
        marked = [(str(n), entry) for n, entry in enumerate(attribution, start=1)]
    wanted = dict.fromkeys(str(int(mark)) for mark in MARK.findall(text))
    return [entry for number in wanted for mark, entry in marked if mark is not None and str(int(mark)) == number]


def sentences(text: str) -> list[str]:
    """The sentences of a text; a line break ends one, too. Marks behind a full stop belong to the sentence before."""
    found = []
    for line in text.splitlines():
        start = 0
        for stop in STOP.finditer(line):
            if not (line[stop.start()] == "." and ABBREVIATION.search(line[start : stop.start()])):
                found.append(line[start : stop.end()])
                start = stop.end()
        found.append(line[start:])
    return [sentence.strip() for sentence in found if sentence.strip()]


def without_marks(text: str) -> str:
    """The text without its marks such as [2]."""
    return MARK.sub("", text).strip()


def read_list(reply: str) -> list[str]:
    """The entries of a list with a bullet or a number before each, each once; lines without one are passed over."""
    entries = (found[1].strip() for line in reply.splitlines() if (found := BULLET.match(line)))
    return list(dict.fromkeys(entries))


def _asks(text: str) -> bool:
    return without_marks(text).endswith("?")
