"""Rows of FELM's file as rows of the dataset. This module does not import ``datasets``, which is slow.

The source writes missing values in several ways: NaN for a response, an empty string or an empty
list instead of a list. Which of them it writes follows from the rest of the row, so the dataset can
have lists throughout without loss: ``parse_row`` rejects a row that breaks one of these rules.

- ``response`` is NaN if there is none, and never null.
- ``type`` and ``ref`` are empty strings in the domain ``reasoning``, and lists in all others.
- ``ref_contents`` is an empty string if the row has no references, and else a list, which may be empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qabench.data.rows import Json, SourceRow, read_json_lines
from qabench.errors import DataError

DOMAINS = ("wk", "science", "math", "reasoning", "writing_rec")
ERROR_TYPES = (None, "", "knowledge_error", "reasoning_error", "irrelevant_with_qst", "fooled")
TEXT_FOR_LIST = "reasoning"  # the domain whose rows have "" for ``type`` and ``ref``
FIELDS = (
    "index", "domain", "source", "prompt", "response", "segmented_response", "labels", "comment", "type", "ref",
    "ref_contents",
)  # fmt: skip


def read_rows(path: Path, config: str) -> Iterator[Json]:
    """Return the rows of a config's file as rows of the dataset, in order.

    Raises DataError as ``parse_row``.
    """
    rows = map(parse_row, read_json_lines(path))
    return (row for row in rows if config not in DOMAINS or row["domain"] == config)


def parse_row(row: SourceRow) -> Json:
    """Return a response with its annotation: a row of ``eval/all.jsonl``.

    ``id`` equals ``index``. The other fields are the source's: ``response`` is a string or None.
    ``segmented_response``, ``labels`` (true = factual) and ``comment`` are lists of one length.
    ``type`` is a list of that length or empty. ``ref`` and ``ref_contents`` are lists, not always
    of one length. Raises DataError that names file, line and field.
    """
    row.only(*FIELDS)
    segments = row.texts("segmented_response")
    domain = row.one_of("domain", DOMAINS)
    no_lists = domain == TEXT_FOR_LIST
    ref = _no_list(row, "ref") if no_lists else row.texts("ref")
    return {
        "id": row.get("index", str),
        "index": row.get("index", str),
        "domain": domain,
        "source": row.get("source", str),
        "prompt": row.get("prompt", str),
        "response": _response(row),
        "segmented_response": segments,
        "labels": _aligned(row, "labels", row.items("labels", bool), segments),
        "comment": _aligned(row, "comment", row.texts("comment"), segments),
        "type": _no_list(row, "type") if no_lists else _types(row, segments),
        "ref": ref,
        "ref_contents": row.texts("ref_contents") if ref else _no_list(row, "ref_contents"),
    }


def _response(row: SourceRow) -> str | None:
    response = row.get("response", str, float)
    if isinstance(response, float) and not math.isnan(response):
        raise DataError(f"{row.where}, field 'response': expected NaN, got {response!r}")
    return response if isinstance(response, str) else None


def _types(row: SourceRow, segments: list[str]) -> list[str | None]:
    types = row.get("type", list)
    for i, name in enumerate(types):
        # A list or an object cannot be compared with the allowed values.
        if not isinstance(name, str | None) or name not in ERROR_TYPES:
            allowed = ", ".join("null" if kind is None else repr(kind) for kind in ERROR_TYPES)
            raise DataError(
                f"{row.where}, field 'type'[{i}]: expected one of {allowed}, got {name!r:.60}"
            )
    return _aligned(row, "type", list(types), segments) if types else []


def _aligned(row: SourceRow, key: str, items: list[Any], segments: list[str]) -> list[Any]:
    if len(items) != len(segments):
        raise DataError(
            f"{row.where}, field {key!r}: expected one entry for each of the {len(segments)} segments, got {len(items)}"
        )
    return items


def _no_list(row: SourceRow, key: str) -> list[Any]:
    """Return an empty list for the empty string that the source has instead of the list ``key``."""
    row.one_of(key, [""])
    return []
