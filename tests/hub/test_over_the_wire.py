"""The published names over real HTTP: stock datasets and evaluate, in separate processes with an empty HF_HOME.

The test Hub rejects requests of these processes to other machines (download counters, the dataset viewer).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import stand_ins
from hub_server import TOKEN, Hub
from huggingface_hub import HfApi
from only_the_sample import only_the_sample

import qabench
from qabench import answers, metrics
from qabench.hub.build import build
from qabench.hub.publish import Published
from qabench.hub.publish import publish as publish_all
from qabench.loading_scripts import benchmark_names, dataset_table

TAG = f"v{qabench.__version__}"
SAMPLES = [
    (name, config.name)
    for name in benchmark_names()
    for config in dataset_table(name).configs.values()
    if not config.files
]
METRICS = Path(metrics.__file__).parent
# Further arguments of metrics, on a machine without models.
OPTIONS: dict[str, dict[str, Any]] = {
    "fanout_acc": {"lemmatizer": "simplemma"},
    "fanoutqa": {"lemmatizer": "simplemma", "judge": False},
    "fanout_judge": {"prompt": "qabench"},  # the authors' prompt is not available on both sides
}
NO_WEIGHTS = f"""
import sys
sys.path.append({str(Path(stand_ins.__file__).parent)!r})
import pytest, stand_ins
stand_ins.no_weights(pytest.MonkeyPatch())
"""
PREAMBLE = """
import json, sys
arguments = json.loads(sys.argv[1])
"""


def python(code: str, hub: Hub, home: Path, arguments: Any = None, **environment: str) -> Any:
    """Run code with only HF_ENDPOINT set, and return the JSON on the last line of its output."""
    (home / "work").mkdir(parents=True, exist_ok=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "QABENCH_"))}
    env |= {"HF_HOME": str(home), "QABENCH_CACHE": str(home / "qabench"), **hub.environment, **environment}
    command = [sys.executable, "-W", "ignore", "-c", PREAMBLE + code, json.dumps(arguments)]
    done = subprocess.run(command, cwd=home / "work", env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def publish(out: Path) -> Published:
    """Everything that may be published, sent by `qabench publish`; the checks before it have separate tests."""
    with pytest.MonkeyPatch.context() as patch:
        only_the_sample(out.with_name("home"), patch)
        patch.setattr("qabench.hub.staging.check_dataset", lambda name, folder: [])
        patch.setattr("qabench.hub.staging.check_space", lambda name, folder: ([], f"{name}|not run here"))
        return publish_all("all", "qabench", accept_licenses=True, skip_missing=True, out=out)


def upload(hub: Hub, folder: Path, kind: str, name: str) -> None:
    api = HfApi(endpoint=hub.url, token=TOKEN)
    api.create_repo(f"qabench/{name}", repo_type=kind, space_sdk="gradio" if kind == "space" else None, exist_ok=True)
    api.upload_folder(
        repo_id=f"qabench/{name}", repo_type=kind, folder_path=folder, ignore_patterns=["__pycache__/*", "*.pyc"]
    )


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Everything that ships with the package, published, including benchmarks with a restriction."""
    out = tmp_path_factory.mktemp("out")
    with Hub() as hub:
        hub.used_here(patch)
        assert publish(out / "published").ok
        for name in benchmark_names():
            if dataset_table(name).restriction:
                build(out, [name], [config for known, config in SAMPLES if known == name])
                upload(hub, out / name, "dataset", name)
                HfApi(endpoint=hub.url, token=TOKEN).create_tag(f"qabench/{name}", tag=TAG, repo_type="dataset")
        yield hub


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


