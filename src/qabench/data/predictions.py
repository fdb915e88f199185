"""Predictions: rows with the id of a question and the fields that a benchmark scores.

Real files lack ids and end in the middle of a line: such lines are listed, and do not affect the
others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from qabench.data.prediction_files import numbered_rows, read_bytes
from qabench.data.rows import Row
from qabench.errors import InputError
from qabench.io.limits import MAX_REPLY_CHARACTERS, json_of

# Names of the fields in other tools, in lower case. They are used for rows that have none of
# qabench's names.
OTHER_IDS = ("question_id", "query_id", "qid", "doc_id")
OTHER_ANSWERS = ("prediction", "model_answer", "response", "output")
# Examples of the fields that are lists, for messages. Other fields are strings.
EXAMPLES = {"passages": ["..."], "claims": [{"claim": "...", "evidence": ["..."]}]}
# The types of values in JSON. Parquet and lists in memory may have others, such as dates.
JSON_TYPES = (str, bool, int, float, list, tuple, Mapping, type(None))
# The path of predictions that are not in a file.
IN_MEMORY = "the predictions given"


@dataclass(slots=True)
class _Columns:
    """The columns with ids and answers that a user named, and whether a row was read by them."""

    id: str | None = None
    answer: str | None = None
    is_used: bool = False


_COLUMNS: ContextVar[_Columns] = ContextVar("columns", default=_Columns())  # noqa: B039


@dataclass(frozen=True, slots=True)
class Prediction:
    """One prediction of a file.

    Attributes:
        line: the line in the file, or the position in a JSON list, from 1.
        id: the question's id. An integer in the file becomes a string, so 1 and "1" are the same
            id.
        fields: the whole object, "id" included.
    """

    line: int
    id: str
    fields: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.id:.80} (line {self.line})"


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line without a prediction, and the reason."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Predictions:
    """The content of a file of predictions, in the file's order."""

    path: str
    rows: Sequence[Prediction]
    bad_lines: Sequence[BadLine] = ()

    @property
    def system(self) -> str:
        """Return the system's name: the name of the file without its extensions."""
        return Path(self.path.removesuffix(".gz")).stem

    @property
    def fields(self) -> set[str]:
        """Return the names of the fields that are not null in at least one row.

        A table has all columns in all rows, and so has JSON that was written from a table. So a
        column of nulls is not a field.
        """
        names: set[str] = set()
        for row in self.rows:
            for name, value in row.fields.items():
                if value is not None:
                    names.add(name)
        return names

    @property
    def created(self) -> str:
        """Return when the file was last changed, or now without a file: an ISO date and time."""
        try:
            when = datetime.fromtimestamp(Path(self.path).stat().st_mtime, UTC)
        except OSError:
            # Standard input, or a list in memory.
            when = datetime.now(UTC)
        return when.isoformat(timespec="seconds")


@contextmanager
def columns_named(id_column: str | None, answer_column: str | None) -> Iterator[None]:
    """Within the block, read question ids and answers from columns with these names.

    Args:
        id_column: the column of the ids. None means the usual names.
        answer_column: the column of the answers. None means the usual names.

    Raises:
        InputError: the block ended without an error, and has read no row by these names.
    """
    columns = _Columns(id_column, answer_column)
    token = _COLUMNS.set(columns)
    try:
        yield
    finally:
        _COLUMNS.reset(token)
    names = [repr(name) for name in (id_column, answer_column) if name is not None]
    if names and not columns.is_used:
        raise InputError(
            f"naming the column {' and '.join(names)} has no effect: no input is a file of predictions with columns"
        )


def read_predictions(
    source: str | Path | Sequence[Row],
    needs: Sequence[str] = (),
    ids: Sequence[str] = ("id",),
    answers: Sequence[str] = (),
) -> Predictions:
    """Return the predictions of a file, of standard input ("-"), or of a list in memory.

    Args:
        source: the file (see ``qabench.data.prediction_files``) or the list.
        needs: fields of which each line must have at least one. () for no condition.
        ids: possible names of the field with the question's id. The first one that a line has
            counts.
        answers: names of fields, one of which has the answer of a line. If the user names the
            column of the answers, the other fields with these names are ignored.

    Raises:
        InputError: the file cannot be read, or has no predictions.
    """
    if not isinstance(source, str | Path):
        return _collected(IN_MEMORY, enumerate(source, 1), needs, ids, answers)
    data, name = read_bytes(source)
    return parse_predictions(data, name, needs, ids, answers)


def parse_predictions(
    data: bytes,
    name: str,
    needs: Sequence[str] = (),
    ids: Sequence[str] = ("id",),
    answers: Sequence[str] = (),
) -> Predictions:
    """Return the predictions in the content of a file, like ``read_predictions``.

    Args:
        data: the content.
        name: the file's name, for messages. Its suffix also says which kind of table it is.
        needs: see ``read_predictions``.
        ids: see ``read_predictions``.
        answers: see ``read_predictions``.
    """
    field_names = known_names(needs, ids)
    answer_field = needs[0] if needs else "answer"
    rows = numbered_rows(data, name, ids[0], answer_field, field_names)
    return _collected(name, rows, needs, ids, answers)


