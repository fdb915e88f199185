"""``qabench retrieve``: BM25 over files and datasets, with ids and TREC runs."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from typer.testing import CliRunner

from qabench.cli import app
from qabench.cli.retrieve_index import METHODS
from qabench.errors import InputError
from qabench.retrieval import BM25Index
from qabench.retrieval.bm25 import formulas
from qabench.retrieval.bm25.counts import TermCounter
from qabench.retrieval.corpus import read_rows

ROWS = [
    {"name": "saturn", "body": "Saturn is a giant planet with rings"},
    {"name": "mars", "body": "Mars is a small red planet"},
    {"name": "paris", "body": "Paris is a city,\nin France"},
]
RUN = ["1 Q0 saturn 1", "1 Q0 mars 2", "2 Q0 paris 1"]
GAPS = {
    "csv": 'id,body\n007,"red, small\nplanet"\n\n008,\n009,NA\n010, \n',
    "tsv": "id\tbody\n007\tred planet\n\n\n008\n009\tNA\n010\t \n",
    "jsonl": '{"id": "007", "body": "red"}\n\n{"id": "x"}\n\n{"id": "008", "body": null}\n'
    '{"id": "009", "body": "NA"}\n',
    "json": '[{"id": "007", "body": "red"}, {"id": "008", "body": ""}, {"id": "009", "body": "NA"}]',
}
FIRST = {"csv": "2, * line 5", "tsv": "2, * line 5", "jsonl": "2, * line 3", "json": "1, * row 1 (id '008')"}


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


def test_reading_csv_leaves_the_limit_of_the_process(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    path = tmp_path / "long.csv"
    path.write_text("text\n" + "planet " * before, encoding="utf-8")
    retrieve(path, "--column", "text", "--queries", "planet")
    rows = read_rows(path)
    next(rows)
    assert csv.field_size_limit() == before
    with pytest.raises(InputError, match=r"cannot read .*missing\.csv"):
        next(read_rows(tmp_path / "missing.csv"))
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_files_of_each_format_give_the_same_run(tmp_path: Path, suffix: str) -> None:
    path, queries, run = tmp_path / f"planets.{suffix}", tmp_path / f"queries.{suffix}", tmp_path / "run.trec"
    asked = [{"qid": "1", "query": "giant planet"}, {"qid": "2", "query": "city"}]
    for target, rows in ((path, ROWS), (queries, asked)):
        dataset = Dataset.from_list(rows)
        options = {"sep": "\t"} if suffix == "tsv" else {}
        getattr(dataset, {"jsonl": "to_json", "parquet": "to_parquet"}.get(suffix, "to_csv"))(target, **options)
    out = retrieve(path, "--column", "body", "--id-column", "name", "--queries", queries, "--output", run)
    assert out == f"{run}: 3 documents for 2 queries, ranked by method=bm25+, k1=1.5, b=0.75, delta=1.0\n"
    lines = [line.split() for line in run.read_text().splitlines()]
    assert [" ".join(line[:4]) for line in lines] == RUN and {line[5] for line in lines} == {"bm25+"}
    hits = BM25Index([row["body"] for row in ROWS]).search("giant planet", 2)
    assert [float(line[4]) for line in lines[:2]] == pytest.approx(hits.scores, rel=1e-6)


def test_documents_without_a_common_term_are_left_out(source: Path) -> None:
    arguments = (source, "--column", "body", "--queries", "giant planet")
    assert [hit["id"] for hit in documents(*arguments)] == ["0", "1"]
    assert [hit["id"] for hit in documents(*arguments, "-k", 1)] == ["0"]
    table = retrieve(source, "--column", "body", "--id-column", "name", "--queries", "city", "--format", "csv")
    assert table.splitlines()[0] == "rank,id,score,text" and "Paris is a city,\nin France" in table


def test_the_column_is_text_by_default(tmp_path: Path) -> None:
    (tmp_path / "passages.csv").write_text("docno,text\na,red planet\nb,giant planet\n")
    assert [hit["text"] for hit in documents(tmp_path / "passages.csv", "--queries", "red")] == ["red planet"]


def test_a_dataset_and_a_text_file_of_queries(tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("density of planets\n\nBrazil\n")
    hits = documents("fanoutqa", "--config", "sample", "--column", "question", "--queries", queries, "-k", 1)
    assert [(hit["query"], hit["id"]) for hit in hits] == [("0", "463f5c17d453c3d3"), ("2", hits[1]["id"])]
    assert "Brazil" in hits[1]["text"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"--column": "text"}, "planets [1].csv has no column 'text'; its columns are name, body: name one with"),
        ({"--id-column": "key"}, "planets [1].csv, line 2: the field 'key' is missing"),
        ({"--queries": "missing.jsonl"}, "cannot read missing.jsonl: "),
        ({"--queries": "planets [1].csv"}, "no column query, question, text; its columns are name, body"),
        ({"--split": "train"}, "--split are for datasets"),
        ({"--method": "bm25"}, "unknown BM25 method 'bm25' (did you mean"),
        ({"--b": "2"}, "b is 2.0"),
        (
            {"--id-column": "body", "--output": "run.trec"},
            "'Saturn is a giant planet with rings' cannot be in a TREC run",
        ),
    ],
)
def test_wrong_usage(source: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], message: str) -> None:
    monkeypatch.chdir(source.parent)
    values = {"--column": "body", "--queries": "red", **options}
    with pytest.raises(InputError, match=re.escape(message)):
        retrieve(source.name, *(part for option in values.items() for part in option))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "okapi", "--delta", 1), "--delta has no effect on --method okapi"),
        (("--epsilon", 0.3), "--epsilon has no effect on --method bm25+"),
        (("--replace",), "--replace has no effect without --index"),
        (("--stem", "klingon"), "unknown stemmer 'klingon'"),
        (("--stop-words", "klingon"), "unknown stop words 'klingon'"),
    ],
)
def test_options_without_effect_are_errors(source: Path, options: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        retrieve(source, "--column", "body", "--queries", "red", *options)


def test_stems_and_stop_words(source: Path) -> None:
    arguments = (source, "--column", "body", "--queries", "a ring")
    assert [hit["id"] for hit in documents(*arguments, "--stem", "english", "--stop-words", "english")] == ["0"]
    assert len(documents(*arguments)) == 3


def test_a_kept_index_is_not_replaced_without_a_word(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    shared = ("--queries", "red planet", "--index", folder, "--quiet")
    rows = [{"name": str(number), "body": f"planet {number}"} for number in range(9)]
    big = tmp_path / "big.jsonl"
    Dataset.from_list(rows).to_json(big)
    retrieve(big, "--column", "body", *shared)
    before = (folder / "documents.bm25").read_bytes()
    refused = {
        f"the index in {folder} has the source {big}, not {source}: use another --index, or": (source, "body"),
        f"the index in {folder} has the columns body, not name: use another": (big, "name"),
    }
    for message, (path, column) in refused.items():
        with pytest.raises(InputError, match=re.escape(message)):
            retrieve(path, "--column", column, *shared)
    Dataset.from_list(rows[:4]).to_json(big)
    with pytest.raises(InputError, match=r"5 of the 9 documents in the index in .* would be removed"):
        retrieve(big, "--column", "body", *shared)
    assert (folder / "documents.bm25").read_bytes() == before
    retrieve(source, "--column", "body", *shared, "--replace")
    retrieve(source, "--column", "body", *shared, "--replace", "--method", "okapi")
    copy = tmp_path / "copy.csv"  # the same content at another path is the same source
    copy.write_bytes(source.read_bytes())
    retrieve(copy, "--column", "body", *shared, "--method", "okapi")
    assert BM25Index.load(folder / "documents.bm25").about == {"source": str(copy), "columns": ["body"]}


def test_an_index_of_another_version_is_replaced(source: Path, tmp_path: Path) -> None:
    arguments = ("--column", "body", "--queries", "red planet", "--index", tmp_path / "index", "--quiet")
    run = retrieve(source, *arguments)
    file = tmp_path / "index/documents.bm25"
    whole = file.read_bytes()
    for content, message in ((whole[:7] + b"\x06" + whole[8:], "has format 6"), (whole[:-1], "is damaged")):
        file.write_bytes(content)
        with pytest.raises(InputError, match=rf"{message}.* \(--replace writes a new one\)"):
            retrieve(source, *arguments)
        assert file.read_bytes() == content
        assert retrieve(source, *arguments, "--replace") == run and file.read_bytes() == whole


def test_an_output_is_written_in_the_format_that_is_asked_for(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "hits"
    long = tmp_path / "long.csv"
    long.write_text("_id,text\nx,red " + "planet " * 40 + "\ny,moon\n")
    arguments = (long, "--queries", "red", "-o", path)
    for format in ("csv", "markdown", "json"):
        retrieve(*arguments, "--format", format)
        written = path.read_text()
        assert "planet " * 39 + "planet" in written and " Q0 " not in written
        assert written == retrieve(*arguments[:3], "--format", format)
    score = json.loads(written)["documents"][0]["score"]
    retrieve(*arguments, "--format", "csv")
    assert f"1,x,{score!r},red planet" in path.read_text()


def test_ids_that_a_run_cannot_hold_are_found_before_indexing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TermCounter, "add", lambda self, texts: pytest.fail("indexed"))
    with pytest.raises(InputError, match="cannot be in a TREC run"):
        retrieve(source, "--column", "name", "--id-column", "body", "--queries", "x", "-o", tmp_path / "run")


def test_several_columns_are_joined_without_empty_ones(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"_id": "a", "title": "Mars", "text": null}\n{"_id": "b", "title": "Io", "text": "moon"}\n')
    arguments = (path, "--column", "title", "--column", "text", "--queries")
    hits = documents(*arguments, "mars moon")
    assert [(hit["id"], hit["text"]) for hit in hits] == [("a", "Mars"), ("b", "Io\nmoon")]


def test_ids_of_beir_and_queries_without_hits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "MED-1", "title": "", "text": "red planet"}\n')
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"_id": "PLAIN-1", "text": "planet"}\n{"_id": "PLAIN-2", "text": "zebra"}\n')
    arguments = ["retrieve", str(tmp_path / "corpus.jsonl"), "--queries", str(queries), "--json"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert [(hit["query"], hit["id"]) for hit in json.loads(done.stdout)["documents"]] == [("PLAIN-1", "MED-1")]
    assert "queries without a term in any document (1 of 2): PLAIN-2\n" in done.stderr
    queries.write_text('{"topic_id": "PLAIN-1", "text": "planet"}\n')
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert "row numbers from 0 are used as ids, not topic_id" in done.stderr


def test_repeated_ids(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    Dataset.from_list([*ROWS, ROWS[0]]).to_json(path)
    with pytest.raises(InputError, match="the id 'saturn' is repeated"):
        retrieve(path, "--column", "body", "--id-column", "name", "--queries", "red")


@pytest.mark.parametrize("suffix", GAPS)
def test_rows_without_text_are_skipped_with_one_note(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows.{suffix}"
    path.write_text(GAPS[suffix], encoding="utf-8")
    arguments = ["retrieve", str(path), "--column", "body", "--queries", "red NA", "--json"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert sorted(hit["id"] for hit in json.loads(done.stdout)["documents"]) == ["007", "009"]
    count, place = FIRST[suffix].split(" * ")
    assert f"rows without text in 'body' are skipped: {count} the first is {path}, {place}\n" in done.stderr


def test_variant_and_parameters_are_options(source: Path) -> None:
    options = ("--method", "bm25l", "--k1", 2, "--b", 0.5, "--delta", 1.5)
    arguments = (source, "--column", "body", "--queries", "giant planet", *options)
    shown = json.loads(retrieve(*arguments, "--json"))
    assert shown["bm25"] == {"method": "bm25l", "k1": 2, "b": 0.5, "delta": 1.5}
    index = BM25Index([row["body"] for row in ROWS], method="bm25l", k1=2, b=0.5, delta=1.5)
    assert [hit["score"] for hit in shown["documents"]] == index.search("giant planet", 2).scores
    assert "ranked by method=bm25l, k1=2.0, b=0.5, delta=1.5" in retrieve(*arguments)
    assert METHODS == formulas.METHODS


def test_a_kept_index_follows_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = tmp_path / "rows.jsonl", tmp_path / "kept"
    arguments = ["retrieve", str(path), "--column", "body", "--queries", "planet city moon", "--json"]
    tokenized: list[str] = []
    add = TermCounter.add
    monkeypatch.setattr(TermCounter, "add", lambda self, texts: (tokenized.extend(texts), add(self, texts))[1])
    moon = {"name": "moon", "body": "The Moon"}
    for rows, note, new in (
        (ROWS[:2], "2 added, 0 removed", ROWS[:2]),
        (ROWS[:2], "", []),
        ([*ROWS[:2], moon], "1 added, 0 removed", [moon]),
        ([ROWS[0], moon, ROWS[2]], "1 added, 1 removed", [ROWS[2]]),
    ):
        Dataset.from_list(rows).to_json(path)
        expected = retrieve(*arguments[1:])
        tokenized.clear()
        done = CliRunner().invoke(app, [*arguments, "--index", str(folder)], catch_exceptions=False)
        assert done.stdout == expected and tokenized == [row["body"] for row in new]
        assert ("added" in done.stderr) == bool(note) and note in done.stderr
    with pytest.raises(InputError, match=r"kept was built with --method bm25\+ --k1 1.5 --b 0.75.*: use these"):
        retrieve(*arguments[1:], "--index", folder, "--method", "okapi")


@pytest.mark.parametrize(
    ("rows", "message"),
    [('{"id": "a", "body": "b"}\n{"body": "c"}', "line 2: the field 'id' is missing"),
     ('{"id": "a", "body": "b"}\n\n{"id": null, "body": "c"}', "line 3, field 'id': expected string or integer"),
     ('{"id": "a", "body": "b"}\n{"id": "", "body": "c"}', "line 2 has no id in 'id'"),
     ('{"body": 7}', "line 1, field 'body': expected string or null, got integer 7"),
     ("[1]", "line 1: expected an object, got list"),
     ("", "rows.jsonl has no rows"),
     ("{}", "rows.jsonl has no text in 'body'; its columns are none")],
)  # fmt: skip
def test_ids_are_never_replaced_by_positions(tmp_path: Path, rows: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(rows)
    with pytest.raises(InputError, match=re.escape(message)):
        retrieve(path, "--column", "body", "--queries", "b")


def test_files_without_rows_say_so(source: Path, tmp_path: Path) -> None:
    """The columns of a CSV file with only a header were called "none"."""
    header = tmp_path / "header.csv"
    header.write_text("id,query,body\n")
    with pytest.raises(InputError, match=r"header.csv has no rows: the first line of a table names"):
        retrieve(header, "--column", "body", "--queries", "red")
    with pytest.raises(InputError, match=r"header.csv has no rows: the first line of a table names"):
        retrieve(source, "--column", "body", "--queries", header)


def test_values_to_filter_by_are_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,chapter\nred,3\nblue,\n")
    with pytest.raises(InputError, match=r"no document has '9' in 'chapter'; the first values are '3', ''$"):
        retrieve(path, "--queries", "red", "--where", "chapter=9")


@pytest.mark.parametrize("text", ["a,b\n1,2,3\n", 'a,b\n"1', "a\n\udcff"])
def test_damaged_csv_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"rows\.csv, (after )?line [012]"):
        retrieve(path, "--column", "b", "--queries", "b")