DATASETS = """
from datasets import get_dataset_config_names, get_dataset_split_names, load_dataset, load_dataset_builder
configs, splits, rows, columns = {}, {}, {}, {}
for name in dict(arguments["samples"]):
    configs[name] = get_dataset_config_names(f"qabench/{name}")
for name, config in arguments["samples"]:
    hub_name, key = f"qabench/{name}", f"{name} {config}"
    splits[key] = get_dataset_split_names(hub_name, config)
    every = load_dataset(hub_name, config)
    rows[key] = {split: list(part) for split, part in every.items()}
    columns[key] = {column: repr(feature) for column, feature in next(iter(every.values())).features.items()}
    again = load_dataset(hub_name, config)
    info = load_dataset_builder(hub_name, config).info
    assert {split: info.splits[split].num_examples for split in info.splits} == {s: len(again[s]) for s in again}
    assert info.features == next(iter(every.values())).features
    tagged = load_dataset(hub_name, config, revision=arguments["tag"])
    for split, part in every.items():
        first = load_dataset(hub_name, config, split=f"{split}[:2]")
        stream = load_dataset(hub_name, config, split=split, streaming=True)
        assert list(stream) == list(part) == list(tagged[split])
        assert list(stream.take(1)) == [part[0]] and list(first) == list(part)[:2]
print(json.dumps({"configs": configs, "splits": splits, "rows": rows, "columns": columns}))
"""
OFFLINE = """
from datasets import load_dataset
rows = {}
for name, config in arguments:
    every = load_dataset(f"qabench/{name}", config)
    rows[f"{name} {config}"] = {split: list(part) for split, part in every.items()}
print(json.dumps({"rows": rows}))
"""


def test_datasets(hub: Hub, home: Path, compared: Callable[[str], None]) -> None:
    """All calls of the stock library on all published configs return the rows of qabench.load_dataset."""
    ours = {f"{name} {config}": qabench.load_dataset(name, config) for name, config in SAMPLES}
    rows = {key: {split: list(part) for split, part in every.items()} for key, every in ours.items()}
    stock = python(DATASETS, hub, home, {"samples": SAMPLES, "tag": TAG})
    assert stock["rows"] == rows
    assert stock["configs"] == {name: [c for known, c in SAMPLES if known == name] for name in benchmark_names()}
    assert stock["splits"] == {key: list(every) for key, every in ours.items()}
    for key, every in ours.items():
        features = next(iter(every.values())).features
        assert stock["columns"][key] == {column: repr(feature) for column, feature in features.items()}
    asked = len(hub.requests)
    assert python(OFFLINE, hub, home, SAMPLES, HF_HUB_OFFLINE="1")["rows"] == rows
    assert len(hub.requests) == asked
    counts = [len(part) for every in rows.values() for part in every.values()]
    compared(f"{sum(counts)} rows of {len(rows)} published configs: stock datasets and qabench.load_dataset")


DEV = """
from datasets import load_dataset
import evaluate
dev = load_dataset("qabench/fanoutqa", "dev", split="validation")
assert list(load_dataset("qabench/fanoutqa", "dev", split="validation", streaming=True)) == list(dev)
metric = evaluate.load("qabench/fanout_acc")
predictions = [f"It is {answer}" for answer in dev["answer"]]
score = metric.compute(predictions=predictions, references=dev["answer"], lemmatizer="simplemma")
print(json.dumps({"rows": list(dev), "predictions": predictions, "score": score}))
"""


def test_real_questions(
    mirror: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compared: Callable[[str], None]
) -> None:
    """fanoutqa dev: the rows are the source file's, and the score is the local one."""
    build(tmp_path, ["fanoutqa"], ["dev"])
    with Hub() as hub:
        hub.used_here(monkeypatch)
        upload(hub, tmp_path / "fanoutqa", "dataset", "fanoutqa")
        upload(hub, METRICS / "fanout_acc", "space", "fanout_acc")
        stock = python(DEV, hub, home)
    ours = qabench.load_dataset("fanoutqa", "dev", split="validation")
    assert stock["rows"] == list(ours)
    (file,) = mirror.rglob("fanout-final-dev.json")
    source = json.loads(file.read_text(encoding="utf-8"))
    assert [(row["id"], row["question"], answers.loads(row["answer"])) for row in stock["rows"]] == [
        (row["id"], row["question"], row["answer"]) for row in source
    ]
    local = qabench.load_metric("fanout_acc")
    score = local.compute(predictions=stock["predictions"], references=ours["answer"], lemmatizer="simplemma")
    assert stock["score"] == score
    compared(f"{len(source)} questions of fanoutqa dev over the wire with the source file, and their score")


