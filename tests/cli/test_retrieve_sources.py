"""``qabench retrieve``: indexes without their source, filters, columns of queries, and what it reads."""

import gzip
import json
import socket
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Dataset, DatasetDict
from typer.testing import CliRunner, Result

from qabench.cli import app
from qabench.errors import InputError
from qabench.retrieval import BM25Index, Words

ROWS = [
    {"docno": "saturn", "text": "Saturn is a giant planet", "kind": "planet", "moons": 146},
    {"docno": "mars", "text": "Mars is a red planet", "kind": "planet", "moons": 2},
    {"docno": "titan", "text": "Titan is a moon of a planet", "kind": "moon", "moons": 0},
]


def call(*arguments: object, input: str | bytes | None = None) -> Result:
    done = CliRunner().invoke(app, ["retrieve", *map(str, arguments)], catch_exceptions=False, input=input)
    assert done.exit_code == 0, done.output
    return done


def ids(*arguments: object, input: str | bytes | None = None) -> list[str]:
    return [hit["id"] for hit in json.loads(call(*arguments, "--json", input=input).stdout)["documents"]]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    Dataset.from_list(ROWS).to_json(path)
    return path


def test_an_index_is_searched_without_its_source(source: Path, tmp_path: Path) -> None:
    folder, run = tmp_path / "index", tmp_path / "run"
    call(source, "--queries", "planet", "--index", folder, "--method", "lucene", "--tokenizer", "words-2", "-o", run)
    expected = run.read_text()
    source.unlink()
    call("--queries", "planet", "--index", folder, "--run", run)
    assert run.read_text() == expected and expected.startswith("1 Q0 saturn 1 ")
    done = call("--queries", "moon", "--index", folder)
    assert done.stdout.splitlines()[:2] == [
        f"3 documents of {source}, ranked by method=lucene, k1=1.5, b=0.75",
        "rank  id      score",
    ]
    assert "text" not in json.loads(call("--queries", "moon", "--index", folder, "--json").stdout)["documents"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--queries", "x"], r"name a SOURCE, or the folder of an index \(--index DIR\)"),
        (["--queries", "x", "--index", "missing"], "there is no index in missing: name a SOURCE to build one"),
        (["--queries", "x", "--index", "i", "--k1", "2"], "--k1 has no effect without SOURCE: omit it"),
        (["--queries", "x", "--index", "i", "--delta", "0"], "--delta has no effect without SOURCE"),
        (["--queries", "x", "--index", "i", "--column", "a"], "--column has no effect without SOURCE"),
        (["-", "--queries", "-"], "SOURCE and --queries cannot both be standard input"),
        (["rows.jsonl", "--queries", "x", "--where", "kind"], "--where is 'kind'; expected COLUMN=VALUE"),
        (["rows.jsonl", "--queries", "x", "--where", "kind=star"], "no document has 'star' in 'kind'; the first"),
        (
            ["rows.jsonl", "--queries", "x", "--where", "a=b"],
            "line 1: the field 'a' is missing; --where or the saved index filters",
        ),
        (["rows.jsonl", "--queries", "x", "--empty", "keep"], "unknown --empty 'keep'.*; allowed: skip, error"),
        (["rows.jsonl", "--queries", "x", "--tokenizer", "words"], "unknown --tokenizer 'words'"),
        (["rows.jsonl", "--queries", "x y", "--query-column", "q"], "--query-column has no effect on a query that is"),
        (["rows.jsonl", "--queries", "rows.jsonl", "--query-column", "q"], "rows.jsonl has no column q; its columns"),
        (["fanoutqaa", "--queries", "x"], r"unknown dataset or file 'fanoutqaa' \(did you mean 'fanoutqa'\?\)"),
    ],
)
def test_wrong_usage(source: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str) -> None:
    monkeypatch.chdir(source.parent)
    with pytest.raises(InputError, match=message):
        call(*options)


