"""The public names of ``qabench``, and the arguments of ``load_dataset``; test_user_types.py has
the types.
"""

import json
import rlcompleter
import shutil
import socket
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest
from datasets import ReadInstruction, Split

import qabench
from qabench.errors import DataError, InputError, QabenchError, SourceUnavailable
from qabench.loading_scripts import FOLDER, dataset_table, shipped_names
from qabench.loading_scripts.load import cache_errors

SAMPLE = FOLDER / "fanoutqa/sample/questions.json"


def test_public_names_complete() -> None:
    assert {"load_dataset", "load_metric", "evaluate_predictions", "BM25Index"} <= set(dir(qabench))
    assert dir(qabench) == sorted(qabench.__all__)
    assert rlcompleter.Completer({"qabench": qabench}).complete("qabench.load_d", 0) == "qabench.load_dataset("
    assert all(getattr(qabench, name) for name in qabench.__all__)


@pytest.mark.parametrize(
    ("split", "rows"),
    [
        (None, {"validation": 12}), ("validation", 12), (Split.VALIDATION, 12), ("validation[:25%]", 3),
        ("validation[:2]+validation[10:]", 4), ("all", 12), (ReadInstruction("validation", from_=6, unit="abs"), 6),
        (["validation[:3]", Split.VALIDATION], [3, 12]),
    ],
)  # fmt: skip
def test_splits(split: Any, rows: Any) -> None:
    found: Any = qabench.load_dataset("fanoutqa", "sample", split=split)
    if isinstance(found, dict):
        assert {name: len(part) for name, part in found.items()} == rows
    else:
        assert ([len(part) for part in found] if isinstance(found, list) else len(found)) == rows


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"split": "nope"}, "fanoutqa sample has no split 'nope'; allowed: validation, or a slice"),
        ({"split": ["validation", "test"]}, "no split 'test'"),
        ({"split": "validation[a"}, "Unrecognized instruction format"),
        ({"split": "validation[:2]", "streaming": True}, r"validation\[:2\]. Available splits: "),
        ({"data_files": "nowhere.json"}, "data_files: the file nowhere.json does not exist"),
        ({"data_files": str(FOLDER)}, "is a folder; name its files, such as "),
        ({"data_files": 5}, "data_files is 5; allowed: a path, a list"),
        ({"data_files": {"test": [None]}}, "data_files is {'test': \\[None\\]}; allowed"),
        ({"data_files": {"test": []}}, "data_files is {'test': \\[\\]}; allowed"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        qabench.load_dataset("fanoutqa", "sample", **arguments)


def test_a_split_needs_no_files_of_others(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mirror" / "chaitanyamalaviya/ExpertQA/data/lfqa"
    folder.mkdir(parents=True)
    for name in ("rand_lfqa_val.json", "rand_lfqa_test.json"):
        shutil.copy(mirror / "chaitanyamalaviya/ExpertQA/data/lfqa" / name, folder)
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path / "mirror"))
    options: dict[str, Any] = {"cache_dir": tmp_path / "arrow"}
    assert len(qabench.load_dataset("expertqa", "lfqa_random", split="test", **options)) == 219
    assert len(qabench.load_dataset("expertqa", "lfqa_random", split="test[:5]+validation[:5]", **options)) == 10
    for split in ("train", None):
        with pytest.raises(SourceUnavailable, match=r"rand_lfqa_train\.json"):
            qabench.load_dataset("expertqa", "lfqa_random", split=split, **options)


def test_files_of_a_user(tmp_path: Path) -> None:
    questions = json.loads(SAMPLE.read_text(encoding="utf-8"))
    first, rest = tmp_path / "first.json", tmp_path / "rest.json"
    first.write_text(json.dumps(questions[:5]), encoding="utf-8")
    rest.write_text(json.dumps(questions[5:]), encoding="utf-8")
    whole = qabench.load_dataset("fanoutqa", "sample", split="validation")
    assert qabench.load_dataset("fanoutqa", data_files=[first, rest])["validation"][:] == whole[:]
    by_split = qabench.load_dataset("fanoutqa", data_files={"train": str(first), "test": rest})
    assert {name: len(part) for name, part in by_split.items()} == {"train": 5, "test": 7}
    streamed = qabench.load_dataset("fanoutqa", data_files=first, split="validation", streaming=True)
    assert [row["id"] for row in streamed] == whole["id"][:5]
    first.write_text(json.dumps(questions[:4]), encoding="utf-8")
    assert len(qabench.load_dataset("fanoutqa", data_files=first, split="validation")) == 4


