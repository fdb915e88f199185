"""``qabench retrieve``: BM25 over files and datasets, with ids and TREC runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from typer.testing import CliRunner

from qabench.cli import app
from qabench.errors import InputError
from qabench.retrieval import BM25Index

ROWS = [
    {"name": "saturn", "body": "Saturn is a giant planet with rings"},
    {"name": "mars", "body": "Mars is a small red planet"},
    {"name": "paris", "body": "Paris is a city,\nin France"},
]
RUN = ["1 Q0 saturn 1", "1 Q0 mars 2", "2 Q0 paris 1"]


def retrieve(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["retrieve", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def documents(*arguments: object) -> list[dict[str, Any]]:
    return list(json.loads(retrieve(*arguments, "--json"))["documents"])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "planets [1].csv"
    Dataset.from_list(ROWS).to_csv(path)
    return path


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_files_of_each_format_give_the_same_run(tmp_path: Path, suffix: str) -> None:
    path, queries, run = tmp_path / f"planets.{suffix}", tmp_path / f"queries.{suffix}", tmp_path / "run.trec"
    asked = [{"qid": "1", "query": "giant planet"}, {"qid": "2", "query": "city"}]
    for target, rows in ((path, ROWS), (queries, asked)):
        dataset = Dataset.from_list(rows)
        options = {"sep": "\t"} if suffix == "tsv" else {}
        getattr(dataset, {"jsonl": "to_json", "parquet": "to_parquet"}.get(suffix, "to_csv"))(target, **options)
    out = retrieve(path, "--column", "body", "--id-column", "name", "--queries", queries, "--output", run)
    assert out == f"{run}: 3 documents for 2 queries\n"
    lines = [line.split() for line in run.read_text().splitlines()]
    assert [" ".join(line[:4]) for line in lines] == RUN and {line[5] for line in lines} == {"bm25"}
    hits = BM25Index([row["body"] for row in ROWS]).search("giant planet", 2)
    assert [float(line[4]) for line in lines[:2]] == pytest.approx(hits.scores, rel=1e-6)


def test_documents_without_a_common_term_need_an_option(source: Path) -> None:
    arguments = (source, "--column", "body", "--queries", "giant planet")
    assert [hit["id"] for hit in documents(*arguments)] == ["0", "1"]
    hits = [(hit["id"], hit["rank"], hit["text"]) for hit in documents(*arguments, "--all")]
    assert hits == [(str(i), i + 1, row["body"]) for i, row in enumerate(ROWS)]
    assert [hit["id"] for hit in documents(*arguments, "-k", 1)] == ["0"]
    table = retrieve(source, "--column", "body", "--id-column", "name", "--queries", "city", "--format", "csv")
    assert table.splitlines()[0] == "rank,id,score,text" and "Paris is a city, in France" in table


def test_a_dataset_and_a_text_file_of_queries(tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("density of planets\n\nBrazil\n")
    hits = documents("fanoutqa", "--config", "sample", "--column", "question", "--queries", queries, "-k", 1)
    assert [(hit["query"], hit["id"]) for hit in hits] == [("1", "463f5c17d453c3d3"), ("3", hits[1]["id"])]
    assert "Brazil" in hits[1]["text"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"--column": "text"}, "no column 'text'; the columns are name, body"),
        ({"--id-column": "key"}, "no column 'key'; its columns are name, body"),
        ({"--queries": "missing.jsonl"}, "file not found: missing.jsonl"),
        ({"--queries": "planets [1].csv"}, "no column query, question, text; its columns are name, body"),
        ({"--split": "train"}, "--split are for datasets"),
        ({"--id-column": "body", "--output": "run.trec"}, "'Mars is a small red planet' cannot be in a TREC run"),
    ],
)
def test_wrong_usage(source: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], message: str) -> None:
    monkeypatch.chdir(source.parent)
    values = {"--column": "body", "--queries": "red", **options}
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        retrieve(source.name, *(part for option in values.items() for part in option))


def test_repeated_ids(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    Dataset.from_list([*ROWS, ROWS[0]]).to_json(path)
    with pytest.raises(InputError, match="the id 'saturn' is repeated in the column 'name'"):
        retrieve(path, "--column", "body", "--id-column", "name", "--queries", "red")
