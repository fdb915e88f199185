"""Parse fastbook-benchmark's files (JSON, notebooks, CSV) into rows of the dataset.

This module does not import ``datasets``, which is slow. Nothing of a question or a keyword query is
lost: the flags "true" and "false" become booleans, and an answer component that is one string
becomes a list with one element (the source's lists have at least two). Of a notebook, the types and
sources of the cells are kept. Outputs, execution counts, attachments and metadata are not.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from qabench.data.rows import Json, Row, SourceRow, read_json
from qabench.errors import DataError

QUESTIONNAIRE = "## Questionnaire"
CELL_TYPES = ("markdown", "code", "raw")
FLAGS = {"true": True, "false": False}
# Every number with 18 digits fits into a column of int64.
MAX_DIGITS = 18

_FILE_NAME = re.compile(r"([0-9]{1,4})_.+\.ipynb", re.DOTALL)


def parse_question(row: SourceRow) -> Json:
    """Return a question: an object of the list in ``fastbook-benchmark.json``.

    The id is "chapter-question_number". The other fields are the source's. In answer_context, the
    flags are booleans and answer_component is a list of strings. Raises a DataError that names
    file, row and field.
    """
    return _with_id(row.read(QUESTION))


def parse_contexts(row: SourceRow) -> list[Json]:
    """Return the relevant passages of a question, in order.

    Each passage has the positions ``component_index`` and ``context_index``, which both begin at 0.
    """
    question = parse_question(row)
    passages = []
    for i, component in enumerate(question["answer_context"]):
        for j, context in enumerate(component["context"]):
            passages.append(
                {
                    "query_id": question["id"],
                    "chapter": question["chapter"],
                    "question_number": question["question_number"],
                    "component_index": i,
                    "context_index": j,
                    "context": context,
                    "explicit_context": component["explicit_context"],
                    "extraneous_answer": component["extraneous_answer"],
                }
            )
    return passages


def read_chapter(path: Path) -> Json:
    """Return a chapter: a notebook of nbformat 4.

    The leading digits of its file name are the chapter's number. The title is the first top-level
    heading of a markdown cell. See ``chapter_text`` for the text. ``cells`` are all cells,
    including the questionnaire, with position (from 0), cell_type and source. Raises a DataError
    that names file and field.
    """
    notebook = SourceRow.of(read_json(path), str(path)).only(
        "cells", "metadata", "nbformat", "nbformat_minor"
    )
    name = _FILE_NAME.fullmatch(path.name)
    if not name:
        raise DataError(
            f"{notebook.where}: expected a name with the chapter's number, such as 01_intro.ipynb"
        )
    cells = [_cell(row, position) for position, row in enumerate(notebook.rows("cells"))]
    return {
        "chapter": int(name[1]),
        "title": _title(cells, notebook.where),
        "file": path.name,
        "text": chapter_text(cells),
        "cells": cells,
    }


def chapter_text(cells: Iterable[Row]) -> str:
    """Return the text that is searched: the markdown and code cells, each followed by a newline.

    As in the source, it ends before the first markdown cell that contains "## Questionnaire".
    """
    text = ""
    for cell in cells:
        if cell["cell_type"] == "markdown" and QUESTIONNAIRE in cell["source"]:
            break
        if cell["cell_type"] != "raw":
            text += f"{cell['source']}\n"
    return text


def _with_id(values: Json) -> Json:
    """Return the values of a question with the id that it has in all configs, such as "13-4"."""
    return {"id": f"{values['chapter']}-{values['question_number']}"} | values


def _texts(row: SourceRow, key: str) -> list[str]:
    text = row.get(key, str, list)
    if isinstance(text, str):
        return [text]
    return row.list_of(key)


def _flag(row: SourceRow, key: str) -> bool:
    return FLAGS[row.one_of(key, FLAGS)]


def _number(row: SourceRow, key: str) -> int:
    # CSV files have only text.
    value = row.get(key, int, str)
    text = str(value)
    if not text.isdecimal() or len(text) > MAX_DIGITS:
        raise DataError(
            f"{row.where}, field {key!r}: expected an integer from 0 of at most {MAX_DIGITS} digits, "
            f"got {value!r:.60}"
        )
    return int(text)


KEYWORDS = {"chapter": _number, "question_number": _number, "question_text": str, "keywords": str}
QUESTION = {
    "chapter": _number,
    "question_number": _number,
    "question_text": str,
    "gold_standard_answer": str,
    "answer_context": [
        {
            "answer_component": _texts,
            "scoring_type": str,
            "context": [str],
            "explicit_context": _flag,
            "extraneous_answer": _flag,
        }
    ],
    "question_context": [{"question_component": str, "context": [str]}],
}


def _cell(row: SourceRow, position: int) -> Json:
    row.only("cell_type", "source", "metadata", "id", "attachments", "execution_count", "outputs")
    return {
        "position": position,
        "cell_type": row.one_of("cell_type", CELL_TYPES),
        # nbformat has two forms: a string, or a list of lines with their line endings.
        "source": "".join(_texts(row, "source")),
    }


def _title(cells: list[Json], where: str) -> str:
    for cell in cells:
        if cell["cell_type"] != "markdown":
            continue
        for line in cell["source"].split("\n"):
            if line.startswith("# "):
                return str(line[2:].strip())
    raise DataError(
        f"{where}, field 'cells': expected a markdown cell with the chapter's title, such as '# Tides'"
    )


def read_questions(path: Path) -> Iterator[SourceRow]:
    """Yield the questions of a ``fastbook-benchmark.json``. Raises DataError for another format."""
    try:
        document = SourceRow.of(read_json(path), str(path)).only("questions")
    except DataError as error:
        raise DataError(
            f'{error}; a file of questions is {{"questions": [...]}}, with the fields {", ".join(QUESTION)} in each'
        ) from None
    for i, value in enumerate(document.get("questions", list)):
        yield SourceRow.of(value, f"{path}, row {i}")


def read_keywords(path: Path) -> Iterator[Json]:
    """Yield the keyword queries of a CSV file with the header ``KEYWORDS``. Skips blank lines.

    Raises:
        DataError: the file has another format. The message names file and line.
    """
    line = 1
    try:
        # A spreadsheet program may write a byte order mark, which would become a part of the first
        # column's name.
        with path.open(encoding="utf-8-sig", newline="") as file:
            # If a row has too few fields, ``DictReader`` sets the missing ones to None, which
            # ``read`` rejects.
            reader = csv.DictReader(file, strict=True, restkey="(further field)")
            if reader.fieldnames != list(KEYWORDS):
                raise DataError(f"{path}, line 1: expected the columns {', '.join(KEYWORDS)}")
            for fields in reader:
                line = reader.line_num
                yield _with_id(SourceRow(fields, f"{path}, line {line}").read(KEYWORDS))
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path}, after line {line}: not CSV ({error})") from None
