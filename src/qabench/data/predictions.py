"""Files of predictions: reading them, and joining them to a benchmark's questions by id.

A file is JSONL (one object per line), a JSON list of objects or a JSON object {id: answer}, also
compressed with gzip, CSV or TSV with a header, whose cells are text, also as spreadsheets write it
(semicolons, UTF-16), Parquet, or the folder of a saved ``datasets.Dataset``. Every object has an
"id". The other fields depend on the benchmark. Real files lack ids, repeat them, contain ids of
other versions, and end in the middle of a line: such cases are counted and listed, and do not
affect other lines. Rankings can also be runs in the format of TREC.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from qabench.data.rows import Row
from qabench.errors import InputError, unreadable
from qabench.io.limits import MAX_REPLY_CHARACTERS, json_of, numbered_lines
from qabench.io.parquet import parquet_rows

MOST_BYTES = 1 << 28  # of a file, decompressed
MOST_LINES = 1_000_000
MOST_LIST_BYTES = 1 << 26  # of a file with a JSON list, which is parsed as a whole
NAMED = 5  # ids or lines that a message lists. The others are counted
STDIN = "-"
SYSTEM, SAMPLE = "system", "sample"  # fields that tell apart the lines with one id
UNKNOWN = "predictions for unknown questions"
DELIMITERS = {".csv": ",", ".tsv": "\t"}
PARQUET = b"PAR1"  # the first bytes of a file
SAVED_DATASET = "state.json"  # in the folder of a saved ``Dataset``
# What other tools call the fields, in lower case. They count where a row has none of qabench's names.
OTHER_IDS = ("question_id", "query_id", "qid", "doc_id")
OTHER_ANSWERS = ("prediction", "model_answer", "response", "output")
# The columns of the id and of the answer that a user named.
_COLUMNS: ContextVar[tuple[str | None, str | None]] = ContextVar("columns", default=(None, None))
WITHOUT_PREDICTION = "questions without a prediction"
NO_PREDICTION = "the file has no prediction"  # the problem of the record of such a question


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
        """Return the file's name without its extensions: the name of the system that made the predictions."""
        return Path(self.path.removesuffix(".gz")).stem

    @property
    def created(self) -> str:
        """Return when the file was last changed, as an ISO date and time.

        Now if it is not a file.
        """
        try:
            when = datetime.fromtimestamp(Path(self.path).stat().st_mtime, UTC)
        except OSError:  # standard input, or a list in memory
            when = datetime.now(UTC)
        return when.isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class Joined:
    """Predictions aligned with questions, and all problems.

    Attributes:
        ids: the question ids that are scored, in order.
        rows: the prediction for each of them, or None.
        missing: ids of questions without a prediction.
        unknown: predictions whose id belongs to no question.
        problems: one sentence for each kind of problem.
    """

    ids: Sequence[str]
    rows: Sequence[Prediction | None]
    missing: Sequence[str]
    unknown: Sequence[Prediction]
    problems: Sequence[str]


@contextmanager
def columns_named(id_column: str | None, answer_column: str | None) -> Iterator[None]:
    """Read the question's id and the answer of predictions from columns with these names, within the block.

    None leaves the usual names. A line without a named column is unreadable.
    """
    token = _COLUMNS.set((id_column, answer_column))
    try:
        yield
    finally:
        _COLUMNS.reset(token)


def read_predictions(
    source: str | Path | Sequence[Row], needs: Sequence[str] = (), ids: Sequence[str] = ("id",)
) -> Predictions:
    """Return the predictions of a file, of standard input ("-"), or of a list in memory.

    Args:
        source: the file or the list.
        needs: a line must have at least one of these fields, if there are any.
        ids: the names of the field with the question's id. A line's first one counts.

    Raises:
        InputError: the file cannot be read, or has no predictions.
    """
    if not isinstance(source, str | Path):
        return _collected("the predictions given", enumerate(source, 1), needs, ids)
    return parse_predictions(*read_bytes(source), needs, ids)


def parse_predictions(
    data: bytes, name: str, needs: Sequence[str] = (), ids: Sequence[str] = ("id",)
) -> Predictions:
    """Return the predictions in the content of a file, as ``read_predictions``.

    ``name`` is the file in messages, and its suffix says whether it is a table.
    """
    first = data.lstrip()[:1]
    delimiter = DELIMITERS.get(Path(name.removesuffix(".gz")).suffix.lower())
    items: Iterable[tuple[int, Any]]
    if data.startswith(PARQUET):
        items = enumerate(parquet_rows(io.BytesIO(data), name), 1)
    elif first == b"[":
        try:
            items = enumerate(json_of(data, MOST_LIST_BYTES), 1)
        except ValueError as error:
            raise InputError(f"{name} begins like a JSON list, but is not JSON ({error})") from None
    elif delimiter and first != b"{":
        items = _table_rows(data, name, delimiter)
    elif first == b"{" and (answers := _answers_by_id(data, needs, ids)):
        items = enumerate(answers, 1)
    elif data.count(b"\n") > MOST_LINES:
        raise InputError(f"{name} has more than {MOST_LINES:,} lines, which is the limit")
    else:
        items = numbered_lines(data)
    return _collected(name, items, needs, ids)