def test_a_kept_index_has_its_options(source: Path, tmp_path: Path) -> None:
    options = (source, "--queries", "planets", "--index", tmp_path / "index")
    words = ("--tokenizer", "words-2", "--stem", "english", "--stop-words", "english")
    assert ids(*options, "--method", "bm25l", "--delta", 0.7, *words) == ["saturn", "mars", "titan"]
    assert ids(*options) == ["saturn", "mars", "titan"]
    built = "--method bm25l --k1 1.5 --b 0.75 --delta 0.7 --tokenizer words-2 --stop-words english --stem english"
    for other in (("--k1", 2), ("--stem", "german"), ("--method", "okapi")):
        with pytest.raises(InputError, match=f"was built with {built}: use these options"):
            call(*options, *other)
    assert ids(*options, "--replace") == []
    assert BM25Index.load(tmp_path / "index/documents.bm25").parameters.method == "bm25+"


def test_an_index_of_python_is_not_replaced(source: Path, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    BM25Index(["a planet"], tokenizer=Words(["x"])).save(tmp_path / "index/documents.bm25")
    assert ids("--queries", "planet", "--index", tmp_path / "index") == ["0"]
    with pytest.raises(InputError, match="was not built by this command: use another --index, or --replace"):
        call(source, "--queries", "planet", "--index", tmp_path / "index")


def test_filters(source: Path, tmp_path: Path) -> None:
    shared = (source, "--queries", "planet")
    assert ids(*shared, "--where", "kind=planet") == ["saturn", "mars"]
    assert ids(*shared, "--where", "kind=planet", "--where", "kind=moon", "--where", "moons=2") == ["mars"]
    last = json.loads(call(*shared, "--json").stdout)["documents"][-1]
    (filtered,) = json.loads(call(*shared, "--where", "moons=0", "--json").stdout)["documents"]
    assert last | {"rank": 1} == filtered  # with the same score
    done = call(source, "--queries", "Titan", "--where", "kind=planet")
    assert "queries without a hit among the documents with this kind (1 of 1): 1\n" in done.stderr
    call(*shared, "--index", tmp_path / "index", "--where", "kind=moon")
    assert ids("--queries", "planet", "--index", tmp_path / "index", "--where", "kind=moon") == ["titan"]
    with pytest.raises(InputError, match="has no column 'moons' to filter by; it has: kind"):
        call(*shared, "--index", tmp_path / "index", "--where", "moons=0")


def test_compressed_files_and_standard_input(source: Path, tmp_path: Path) -> None:
    table = "docno,text\n007,red planet\n008,moon\n"
    for name, text in (("a.csv", table), ("a.tsv", table.replace(",", "\t")), ("a.txt", "red planet\n\nmoon\n")):
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(text.encode()))
        expected = ["2"] if name == "a.txt" else ["008"]
        assert ids(path, "--queries", "moon") == expected == ids("-", "--queries", "moon", input=text)
    assert ids("-", "--queries", "moon", input=source.read_bytes()) == ["titan"]
    assert ids("-", "--queries", "moon", input=json.dumps(ROWS)) == ["titan"]
    Dataset.from_list(ROWS).to_parquet(tmp_path / "rows.parquet")
    assert ids("-", "--queries", "moon", input=(tmp_path / "rows.parquet").read_bytes()) == ["titan"]
    found = json.loads(call(source, "--queries", "-", "--json", input="moon\n\nred\n").stdout)
    assert [(hit["query"], hit["id"]) for hit in found["documents"]] == [("0", "titan"), ("2", "mars")]
    (tmp_path / "b.csv.gz").write_bytes(b"text\nmoon")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(table.encode())[:-9])
    for name in ("b", "c"):
        with pytest.raises(InputError, match=rf"cannot read .*{name}\.csv\.gz"):
            call(tmp_path / f"{name}.csv.gz", "--queries", "moon")


def test_folders_of_saved_datasets(source: Path, tmp_path: Path) -> None:
    Dataset.from_list(ROWS).save_to_disk(tmp_path / "one")
    DatasetDict(train=Dataset.from_list(ROWS), test=Dataset.from_list(ROWS[:1])).save_to_disk(tmp_path / "two")
    Dataset.from_dict({"qid": ["q"], "text": ["moon"]}).save_to_disk(tmp_path / "queries")
    assert ids(tmp_path / "one", "--queries", tmp_path / "queries") == ["titan"]
    assert ids(tmp_path / "two", "--queries", "planet", "--split", "test") == ["saturn"]
    for split in ([], ["--split", "dev"]):
        with pytest.raises(InputError, match="two has the splits train, test: choose one with --split"):
            call(tmp_path / "two", "--queries", "planet", *split)


