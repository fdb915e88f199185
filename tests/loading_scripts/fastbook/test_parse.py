"""fastbook-benchmark as a dataset: equal to its source files; tables, oddities and invalid files."""

import copy
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qabench.errors import DataError
from qabench.loading_scripts import FOLDER
from qabench.loading_scripts.fastbook.parse import read_chapter, read_keywords
from qabench.loading_scripts.load import load_dataset

Load = Callable[[str], list[dict[str, Any]]]
CHAPTERS = (1, 2, 4, 8, 9, 10, 13)
SAMPLE = FOLDER / "fastbook" / "sample"


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """The function that returns the rows of a config."""
    cache = str(tmp_path_factory.mktemp("hf"))

    def rows(config: str) -> list[dict[str, Any]]:
        (split,) = load_dataset("fastbook", config, cache_dir=cache).values()
        return list(split)

    return rows


def back(row: dict[str, Any]) -> dict[str, Any]:
    """A row of ``questions`` in the format of the source, which shows that the conversion is
    lossless.
    """
    source = copy.deepcopy({key: value for key, value in row.items() if key != "id"})
    for component in source["answer_context"]:
        texts = component["answer_component"]
        component["answer_component"] = texts[0] if len(texts) == 1 else texts
        for flag in ("explicit_context", "extraneous_answer"):
            component[flag] = "true" if component[flag] is True else "false"
    return source


def check_source(load: Load, prefix: str, questions: Path, keywords: Path, notebooks: Path) -> None:
    """Check that the rows of all four configs equal their files."""
    raw = json.loads(questions.read_bytes())["questions"]
    ids = [f"{row['chapter']}-{row['question_number']}" for row in raw]
    rows = load(prefix or "questions")
    assert [back(row) for row in rows] == raw
    assert [row["id"] for row in rows] == ids == list(dict.fromkeys(ids))
    assert load(f"{prefix}_contexts".lstrip("_")) == [
        {
            "query_id": row["id"], **{key: row[key] for key in ("chapter", "question_number")}, "component_index": i,
            "context_index": j, "context": context,
            **{key: component[key] for key in ("explicit_context", "extraneous_answer")},
        }
        for row in rows
        for i, component in enumerate(row["answer_context"])
        for j, context in enumerate(component["context"])
    ]  # fmt: skip
    rows = load(f"{prefix}_keywords".lstrip("_"))
    with keywords.open(encoding="utf-8", newline="") as file:
        raw = list(csv.DictReader(file))
    assert [{key: str(value) for key, value in row.items() if key != "id"} for row in rows] == raw
    assert [row["id"] for row in rows] == ids
    for row in load(f"{prefix}_corpus".lstrip("_")):
        cells = json.loads((notebooks / row["file"]).read_bytes())["cells"]
        assert [(cell["position"], cell["cell_type"], cell["source"]) for cell in row["cells"]] == [
            (position, cell["cell_type"], "".join(cell["source"])) for position, cell in enumerate(cells)
        ]
        assert row["text"].encode() == (notebooks / f"chapter_{row['chapter']}.txt").read_bytes()


def test_the_real_data_equals_the_source(mirror: Path, load: Load) -> None:
    source = mirror / "vishalbakshi" / "fastbook-benchmark"
    check_source(load, "", source / "fastbook-benchmark.json", source / "examples/fts_keywords.csv", source / "data")
    rows = load("corpus")
    assert [row["chapter"] for row in rows] == list(CHAPTERS)
    assert [row["title"] for row in rows][:2] == ["Your Deep Learning Journey", "From Model to Production"]
    assert sum(len(row["text"]) for row in rows) == 503_769


def test_the_sample_equals_its_files(load: Load) -> None:
    check_source(load, "sample", SAMPLE / "questions.json", SAMPLE / "fts_keywords.csv", SAMPLE)


# Oddities, by small rows


def cell(kind: str, source: Any, **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "source": source, "metadata": {}} | more


@pytest.mark.parametrize(
    ("cells", "file", "message"),
    [
        ([cell("heading", "x")], "07_x.ipynb", r"07_x.ipynb, field 'cells'\[0\], field 'cell_type'.*'heading'"),
        (
            [cell("code", "# no title")],
            "07_x.ipynb",
            "field 'cells': expected a markdown cell with the chapter's title",
        ),
        ([cell("markdown", "# T")], "x.ipynb", "x.ipynb: expected a name with the chapter's number"),
        ([cell("markdown", "# T", more=1)], "07_x.ipynb", r"field 'cells'\[0\]: unknown field 'more'"),
    ],
)
def test_a_notebook_of_another_form_is_an_error(cells: list[Any], file: str, message: str, tmp_path: Path) -> None:
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / file).write_text(json.dumps(notebook))
    with pytest.raises(DataError, match=message):
        read_chapter(tmp_path / file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chapter,number\n", r"line 1: expected the columns chapter, question_number"),
        ("1,2,a\n", "line 2, field 'keywords': expected string, got null"),
        ("1,2,a,b,c\n", r"line 2: unknown field '\(further field\)'"),
        ('1,2,"a\nb",c\n1,x,a,b\n', r"line 4, field 'question_number': expected an integer.*'x'"),
        ('1,2,a,b\n1,3,"a,b\n', r"after line 2: not CSV"),
        ('1,2,"a"b,c\n', r"after line 1: not CSV"),
    ],
)
def test_a_broken_keyword_row_is_named(text: str, message: str, tmp_path: Path) -> None:
    header = "" if text.startswith("chapter") else "chapter,question_number,question_text,keywords\n"
    file = tmp_path / "k.csv"
    file.write_text(header + text)
    with pytest.raises(DataError, match=message):
        list(read_keywords(file))


def test_ir_measures_reads_the_qrels(load: Load) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    chunks, rows = load("sample_chunks"), load("sample_qrels")
    chapters = {row["id"]: row["chapter"] for row in load("sample")}
    judged = [(id, row["doc_id"]) for id, chapter in chapters.items() for row in chunks if row["chapter"] == chapter]
    assert [(row["query_id"], row["doc_id"]) for row in rows] == judged
    texts = {row["doc_id"]: row["text"] for row in chunks}
    # the sample's chunks hold whole passages; ftfy straightens an apostrophe
    for row in load("sample_contexts"):
        holding = {document for document, text in texts.items() if row["context"] in text}
        assert holding <= {line["doc_id"] for line in rows if line["query_id"] == row["query_id"] and line["relevance"]}
    qrels = [ir_measures.Qrel(row["query_id"], row["doc_id"], row["relevance"]) for row in rows]
    perfect = [ir_measures.ScoredDoc(row["query_id"], row["doc_id"], float(row["relevance"])) for row in rows]
    with_relevant = {row["query_id"] for row in rows if row["relevance"]}
    mean = ir_measures.calc_aggregate([ir_measures.nDCG @ 1000], qrels, perfect)[ir_measures.nDCG @ 1000]
    assert 0 < mean == pytest.approx(len(with_relevant) / len(chapters))
