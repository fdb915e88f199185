"""Recall and precision of the evidence pages that a system read or retrieved.

The paper has no such score. FanOutQA's rows name the pages that are necessary for an answer, and
this module compares them with the pages that a system read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from qabench.data.answers import UNANSWERED, check_pairs
from qabench.errors import InputError

Keys = frozenset[str | int]


def page_keys(page: Any) -> Keys:
    """Return the keys that identify a page: its id, and its title, which may come from its URL.

    Two pages are the same if they have a key in common. Titles are compared as in Wikipedia:
    underscores are spaces, and the case of the first letter does not matter. A page that was found
    through a redirect is recognized as an evidence page only if the two have the same id, or one of
    them has the other's title or a URL with it.

    Args:
        page: an object with some of "pageid", "title" and "url", such as a row of
            ``necessary_evidence``, or a single id, title or URL. A string of digits can be an id or
            a title.

    Raises:
        InputError: ``page`` has another type, or nothing in it identifies a page.
    """
    keys: set[str | int] = set()
    values = [page]
    if isinstance(page, Mapping):
        # Pages that the corrections of 2026 added have no id: it is null.
        values = [page.get("pageid"), page.get("title"), page.get("url")]
    for value in values:
        if isinstance(value, str):
            keys |= _keys_of_text(value)
        # Wikipedia's page ids are positive. Its API numbers missing pages downward from -1.
        elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
            keys.add(value)
    if not keys:
        raise InputError(
            f'{page!r:.80} is not a page; allowed: a title, a URL, a page id, or {{"title": ...}}'
        )
    return frozenset(keys)


def _keys_of_text(text: str) -> set[str | int]:
    if re.match("https?://", text):
        return _keys_of_url(text)
    keys = _keys_of_title(text)
    if text.isdecimal():
        keys.add(int(text))
    return keys


def _keys_of_url(text: str) -> set[str | int]:
    """Return the id in ``?curid=123``, and the title in ``/wiki/Title`` or ``?title=Title``."""
    url = urlsplit(text)
    query = parse_qs(url.query)
    ids = []
    for value in query.get("curid", ()):
        if value.isdecimal():
            ids.append(int(value))
    _, _, path = url.path.partition("/wiki/")
    titles = [unquote(path), *query.get("title", ())[:1]]
    title = next(filter(None, titles), "")
    if not title and not ids:
        # Other addresses are compared as they are.
        title = text
    return {*ids, *_keys_of_title(title)}


def _keys_of_title(title: str) -> set[str | int]:
    # MediaWiki stores titles in NFC, with runs of spaces as one space.
    before_anchor, _, _ = unicodedata.normalize("NFC", title).partition("#")
    normalized = " ".join(before_anchor.replace("_", " ").split())
    if not normalized:
        return set()
    return {normalized[:1].upper() + normalized[1:]}


def title_of(page: Any) -> Any:
    """Return the title of a page for display, or the page itself if it has no title."""
    if not isinstance(page, Mapping):
        return page
    return page.get("title", page)


def distinct_pages(pages: Iterable[Any]) -> dict[int, Keys]:
    """Return the keys of each different page, by the position where it first occurs."""
    groups: dict[int, Keys] = {}
    for position, page in enumerate(pages):
        keys = page_keys(page)
        first_position = position
        # A page can merge two groups, one with its id and one with its title. The loop iterates
        # over a copy, because merging removes groups.
        for earlier_position, earlier_keys in list(groups.items()):
            if not keys.isdisjoint(earlier_keys):
                first_position = min(first_position, earlier_position)
                keys |= groups.pop(earlier_position)
        groups[first_position] = keys
    return dict(sorted(groups.items()))


def pages_read(pages: Any) -> list[Keys]:
    """Return the keys of each different page of a prediction, or [] if there was no search."""
    if pages is None or pages is UNANSWERED:
        return []
    if not isinstance(pages, list | tuple):
        raise InputError(f"the pages are not a list: {pages!r:.60}")
    return list(distinct_pages(pages).values())


@dataclass(frozen=True, slots=True)
class EvidenceScore:
    """The evidence pages of one question.

    Attributes:
        recall: the share of the necessary pages that were read, in [0, 1]. 0 if no page was read.
        precision: the share of the pages read that are necessary, in [0, 1]. None if no page was
            read.
        missing: the positions of the necessary pages that were not read. For a repeated page, this
            is its first position.
    """

    recall: float
    precision: float | None
    missing: tuple[int, ...]


def evidence_scores(
    references: Sequence[Sequence[Any]], predictions: Sequence[Any], k: int | None = None
) -> list[EvidenceScore]:
    """Compare the pages that were read for each question with the necessary pages.

    Args:
        references: the necessary pages of each question. See ``page_keys``.
        predictions: the pages read for each question, in order. None or ``UNANSWERED`` if there was
            no search.
        k: only the first k different pages of a question count. None for all.

    Raises:
        InputError: no questions, lists of different lengths, a question without necessary pages, or
            a wrong ``k``.
    """
    check_pairs(references, predictions)
    if k is not None and k < 1:
        raise InputError(f"k is {k}; allowed: 1 or more, or None for all pages")
    scores = []
    for i, (reference, prediction) in enumerate(zip(references, predictions, strict=True)):
        if not isinstance(reference, list | tuple) or not reference:
            raise InputError(
                f"references[{i}] is {reference!r:.80}; allowed: a list of at least one page"
            )
        try:
            read = pages_read(prediction)[:k]
        except InputError as error:
            raise InputError(f"predictions[{i}]: {error}") from None
        scores.append(_evidence_score(distinct_pages(reference), read))
    return scores


def _evidence_score(necessary: Mapping[int, Keys], read: Sequence[Keys]) -> EvidenceScore:
    missing = []
    for position, keys in necessary.items():
        if not any(keys & page for page in read):
            missing.append(position)
    recall = (len(necessary) - len(missing)) / len(necessary)
    precision = None
    if read:
        n_relevant = 0
        for page in read:
            n_relevant += any(page & keys for keys in necessary.values())
        precision = n_relevant / len(read)
    return EvidenceScore(recall, precision, tuple(missing))