def is_saved_dataset(path: str | Path) -> bool:
    """Return whether a path is the folder of a saved ``Dataset`` (``Dataset.save_to_disk``)."""
    return (Path(path) / SAVED_DATASET).is_file()


def _saved_dataset(folder: Path) -> bytes:
    """Return the rows of a saved ``Dataset`` as Parquet. Raises InputError."""
    from datasets import load_from_disk

    content = io.BytesIO()
    try:
        load_from_disk(str(folder)).to_parquet(content)
    except (OSError, ValueError, KeyError, TypeError) as error:  # of damaged files
        raise InputError(f"{folder} is not a readable Dataset ({error}); save it again") from None
    return content.getvalue()


def _answers_by_id(data: bytes, needs: Sequence[str], ids: Sequence[str]) -> list[Row]:
    """Return the predictions of a JSON object {id: answer} or {id: {field: value}}, or [] if it is something else.

    An object with the name of a field as a key is one prediction of JSONL.
    """
    try:
        by_id = json_of(data, MOST_LIST_BYTES)
    except ValueError:  # JSONL with several lines, or damaged: the lines say what is wrong
        return []
    named = {column.lower() for column in _COLUMNS.get() if column is not None}
    names = {*ids, *needs, *OTHER_IDS, *OTHER_ANSWERS, *named}
    if not isinstance(by_id, dict) or not names.isdisjoint(key.lower() for key in by_id):
        return []
    field = needs[0] if needs else "answer"
    rows: list[Row] = []
    for identity, value in by_id.items():
        fields = value if isinstance(value, dict) else {field: value}
        rows.append({**fields, ids[0]: identity})
    return rows


def _delimiter(header: str, usual: str) -> str:
    """Return the delimiter of a table by its header: a spreadsheet's CSV may have semicolons or tabs."""
    if usual in header:
        return usual
    return next((other for other in ";\t," if other in header), usual)


