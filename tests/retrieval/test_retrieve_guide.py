"""The way of docs/guides/retrieve.md: from a CSV file, or a folder of BEIR, to a run and its scores."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qabench.cli import app

GUIDE = Path(__file__).parents[2] / "docs/guides/retrieve.md"
LANGUAGES = json.loads((Path(__file__).with_name("bm25") / "languages.json").read_text(encoding="utf-8"))
CJK = ["--tokenizer", "words-2"]
STEMS = {name: [*CJK, "--stem", name, "--stop-words", name] for name in ("german", "hindi")}


def recall(qrels: dict[str, str], run: Path) -> float:
    """Return the share of queries whose relevant document is in the run, as R@100 of ir_measures."""
    ir_measures = pytest.importorskip("ir_measures")
    judged = [ir_measures.Qrel(query, document, 1) for query, document in qrels.items()]
    ranked = list(ir_measures.read_trec_run(str(run)))
    pairs = {(hit.query_id, hit.doc_id) for hit in ranked}
    assert len(pairs) == len(ranked) and {query for query, _ in pairs} <= qrels.keys()
    return sum((each.query_id, each.doc_id) in pairs for each in judged) / len(judged)


def call(*arguments: object) -> None:
    done = CliRunner().invoke(app, ["retrieve", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("language", LANGUAGES)
def test_from_a_csv_file_to_scores(language: str, tmp_path: Path) -> None:
    content = LANGUAGES[language]
    tables = {
        "passages.csv": [["docno", "text"], *([f"p{i}", text] for i, text in enumerate(content["documents"]))],
        "queries.csv": [["qid", "query"], *([f"q{i}", row["query"]] for i, row in enumerate(content["queries"]))],
    }
    for name, rows in tables.items():
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
    options = STEMS.get(language, CJK)
    assert " ".join(STEMS["german"]) in GUIDE.read_text(encoding="utf-8")
    run = tmp_path / "run.trec"
    call(tmp_path / "passages.csv", "--queries", tmp_path / "queries.csv", *options, "-k", 100, "-o", run)
    qrels = {f"q{i}": f"p{row['relevant']}" for i, row in enumerate(content["queries"])}
    assert recall(qrels, run) == 1


def test_from_a_folder_of_beir_to_scores(tmp_path: Path) -> None:
    content = LANGUAGES["german"]
    corpus = [{"_id": f"MED-{i}", "title": "", "text": text} for i, text in enumerate(content["documents"])]
    queries = [{"_id": f"PLAIN-{i}", "text": row["query"]} for i, row in enumerate(content["queries"])]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = tmp_path / "run.trec"
    columns = ("--column", "title", "--column", "text")
    call(tmp_path / "corpus.jsonl", *columns, "--queries", tmp_path / "queries.jsonl", *STEMS["german"], "-o", run)
    qrels = {f"PLAIN-{i}": f"MED-{row['relevant']}" for i, row in enumerate(content["queries"])}
    assert recall(qrels, run) == 1