def test_columns_of_queries(source: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.csv"
    queries.write_text("topic_id,title,video\nT1,moon,a\n")
    done = call(source, "--queries", queries, "--query-column", "title", "--json")
    assert "not topic_id: name a column with --query-id-column" in done.stderr
    done = call(source, "--queries", queries, "--query-column", "title", "--query-id-column", "topic_id", "--json")
    assert json.loads(done.stdout)["documents"][0]["query"] == "T1" and "topic_id" not in done.stderr


def test_documents_whose_ids_are_not_taken_are_named(source: Path, tmp_path: Path) -> None:
    for column in ("pid", "PassageID", "passage_id"):
        passages = tmp_path / "passages.csv"
        passages.write_text(f"{column},text,grid\n7,moon,x\n")
        done = call(passages, "--queries", "moon", "--json")
        assert f"row numbers from 0 are used as ids, not {column}: name a column with --id-column" in done.stderr
        assert json.loads(done.stdout)["documents"][0]["id"] == "0"
        assert "numbers of rows" not in call(passages, "--queries", "moon", "--id-column", column).stderr
    assert "numbers of rows" not in call(source, "--queries", "moon").stderr
    Dataset.from_dict({"text": ["moon"], "passage_id": ["7"]}).save_to_disk(tmp_path / "saved")
    assert "not passage_id: name a column with --id-column" in call(tmp_path / "saved", "--queries", "moon").stderr


def test_a_csv_file_with_semicolons(tmp_path: Path) -> None:
    text = 'docno;text\r\np1;"Mond, Mars\r\nund Venus"\r\np2;Erde, Mond und mehr\r\n'
    path = tmp_path / "passages.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert ids(path, "--queries", "Mars") == ["p1"] == ids("-", "--queries", "Venus", input=path.read_bytes())
    (tmp_path / "one.csv").write_text("a; b, text\n1,2\n")
    with pytest.raises(InputError, match="its columns are a; b, ' text': name one with --column"):
        call(tmp_path / "one.csv", "--queries", "x")


@pytest.mark.parametrize("encoding", ["gb18030", "cp1252", "utf-16"])
def test_a_file_in_another_encoding(tmp_path: Path, encoding: str) -> None:
    words = "北京" if encoding == "gb18030" else "größer"
    lines = ["docno,text", *(f"p{number},plain words" for number in range(2000)), f"p,{words}"]
    for name in ("rows.csv", "rows.txt"):
        (tmp_path / name).write_bytes("\n".join(lines).encode(encoding))
        if encoding == "utf-16" and name == "rows.csv":
            assert ids(tmp_path / name, "--queries", words) == ["p"]  # as Excel saves "Unicode text"
            continue
        line = 1 if encoding == "utf-16" else 2002
        with pytest.raises(InputError, match=rf"{name}, line {line}: it is not UTF-8 .* iconv -f ENCODING -t UTF-8"):
            call(tmp_path / name, "--queries", "plain")


def test_documents_and_queries_by_id(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('{"p1": "moon", "p2": "red planet"}')
    (tmp_path / "queries.json").write_text('{"q7": "planet"}')
    done = call(tmp_path / "rows.json", "--queries", tmp_path / "queries.json", "--json")
    (found,) = json.loads(done.stdout)["documents"]
    assert (found["query"], found["id"]) == ("q7", "p2")
    for other in ('{"p1": "moon", "p2": ["red planet"]}', '{"docno": "p1", "text": "moon"}'):
        (tmp_path / "rows.json").write_text(other)
        with pytest.raises(InputError, match="expected a list of rows, got object"):
            call(tmp_path / "rows.json", "--queries", "moon")


def test_a_header_that_names_a_column_twice(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("docno,text,text\np1,moon,mars\n")
    with pytest.raises(InputError, match=r"rows\.csv has two columns with the name 'text': rename one"):
        call(path, "--queries", "moon")
    path.write_text("docno,text,,\np1,moon,,\n")
    assert ids(path, "--queries", "moon") == ["p1"]


def test_rows_without_text_keep_the_numbers_of_others(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('text\nred planet\n" "\nmoon\n')
    index = ("--index", tmp_path / "index")
    for arguments in ((path, *index), index):
        assert ids("--queries", "moon", *arguments) == ["2"]
    with pytest.raises(InputError, match=r"rows\.csv, line 3 has no text in 'text'"):
        call(path, "--queries", "moon", "--empty", "error")


def test_lines_of_text_are_as_in_datasets(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_bytes("red\u2028planet\r\n\fblue\x1c moon\nlast star".encode())
    rows = datasets.load_dataset("text", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert rows["text"][:] == ["red\u2028planet", "\fblue\x1c moon", "last star"]
    assert [ids(path, "--queries", query) for query in ("planet", "moon", "star")] == [["0"], ["1"], ["2"]]


def test_languages(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("東京都に行く\nमुझे हिन्दी किताबें पसंद हैं\nประเทศไทยสวยงาม\nDie Häuser\n", encoding="utf-8")
    shared = (path, "--tokenizer", "words-2", "--queries")
    assert [ids(*shared, query) for query in ("東京", "ไทย", "हिन्दी")] == [["0"], ["2"], ["1"]]
    assert ids(*shared, "किताब", "--stem", "hindi") == ["1"]
    assert ids(*shared, "der Haus", "--stem", "german", "--stop-words", "german") == ["3"]


def test_an_unreachable_hub_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise socket.gaierror("Name or service not known")

    seen = []

    def load(*_: Any, **__: Any) -> Any:
        seen.append(datasets.config.HF_HUB_OFFLINE)
        raise ConnectionError("offline")

    before = datasets.config.HF_HUB_OFFLINE
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(datasets, "load_dataset", load)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        InputError, match=r"cannot read nosuch/dataset: huggingface\.co cannot be reached, and the cache of the library"
    ):
        call("nosuch/dataset", "--queries", "x")
    assert seen == [True] and before == datasets.config.HF_HUB_OFFLINE


def test_a_column_that_no_row_has(source: Path) -> None:
    both = ("--column", "docno", "--column", "text")
    assert ids(source, *both, "--queries", "saturn") == ["saturn"]
    with pytest.raises(InputError, match=r"has no column 'titel'; its columns are docno, text, kind, moons"):
        call(source, *both, "--column", "titel", "--queries", "saturn")


def test_a_folder_of_beir_is_explained(source: Path) -> None:
    source.rename(source.with_name("corpus.jsonl"))
    with pytest.raises(InputError, match=r"is a BEIR folder: name the file .*corpus\.jsonl, with --column title"):
        call(source.parent, "--queries", "saturn")


def test_queries_in_other_scripts_need_other_words(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    Dataset.from_list([{"docno": "p1", "text": "東京は日本の首都です。"}]).to_json(path)
    done = call(path, "--queries", "首都")
    assert "in any document (1 of 1): 1. For their scripts, index the documents with --tokenizer words-2" in done.stderr
    assert "words-2" not in call(path, "--queries", "capital").stderr
    assert ids(path, "--queries", "首都", "--tokenizer", "words-2") == ["p1"]


def test_ids_of_queries_that_a_run_cannot_hold(source: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.tsv"
    queries.write_text("1\tplanet\n2\tmoon\n")
    with pytest.raises(InputError, match="its columns are 1, planet: name one with --query-column, or add a line with"):
        call(source, "--queries", queries)
    # Programs that read runs split lines at this space, too.
    queries.write_text("qid\tquery\na\u00a0\tplanet\n", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be in a TREC run"):
        call(source, "--queries", queries, "-o", tmp_path / "run")
    queries.write_text("qid\tquery\na b\tplanet\n")
    with pytest.raises(InputError, match=r"the id 'a b' cannot be in a TREC run.*: choose another --query-id-column"):
        call(source, "--queries", queries, "-o", tmp_path / "run")


def test_a_saved_dataset_without_splits(source: Path, tmp_path: Path) -> None:
    Dataset.from_list(ROWS).save_to_disk(tmp_path / "one")
    with pytest.raises(InputError, match=r"--split has no effect on .*one, which has no splits"):
        call(tmp_path / "one", "--queries", "planet", "--split", "test")