def _table_rows(data: bytes, name: str, usual_delimiter: str) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a CSV file, with their last lines. Raises InputError."""
    limit = csv.field_size_limit(MOST_BYTES)  # of the whole process
    line = 0
    try:
        content = data.decode("utf-8-sig")
        skipped = 0
        delimiter = _delimiter(content.partition("\n")[0], usual_delimiter)
        if content[:4].lower() == "sep=":  # written for Excel
            delimiter = content[4:5]
            content = content.partition("\n")[2]
            skipped = 1
        text = io.StringIO(content, newline="")
        reader = csv.DictReader(text, delimiter=delimiter)
        for row in reader:
            line = reader.line_num + skipped
            if None in row:
                raise InputError(
                    f"{name}, line {line} has more cells than the header; put quotes around cells that contain "
                    f"{delimiter!r}"
                )
            yield line, row
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}, after line {line}: {error}; save the table as UTF-8 (in Excel: CSV UTF-8)"
        ) from None
    except (csv.Error, TypeError) as error:  # TypeError: a delimiter that is none
        raise InputError(f"{name}, after line {line}: {error}") from None
    finally:
        csv.field_size_limit(limit)


def parse_run(data: bytes, name: str, field: str) -> Predictions:
    """Return the rankings of a run as predictions: "id", and in ``field`` the document ids, best first.

    As in trec_eval, documents are ordered by score, the highest first, fields after the tag are
    left out, and so are comments: lines that start with "#" and are not lines of a run. Unlike in
    trec_eval, which ignores ranks and puts equal scores (of single precision) in reverse order of
    the document ids, ties are broken by rank, then by line: the order in which they were found.

    Args:
        data: lines of query id, "Q0", document id, rank, score, tag, separated by whitespace.
        name: the file in messages.
        field: the name of the field.

    Raises:
        InputError: a line is invalid, or a document is repeated.
    """
    rankings: dict[str, dict[str, tuple[float, int, int]]] = {}
    for number, line in numbered_lines(data):
        columns = line.decode("utf-8", "replace").split()
        try:
            query, _, docno, rank, score, _, *_ = columns
            place = -float(score), int(rank), number
            if not isfinite(place[0]):
                raise ValueError
        except ValueError:
            if line.startswith(b"#"):
                continue
            raise InputError(
                f"{name}, line {number}: {' '.join(columns)!r:.80} is not a line of a TREC run; its columns must be: "
                "query id, Q0, document id, rank (an integer), score (a number), tag"
            ) from None
        if rankings.setdefault(query, {}).setdefault(docno, place) is not place:
            raise InputError(
                f"{name}, line {number}: the document {docno} is repeated for the query {query}"
            )
    rows = []
    for query, documents in rankings.items():
        first_line = next(iter(documents.values()))[2]
        fields = {"id": query, field: sorted(documents, key=documents.__getitem__)}
        rows.append(Prediction(first_line, query, fields))
    if not rows:
        raise InputError(f"{name} is empty; a TREC run has one line per query and document")
    return Predictions(name, rows)


def join(question_ids: Sequence[str], predictions: Predictions) -> Joined:
    """Join predictions to their questions, in the order of the questions.

    InputError if none belongs to a question.
    """
    expected_ids = set(question_ids)
    last = {row.id: row for row in predictions.rows}
    unknown = [row for row in predictions.rows if row.id not in expected_ids]
    if len(unknown) == len(predictions.rows):
        raise InputError(
            f"none of the {len(unknown)} predictions of {predictions.path} belongs to a question of this config "
            f"(the first is {unknown[0]}); is it for another config or benchmark?"
        )
    missing = [id for id in question_ids if id not in last]
    expected = (row for row in predictions.rows if row.id in expected_ids)
    named: dict[str, Sequence[object]] = {
        WITHOUT_PREDICTION: missing,
        UNKNOWN: unknown,
        "predictions replaced by a later line": [row for row in expected if last[row.id] is not row],
        "unreadable lines": predictions.bad_lines,
    }
    problems = [f"{kind}: {len(items)} ({some(items)})" for kind, items in named.items() if items]
    return Joined(question_ids, list(map(last.get, question_ids)), missing, unknown, problems)


def by_system(
    predictions: Predictions, *, all_are_samples: bool = False
) -> dict[str, list[Predictions]]:
    """Return the predictions of each system in a file, divided into samples with one line per id.

    Lines with the same id are by several systems if their field "system" differs, and several samples
    if their "sample" does. Samples are numbered per id, in the order of the lines. Without an id of
    several systems, the whole file is by the system "". Lines that repeat id, system and sample are
    in the same part. With ``all_are_samples``, they are samples, too. Unreadable lines belong to the
    first sample of every system.
    """
    systems_of_id: dict[str, set[str]] = {}
    for row in predictions.rows:
        systems_of_id.setdefault(row.id, set()).add(_text_in(row, SYSTEM))
    has_several = any(len(systems) > 1 for systems in systems_of_id.values())
    parts: dict[str, list[list[Prediction]]] = {}
    numbers: dict[tuple[str, str], dict[str, int]] = {}
    for row in predictions.rows:
        system = _text_in(row, SYSTEM) if has_several else ""
        number_of_sample = numbers.setdefault((system, row.id), {})
        sample = f"line {row.line}" if all_are_samples else _text_in(row, SAMPLE)
        number = number_of_sample.setdefault(sample, len(number_of_sample))
        samples = parts.setdefault(system, [])
        if number == len(samples):
            samples.append([])
        samples[number].append(row)
    return {
        system: [
            Predictions(predictions.path, rows, () if number else predictions.bad_lines)
            for number, rows in enumerate(samples)
        ]
        for system, samples in parts.items()
    }


def _text_in(row: Prediction, name: str) -> str:
    value = row.fields.get(name)
    return "" if value is None else str(value)


def with_other_parts(joined: Joined, ids: Container[str], parts: str) -> Joined:
    """Return the predictions with those for questions of other parts of the data, such as domains, named as that.

    Args:
        joined: the predictions, joined to the questions of one part.
        ids: the ids of the questions of all parts.
        parts: what the parts are, in the plural.
    """
    elsewhere = [row for row in joined.unknown if row.id in ids]
    unknown = [row for row in joined.unknown if row.id not in ids]
    if not elsewhere:
        return joined
    problems = [each for each in joined.problems if not each.startswith(UNKNOWN)]
    named = {f"predictions for questions of other {parts}": elsewhere, UNKNOWN: unknown}
    problems += [f"{kind}: {len(rows)} ({some(rows)})" for kind, rows in named.items() if rows]
    return replace(joined, unknown=unknown, problems=problems)


def some(items: Iterable[object]) -> str:
    """Return the first items, and the number of the others."""
    texts = list(map(str, items))
    more = f" and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return ", ".join(texts[:NAMED]) + more


def read_bytes(source: str | Path) -> tuple[bytes, str]:
    """Return the content of a file or of standard input, and its name in messages.

    The content is decompressed, and text is UTF-8 without a byte order mark. A saved ``Dataset`` is
    Parquet. Raises InputError if it cannot be read.
    """
    is_stdin = str(source) == STDIN
    name = "standard input" if is_stdin else str(source)
    if not is_stdin and is_saved_dataset(source):
        return _saved_dataset(Path(source)), name
    try:
        with nullcontext(sys.stdin.buffer) if is_stdin else Path(source).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if data[:2] == b"\x1f\x8b":
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(name, error) from None
    if len(data) > MOST_BYTES:
        raise InputError(f"{name} has more than {MOST_BYTES >> 20} MiB, which is the limit for a file")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # a spreadsheet's "Unicode text"
        try:
            data = data.decode("utf-16").encode()
        except UnicodeError as error:
            raise InputError(f"{name} begins like UTF-16, but is not ({error})") from None
    return data.removeprefix(codecs.BOM_UTF8), name


def _with_named_columns(row: Row, needs: Sequence[str], ids: Sequence[str]) -> Row:
    """Return a row with the id and the answer from the fields of ``columns_named``. ValueError if they are missing."""
    id_column, answer_column = _COLUMNS.get()
    answer = "answer" if "answer" in needs or not needs else needs[0]
    fields = dict(row)
    for column, field in ((id_column, ids[0]), (answer_column, answer)):
        if column is None:
            continue
        if column not in row:
            keys = ", ".join(map(repr, row)) or "none"
            raise ValueError(f"without the column {column!r} (keys: {keys:.200})")
        fields[field] = row[column]
    return fields


def _with_known_names(
    row: Mapping[str, Any], needs: Sequence[str], ids: Sequence[str]
) -> Mapping[str, Any]:
    """Return a row under qabench's names, if it has only others: "ID", "question_id" or "prediction".

    The names of other tools stand for the first of ``ids`` and of ``needs``.
    """
    renamed = dict(row)
    for names, others in ((ids, OTHER_IDS), (needs, OTHER_ANSWERS)):
        if not names or not row.keys().isdisjoint(names):
            continue
        by_lower_case = {str(key).strip().lower(): key for key in reversed(list(row))}
        for name in (*names, *others):
            if name in by_lower_case:
                target = name if name in names else names[0]
                renamed[target] = renamed.pop(by_lower_case[name])
                break
    return renamed


def _prediction(number: int, item: Any, needs: Sequence[str], ids: Sequence[str]) -> Prediction:
    """Return the prediction of a line. Raises ValueError, with the reason, if there is none."""
    try:
        row = json_of(item, MAX_REPLY_CHARACTERS) if isinstance(item, bytes) else item
    except ValueError as error:
        raise ValueError(f"not JSON ({error})") from None
    if not isinstance(row, Mapping):
        raise ValueError(f"a JSON {type(row).__name__}, not an object")
    row = _with_named_columns(row, needs, ids)
    row = _with_known_names(row, needs, ids)
    for names in filter(None, (ids, needs)):
        if row.keys().isdisjoint(names):
            keys = ", ".join(map(repr, row)) or "none"
            raise ValueError(f"without {' or '.join(map(repr, names))} (keys: {keys:.200})")
    for name in needs:
        value = row.get(name)
        if isinstance(value, Mapping) and "id" in value and not value.keys().isdisjoint(needs):
            raise ValueError(
                f"the field {name!r} is itself a row with the keys {', '.join(map(repr, value)):.200}; it must be "
                f"the {name} alone"
            )
    identity = next(row[name] for name in ids if name in row)
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise ValueError(f"the id is neither a string nor an integer: {identity!r:.60}")
    return Prediction(number, str(identity), row)  # some datasets number their questions


def _collected(
    name: str, items: Iterable[tuple[int, Any]], needs: Sequence[str], ids: Sequence[str]
) -> Predictions:
    rows: list[Prediction] = []
    bad: list[BadLine] = []
    for number, item in items:
        try:
            rows.append(_prediction(number, item, needs, ids))
        except ValueError as error:
            bad.append(BadLine(number, str(error)))
    if not rows:
        first = f"; {bad[0]}" if bad else " (it is empty)"
        example = {"id": "7d...", needs[0] if needs else "answer": "..."}
        raise InputError(
            f"{name} has no predictions{first}. A line must be a JSON object: {json.dumps(example)}. "
            f"In a CSV file, the header must have {' and '.join(example)}"
        )
    return Predictions(name, rows, bad)
