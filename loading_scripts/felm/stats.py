"""Statistics of FELM, computed from the dataset's rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from qabench.io.tables import Table
from qabench.loading_scripts import LEADERBOARD
from qabench.loading_scripts.felm.parse import DOMAINS, ERROR_TYPES, to_source
from qabench.loading_scripts.published import PublishedScore, published_table

Tally = Mapping[str, Counter[Any]]

ALL = "all"
# The number of segments, of true and of false ones, in the table of FELM's README.
PUBLISHED = {
    "wk": (532, 385, 147),
    "science": (683, 582, 101),
    "math": (599, 477, 122),
    "reasoning": (1025, 877, 148),
    "writing_rec": (1588, 1321, 267),
    ALL: (4427, 3642, 785),
}
PUBLISHED_RESPONSES = 847
_NO_LIST = ("no list",)  # the type of segments in rows without types; not a string, unlike error types


def tables(config: str, splits: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Table]:
    """Count FELM's segments and responses by domain, its error types, comments and references.

    Args:
        config: the config of the rows; ``sample`` has no published numbers.
        splits: the rows of each split, read once.

    Returns:
        Five tables. Each has the domains that occur, and "all" if there are several.
    """
    if config == LEADERBOARD:
        return [published_table(PublishedScore(**row) for rows in splits.values() for row in rows)]
    tally: dict[str, Counter[Any]] = defaultdict(Counter)
    for rows in splits.values():
        for row in rows:
            for name in (row["domain"], ALL):
                tally[name].update(_countables(row))
    shown = [name for name in DOMAINS if name in tally]
    columns = {name: tally[name] for name in (shown if len(shown) == 1 else [*shown, ALL])}
    return [
        _segments(columns, published=config != "sample"),
        _responses(columns),
        _types(columns),
        _counts("Segments, comments and references", columns, COMMENTS_AND_REFERENCES),
        _counts("Responses by how the source writes what is missing", columns, SOURCE_FORMS),
    ]


COMMENTS_AND_REFERENCES = (
    "empty segments",
    "errors with a comment",
    "errors without a comment",
    "true segments with a comment",
    "references",
    "reference contents",
    "responses with references",
    "responses with fewer contents than references",
)
SOURCE_FORMS = (
    "response NaN",
    'type ""',
    "type []",
    "type aligned",
    'ref ""',
    "ref []",
    "ref filled",
    'ref_contents ""',
    "ref_contents []",
    "ref_contents filled",
)


def _countables(row: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the names of everything in a row that is counted, repeated as often as it occurs."""
    labels, types = row["labels"], row["type"] or [_NO_LIST] * len(row["labels"])
    yield "responses"
    yield "all true" if all(labels) else "with an error"
    yield "length", len(labels)
    for segment, label, comment, kind in zip(row["segmented_response"], labels, row["comment"], types, strict=True):
        yield "segments"
        yield "true" if label else "errors"
        yield kind, label
        if not segment:
            yield "empty segments"
        if comment or not label:
            yield f"{'true segments' if label else 'errors'} {'with' if comment else 'without'} a comment"
    for name, key in (("references", "ref"), ("reference contents", "ref_contents")):
        yield from [name] * len(row[key])
    if row["ref"]:
        yield "responses with references"
    if len(row["ref_contents"]) < len(row["ref"]):
        yield "responses with fewer contents than references"
    yield from _source_forms(to_source(row))


def _source_forms(source: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(source["response"], str):
        yield "response NaN"
    for key, filled in (("type", "aligned"), ("ref", "filled"), ("ref_contents", "filled")):
        value = source[key]
        yield f'{key} ""' if value == "" else f"{key} {filled if value else '[]'}"


def _segments(columns: Tally, *, published: bool) -> Table:
    rows, notes = [], []
    for name, tally in columns.items():
        ours = [tally[what] for what in ("segments", "true", "errors")]
        theirs = PUBLISHED[name] if published else (None, None, None)
        responses = PUBLISHED_RESPONSES if published and name == ALL else None
        pairs = list(zip(("segments", "true", "errors"), ours, theirs, strict=True))
        rows.append([name, tally["responses"], responses, *(cell for _, *pair in pairs for cell in pair)])
        if differences := [f"{got} {what} (README: {value})" for what, got, value in pairs if value not in (None, got)]:
            notes.append(f"{name}: the data file has {', '.join(differences)}.")
    if notes:
        notes.append("Scores are computed on the data file, so its numbers are the relevant ones.")
    names = [cell for what in ("responses", "segments", "true", "errors") for cell in (what, f"{what} (published)")]
    return Table("Segments by domain", ["domain", *names], rows, notes)


def _responses(columns: Tally) -> Table:
    rows = []
    for name, tally in columns.items():
        lengths = [key[1] for key in tally if isinstance(key, tuple) and key[0] == "length"]
        cells: list[Any] = [tally["responses"], tally["all true"], tally["with an error"], None, None, None]
        if lengths:
            cells[3:] = [round(tally["segments"] / tally["responses"], 2), min(lengths), max(lengths)]
        rows.append([name, *cells])
    names = ["responses", "all segments true", "with an error", "segments per response: mean", "minimum", "maximum"]
    return Table("Responses by domain", ["domain", *names], rows)


def _types(columns: Tally) -> Table:
    names = {None: "null", "": '""', _NO_LIST: "(no list of types)"}
    counted = [
        [names.get(kind, kind), "true" if label else "error", *(tally[kind, label] for tally in columns.values())]
        for kind in (*ERROR_TYPES, _NO_LIST)
        for label in (True, False)
    ]
    return Table("Segments by error type", ["type", "label", *columns], [row for row in counted if any(row[2:])])


def _counts(title: str, columns: Tally, names: tuple[str, ...]) -> Table:
    return Table(title, ["figure", *columns], [[name, *(tally[name] for tally in columns.values())] for name in names])
