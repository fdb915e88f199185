"""Parse rows of FanOutQA's files into rows of the dataset.

This module does not import ``datasets``, which is slow: the command line reads rows without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qabench.data.answers import dumps_read
from qabench.data.rows import Json, SourceRow, read_json_list
from qabench.errors import DataError

JUDGE = "gpt-4o-2024-11-20"
"""The judge of the authors' scorer since 2025-02-28 (commit bd0d106)."""
EARLIER_JUDGE = "gpt-4-0613"
"""The judge of the authors' scorer before that date, and of fanoutqa up to 1.1.1 on PyPI."""
NOT_PUBLIC = "the answers to test questions are not public. Submit the model's answers: `qabench fanoutqa submit`"
# In the corrections of 2026, this stands for an id that was not looked up.
TO_BE_DETERMINED = "###TBD###"


def read_rows(path: Path, config: str) -> Iterator[Json]:
    """Return the rows of a config's file as rows of the dataset, in order."""
    parse = parse_test if config.startswith("test") else parse_dev
    return map(parse, read_json_list(path))


def parse_dev(row: SourceRow) -> Json:
    """Return a development question: a row of ``fanout-final-dev.json``.

    Answer and decomposition become JSON text, and necessary_evidence the list of the pages in the
    decomposition. Raises a DataError that names file, row and field.
    """
    row.only("id", "question", "decomposition", "answer", "categories")
    evidence = list(_evidence(row))
    _check_answer(row, "answer")
    # An answer is a string, a number, a list or an object, so no typed column fits. The feature
    # ``datasets.Json`` is lossy: it rounds floats, and turns the string "1998" into a number.
    return {
        **_common(row),
        "answer": dumps_read(row.fields["answer"]),
        "decomposition": dumps_read(row.fields["decomposition"]),
        "necessary_evidence": evidence,
    }


def parse_test(row: SourceRow) -> Json:
    """Return a test question: a row of ``fanout-final-test.json``, without answer or decomposition."""
    row.only("id", "question", "necessary_evidence", "categories")
    question = _common(row)
    question["necessary_evidence"] = [_page(page) for page in row.rows("necessary_evidence")]
    return question


def _common(row: SourceRow) -> Json:
    return {
        "id": row.get("id", str),
        "question": row.get("question", str),
        "categories": row.list_of("categories"),
    }


def _page(row: SourceRow) -> Json:
    row.only("pageid", "revid", "title", "url")
    return {
        "pageid": _page_number(row, "pageid"),
        "revid": _page_number(row, "revid"),
        "title": row.get("title", str),
        "url": row.get("url", str),
    }


def _page_number(row: SourceRow, key: str) -> int | None:
    value = row.get(key, int, str)
    if value == TO_BE_DETERMINED:
        return None
    # Ids have to fit into a column of int64.
    if isinstance(value, str) or not 0 <= value < 2**63:
        raise DataError(
            f"{row.where}, field {key!r}: expected an integer from 0 to 2**63 - 1, or {TO_BE_DETERMINED!r}, "
            f"got {value!r:.60}"
        )
    return int(value)


def _evidence(row: SourceRow) -> Iterator[Json]:
    """Check a decomposition, and yield its pages depth first, each page before its children's."""
    for node in row.rows("decomposition"):
        node.get("id", str)
        node.get("question", str)
        node.list_of("depends_on")
        _check_answer(node, "answer")
        # A sub-question without a page is itself decomposed.
        if node.get("evidence", dict, None) is not None:
            yield _page(SourceRow(node.fields["evidence"], f"{node.where}, field 'evidence'"))
        if node.get("decomposition", list):
            yield from _evidence(node)


def _check_answer(row: SourceRow, key: str) -> None:
    value = row.get(key, dict, list, str, int, float, bool)
    # All other values are valid. Most answers are strings, and writing their place would take
    # longer than checking them.
    if isinstance(value, dict | list | float):
        _check_value(value, f"{row.where}, field {key!r}")


def _check_value(value: Any, where: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _check_value(item, f"{where}[{key!r}]")
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _check_value(item, f"{where}[{position}]")
    elif value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise DataError(
            f"{where}: expected a string, finite number, true or false, a list or an object, got {value!r}"
        )
