"""Forms in which a report shows the fields of ``Record.detail``.

A benchmark lists them in ``Report.details``, in the order of display. A field that no form names is
shown unchanged, under its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

Key = Any
"""A value in JSON data that a label stands for: True, False, None, a number or a string."""


class DetailForm:
    """A form in which a report shows one or several fields of ``Record.detail``."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Strings(DetailForm):
    """Strings of the reference: those that an answer has, and those that it lacks.

    The strings found are also marked in the answer.

    Attributes:
        found: the field with the strings found, in the normal form that was compared.
        missing: the field with the strings that the answer lacks.
    """

    found: str
    missing: str


@dataclass(frozen=True, slots=True)
class Column:
    """One column of ``Rows``.

    Attributes:
        title: its heading.
        key: the key of the value in each row: a text, or a list of texts, such as sources.
        labels: (value, text that is shown) pairs, such as (True, "factual").
        note: the key of a remark that is shown below the value, or "" for none.
    """

    title: str
    key: str
    labels: Sequence[tuple[Key, str]] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A rule that says whether a row is right, by the values of some of its keys.

    Attributes:
        keys: the keys of the values that decide.
        cases: (values, result, text) for combinations of values. The result is "right", "wrong" or
            "none". In the text, "{key}" stands for a value of the row or of the detail.
        otherwise: the result and the text of all other combinations.
    """

    keys: Sequence[str]
    cases: Sequence[tuple[Sequence[Key], str, str]]
    otherwise: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Rows(DetailForm):
    """A table of a field that is a list of objects.

    Attributes:
        title: its heading.
        field: the field with the objects.
        columns: its columns.
        verdict: the rule that says whether a row is right.
        verdict_title: the heading of the column of the verdicts.
        numbered: whether the first column has the numbers of the rows, from 1.
        warnings: a field with sentences that are shown above the table, or "" for none.
        folded_without: if all rows lack this key, their first column is a folded list. "" for none.
    """

    title: str
    field: str
    columns: Sequence[Column]
    verdict: Verdict
    verdict_title: str = ""
    numbered: bool = False
    warnings: str = ""
    folded_without: str = ""


@dataclass(frozen=True, slots=True)
class RankedPassages(DetailForm):
    """Passages in the order of their ranks: objects with "text", and maybe "id" and "score".

    Attributes:
        field: the field with the passages.
        hits: a field with a list of hits in the passages, or "" for none. A hit is an object with
            the "rank" of its passage and the "contexts" to mark in the passage.
        unit: what a hit is, in the singular.
    """

    field: str
    hits: str = ""
    unit: str = "hit"


@dataclass(frozen=True, slots=True)
class Links(DetailForm):
    """A folded list of pages.

    Attributes:
        title: its heading.
        field: the field with the pages: objects or strings.
        names: keys of a page's name. The first one that a page has is shown.
        notes: keys of remarks about a page.
        counted: the key and value of the pages that the heading counts, or () to count all.
        missing: a field with the names of pages that were not read, or "" for none.
    """

    title: str
    field: str
    names: Sequence[str]
    notes: Sequence[str] = ()
    counted: Sequence[str] = ()
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Text(DetailForm):
    """A text under a heading.

    Attributes:
        title: its heading.
        field: the field with the text.
        problem: a field with the reason why there is no text, or "" for none.
    """

    title: str
    field: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Texts(DetailForm):
    """A folded list of texts.

    Attributes:
        title: its heading.
        field: the field with the texts: strings, or objects.
        key: the key of the text, if the items are objects.
        number: the key of a number before the text, if the items are objects, or "" for none.
        fewest: the minimum length of the list. Shorter lists are not shown.
    """

    title: str
    field: str
    key: str = ""
    number: str = ""
    fewest: int = 1


@dataclass(frozen=True, slots=True)
class Hidden(DetailForm):
    """Fields that are not shown, because other fields show the same.

    Attributes:
        fields: their names.
    """

    fields: Sequence[str]


def form_data(form: Any) -> dict[str, Any]:
    """Return a form as JSON data, with the name of its class as "form"."""
    return {"form": type(form).__name__, **asdict(form)}