def is_answer_named() -> bool:
    """Tell whether the user named the column of the answers. See ``columns_named``."""
    return _COLUMNS.get().answer is not None


def known_names(needs: Sequence[str], ids: Sequence[str] = ("id",)) -> set[str]:
    """Return the names, in lower case, of the fields that ids and answers are read from."""
    columns = _COLUMNS.get()
    named_columns = {name.lower() for name in (columns.id, columns.answer) if name is not None}
    return {*ids, *needs, *OTHER_IDS, *OTHER_ANSWERS, *named_columns}


def _collected(
    name: str,
    rows: Iterable[tuple[int, Any]],
    needs: Sequence[str],
    ids: Sequence[str],
    answers: Sequence[str],
) -> Predictions:
    """Return the predictions among numbered rows. Raises InputError if there are none."""
    predictions: list[Prediction] = []
    bad_lines: list[BadLine] = []
    for number, row in rows:
        try:
            predictions.append(_prediction(number, row, needs, ids, answers))
        except ValueError as error:
            bad_lines.append(BadLine(number, str(error)))
    if not predictions:
        field = needs[0] if needs else "answer"
        example = {"id": "7d...", field: EXAMPLES.get(field, "...")}
        if name == IN_MEMORY:
            reason = "no predictions are given"
            if bad_lines:
                reason = (
                    f"none of {name} can be read; number {bad_lines[0].line}: {bad_lines[0].reason}"
                )
            raise InputError(f"{reason}. A prediction must be a row such as {json.dumps(example)}")
        reason = f"; {bad_lines[0]}" if bad_lines else " (it is empty)"
        raise InputError(
            f"{name} has no predictions{reason}. A line must be a JSON object: {json.dumps(example)}. "
            f"In a CSV file, the header must have {' and '.join(example)}"
        )
    return Predictions(name, predictions, bad_lines)


def _prediction(
    number: int, row: Any, needs: Sequence[str], ids: Sequence[str], answers: Sequence[str]
) -> Prediction:
    """Return the prediction in a row, or in a line of JSON. Raises ValueError with the reason."""
    if isinstance(row, bytes):
        try:
            row = json_of(row, MAX_REPLY_CHARACTERS)
        except ValueError as error:
            raise ValueError(f"not JSON ({error})") from None
    if not isinstance(row, Mapping):
        raise ValueError(f"a JSON {type(row).__name__}, not an object")
    fields = dict(row)
    columns = _COLUMNS.get()
    if columns.id or columns.answer:
        named = _named_columns(row, needs, ids, answers)
        if columns.answer is not None:
            for name in answers:
                fields.pop(name, None)
        fields |= named
    for names, other_names in ((ids, OTHER_IDS), (needs, OTHER_ANSWERS)):
        if not names or not fields.keys().isdisjoint(names):
            continue
        _rename_usual_name(fields, names, other_names)
        if fields.keys().isdisjoint(names):
            keys = ", ".join(map(repr, fields)) or "none"
            raise ValueError(f"without {' or '.join(map(repr, names))} (keys: {keys:.200})")
    for name in needs:
        value = fields.get(name)
        if isinstance(value, Mapping) and "id" in value and not value.keys().isdisjoint(needs):
            raise ValueError(
                f"the field {name!r} is itself a row with the keys {', '.join(map(repr, value)):.200}; it must be "
                f"the {name} alone"
            )
        if not isinstance(value, JSON_TYPES):
            raise ValueError(
                f"the field {name!r} is a {type(value).__name__}, which a JSON file cannot have; write it as a string"
            )
    identity = next(fields[name] for name in ids if name in fields)
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise ValueError(f"the id is neither a string nor an integer: {identity!r:.60}")
    # Some datasets have numbers as ids, but ids are compared as texts.
    return Prediction(number, str(identity), fields)


def _named_columns(
    row: Mapping[str, Any], needs: Sequence[str], ids: Sequence[str], answers: Sequence[str]
) -> dict[str, Any]:
    """Return the id and the answer of a row from the columns that the user named.

    Raises:
        ValueError: the row lacks such a column.
    """
    columns = _COLUMNS.get()
    columns.is_used = True
    answer_field = "answer" if "answer" in needs or not needs else needs[0]
    if columns.answer is not None and columns.answer in answers:
        answer_field = columns.answer
    fields = {}
    for column, field in ((columns.id, ids[0]), (columns.answer, answer_field)):
        if column is None:
            continue
        if column not in row:
            keys = ", ".join(map(repr, row)) or "none"
            raise ValueError(f"without the column {column!r} (keys: {keys:.200})")
        fields[field] = row[column]
    return fields


def _rename_usual_name(
    fields: dict[str, Any], names: Sequence[str], other_names: Sequence[str]
) -> None:
    """Rename a field that has another usual name, or a spelling such as "ID", to the expected name."""
    # Reversed, so that the first of several spellings counts.
    by_lower_case = {str(key).strip().lower(): key for key in reversed(list(fields))}
    for name in (*names, *other_names):
        if name in by_lower_case:
            target = name if name in names else names[0]
            fields[target] = fields.pop(by_lower_case[name])
            return
