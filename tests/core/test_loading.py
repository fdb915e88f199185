"""The public names of ``qabench``, and the arguments of ``load_dataset``; test_user_types.py has the types."""

import json
import rlcompleter
import shutil
import socket
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest
from datasets import ReadInstruction, Split

import qabench
from qabench.errors import InputError, QabenchError, SourceUnavailable
from qabench.loading_scripts import FOLDER

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
    with pytest.raises(QabenchError, match="HF_HOME"):
        load(*arguments, cache_dir=str(tmp_path / "file"))


def test_streaming_needs_no_cache(tmp_path: Path) -> None:
    not_a_folder = tmp_path / "file"
    not_a_folder.write_text("")
    rows = qabench.load_dataset("felm", "sample", split="test", streaming=True, cache_dir=not_a_folder / "cache")
    assert list(rows) == list(qabench.load_dataset("felm", "sample", split="test"))
    with pytest.raises(QabenchError, match="set HF_HOME to a folder"):
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