@pytest.mark.parametrize(
    ("load", "arguments"), [(qabench.load_dataset, ("fanoutqa", "sample")), (qabench.load_metric, ("fanout_acc",))]
)
def test_an_unusable_cache_folder_is_one_error(load: Any, arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(QabenchError, match=r"the folder \S+file \(cache_dir\) cannot be used: .* name another folder"):
        load(*arguments, cache_dir=str(tmp_path / "file"))


def test_only_errors_of_a_folder_name_it(tmp_path: Path) -> None:
    """With cache_dir, other files are still below HF_HOME. An error of a full disk names no file."""
    files = {tmp_path / "own" / "x": "cache_dir", None: "cache_dir", tmp_path / "home" / "x": "HF_HOME"}
    for file, named in files.items():
        with pytest.raises(QabenchError, match=named), cache_errors(tmp_path / "own"):
            raise OSError(28, "No space left on device", file and str(file))


def test_streaming_needs_no_cache(tmp_path: Path) -> None:
    not_a_folder = tmp_path / "file"
    not_a_folder.write_text("")
    rows = qabench.load_dataset("felm", "sample", split="test", streaming=True, cache_dir=not_a_folder / "cache")
    assert list(rows) == list(qabench.load_dataset("felm", "sample", split="test"))
    with pytest.raises(QabenchError, match="name another folder"):
        qabench.load_dataset("felm", "sample", split="test", cache_dir=not_a_folder / "cache")


def test_nothing_waits_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Hub's host is not even looked up where the Hub may be used."""
    hosts = []

    def lookup(host: str, *arguments: Any, **options: Any) -> Any:
        hosts.append(host)
        raise OSError("no network")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    qabench.load_dataset("qabench/felm", "sample")
    qabench.load_dataset("felm", "sample", split="test", download_mode="force_redownload")
    qabench.load_metric("qabench/fanout_acc")
    assert not hosts


def test_the_arguments_of_the_stock_function() -> None:
    sample = qabench.load_dataset("felm", "sample", split="test")
    for arguments in (
        {"path": "qabench/felm", "name": "sample"},
        {"name": "felm", "config": "sample"},  # as before
        {"path": "felm", "config": "sample", "revision": "main"},
    ):
        loaded: Any = qabench.load_dataset(split="test", **arguments)
        assert loaded[:] == sample[:]
    assert len(qabench.load_dataset("felm", name="sample", split="test", revision=f"v{qabench.__version__}"))
    with pytest.raises(InputError, match=r"revision is 'abc'; allowed: None, 'main' or 'v"):
        qabench.load_dataset("felm", "sample", revision="abc")
    with pytest.raises(InputError, match="needs a benchmark"):
        qabench.load_dataset()
    with pytest.raises(InputError, match="are the same argument"):
        qabench.load_dataset("felm", "sample", config="all")


SAMPLES = [
    (name, config.name)
    for name, table in ((name, dataset_table(name)) for name in shipped_names())
    for config in table.configs.values()
    if not config.files
]


@pytest.mark.parametrize(("name", "config"), SAMPLES)
def test_rows_written_by_datasets_are_read(name: str, config: str, tmp_path: Path) -> None:
    """JSON Lines, a JSON list and Parquet of ``datasets``."""
    (whole,) = qabench.load_dataset(name, config).values()
    whole.to_json(tmp_path / "rows.jsonl")
    whole.to_json(tmp_path / "rows.json", lines=False)
    whole.to_parquet(tmp_path / "rows.parquet")
    # to 10 digits by to_json
    rounded = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    for file in tmp_path.iterdir():
        rows = whole.to_list() if file.suffix == ".parquet" else rounded
        (loaded,) = qabench.load_dataset(name, config, data_files=file).values()
        assert loaded.features == whole.features and loaded.to_list() == rows, file
        (streamed,) = qabench.load_dataset(name, config, data_files=file, streaming=True).values()
        assert list(streamed) == rows


def test_patterns_and_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = json.loads(SAMPLE.read_text(encoding="utf-8"))
    for number, part in enumerate((questions[:5], questions[5:])):
        (tmp_path / f"part{number}.json").write_text(json.dumps(part), encoding="utf-8")
    whole = qabench.load_dataset("fanoutqa", "sample", split="validation")
    pattern = f"{tmp_path}/**/part*.json"
    assert qabench.load_dataset("fanoutqa", data_files=pattern, split="validation")[:] == whole[:]
    with pytest.raises(InputError, match=r"data_files: no file matches .*nothing\*"):
        qabench.load_dataset("fanoutqa", data_files=f"{tmp_path}/nothing*")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/part0.json"
        monkeypatch.setenv("QABENCH_OFFLINE", "1")
        with pytest.raises(InputError, match="cannot be downloaded because QABENCH_OFFLINE is set"):
            qabench.load_dataset("fanoutqa", data_files=url)
        monkeypatch.delenv("QABENCH_OFFLINE")
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        files: Any = [url, tmp_path / "part1.json"]
        assert qabench.load_dataset("fanoutqa", data_files=files, split="validation")[:] == whole[:]
        with pytest.raises(QabenchError, match="404"):
            qabench.load_dataset("fanoutqa", data_files=url.replace("part0", "nowhere"))
        server.shutdown()


def test_a_file_without_rows(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("[]")
    with pytest.warns(UserWarning, match="split test of felm all is empty: its files have no rows"):
        empty = qabench.load_dataset("felm", "all", data_files=tmp_path / "none.json")
    sample = qabench.load_dataset("felm", "sample", split="test")
    assert len(empty["test"]) == 0 and empty["test"].features == sample.features
    sample.to_parquet(tmp_path / "rows.parquet")
    files: Any = {"train": tmp_path / "none.json", "test": tmp_path / "rows.parquet"}
    assert len(qabench.load_dataset("felm", "all", data_files=files, split="train+test")) == len(sample)


def test_a_bad_row_of_a_dataset(tmp_path: Path) -> None:
    rows: Any = qabench.load_dataset("felm", "sample", split="test").to_list()
    rows[2]["labels"] = "no list"
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(DataError, match=r"rows.jsonl, line 3: not a row of the dataset"):
        qabench.load_dataset("felm", "all", data_files=path)