EVALUATE = """
import evaluate
results = {}
for name, (example, options) in arguments["examples"].items():
    metric = evaluate.load(f"qabench/{name}")
    results[name] = metric.compute(**example, **options)
evaluate.load("qabench/fanout_acc")
both = evaluate.combine(["qabench/fanout_acc", "qabench/fanout_rouge"])
results["both"] = both.compute(predictions=["Paris"], references=["Paris"])
print(json.dumps({"results": results}))
"""


OURS = """
import qabench
results = {
    name: qabench.load_metric(name).compute(**example, **options)
    for name, (example, options) in arguments["examples"].items()
}
print(json.dumps({"results": results}))
"""


def _example(name: str) -> dict[str, list[Any]]:
    """The initial input of a metric's page, without calls to a judge."""
    example = json.loads((METRICS / name / "example.json").read_text(encoding="utf-8"))
    if name == "fanout_judge":
        example["predictions"] = [None] * len(example["references"])
    return {"predictions": example["predictions"], "references": example["references"]}


def test_metrics(hub: Hub, home: Path, compared: Callable[[str], None]) -> None:
    """All metrics by their published names give the result of qabench.load_metric on their examples."""
    examples = {name: (_example(name), OPTIONS.get(name, {})) for name in metrics.metric_names()}
    stock = python(NO_WEIGHTS + EVALUATE, hub, home, {"examples": examples})["results"]
    assert stock.pop("both")["loose"] == 1
    ours = python(NO_WEIGHTS + OURS, hub, home, {"examples": examples})["results"]
    assert stock == ours
    asked = {line.split()[1].split("/info?")[0] for line in hub.outside}  # counters of downloads, and the viewer
    prompt = "raw.githubusercontent.com:443"  # the authors' file with the judge's prompt
    assert asked <= {"s3.amazonaws.com:443", prompt, hub.url.replace("://", "://datasets-server.")}
    compared(f"{len(ours)} metrics by published name: stock evaluate and qabench.load_metric")


WHICH = """
import contextlib, io, os, pathlib
if arguments["register"]:
    from qabench.cli import main
    sys.argv[1:] = ["register", "fanoutqa", "--config", "sample"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()
from datasets import load_dataset
import evaluate
ds = load_dataset("qabench/fanoutqa", "sample", split="validation")
metric = evaluate.load("qabench/fanout_acc")
places = {"dataset": ds.cache_files[0]["filename"], "metric": sys.modules[type(metric).__module__].__file__}
marked = {name: (pathlib.Path(place).parent / "qabench-registered.json").exists() for name, place in places.items()}
score = metric.compute(predictions=["Paris"] * len(ds), references=ds["answer"], lemmatizer="simplemma")
print(json.dumps({"registered": [name for name in marked if marked[name]], "rows": list(ds), "score": score}))
"""


def test_registered_and_published_names(hub: Hub, home: Path) -> None:
    """The stock functions return the Hub's version if it responds, else the one cached last.

    Both have the same rows and scores. evaluate ignores HF_HUB_OFFLINE; it uses HF_EVALUATE_OFFLINE.
    """
    register, stay = {"register": True}, {"register": False}
    with Hub() as empty, ThreadPoolExecutor() as pool:
        unpublished = pool.submit(python, WHICH, empty, home / "other", register)
        runs = [
            python(WHICH, hub, home, register, HF_HUB_OFFLINE="1"),
            python(WHICH, hub, home, stay),
            python(WHICH, hub, home, stay, HF_HUB_OFFLINE="1", HF_EVALUATE_OFFLINE="1"),
            unpublished.result(),
        ]
    assert [run["registered"] for run in runs] == [["dataset"], [], [], ["dataset", "metric"]]
    assert all((run["rows"], run["score"]) == (runs[0]["rows"], runs[0]["score"]) for run in runs)
    assert runs[0]["rows"] == list(qabench.load_dataset("fanoutqa", "sample", split="validation"))
