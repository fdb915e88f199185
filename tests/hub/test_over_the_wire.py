"""The published names over real HTTP: stock datasets and evaluate, in separate processes with an empty HF_HOME.

The test Hub rejects requests of these processes to other machines (download counters, the dataset viewer).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import evaluate
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
TIMED = """
import json, sys, time
given, times = json.loads(sys.argv[1]), {}
def timed(call, function, *args, **options):
    start = time.perf_counter()
    result = function(*args, **options)
    times[call] = round(time.perf_counter() - start, 3)
    return result
"""


def python(code: str, hub: Hub, home: Path, given: Any = None, **environment: str) -> Any:
    """Runs code with only HF_ENDPOINT set; returns the JSON on the last line of its output."""
    (home / "work").mkdir(parents=True, exist_ok=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "QABENCH_"))}
    env |= {"HF_HOME": str(home), "QABENCH_CACHE": str(home / "qabench"), **hub.environment, **environment}
    command = [sys.executable, "-W", "ignore", "-c", TIMED + code, json.dumps(given)]
    done = subprocess.run(command, cwd=home / "work", env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(result.get("times", {}), indent=1))
    return result


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
imported = time.perf_counter()
from datasets import get_dataset_config_names, get_dataset_split_names, load_dataset, load_dataset_builder
times["import datasets"] = round(time.perf_counter() - imported, 3)
configs, splits, rows, columns = {}, {}, {}, {}
for name in dict(given["samples"]):
    configs[name] = timed(f"get_dataset_config_names {name}", get_dataset_config_names, f"qabench/{name}")
for name, config in given["samples"]:
    hub_name, key = f"qabench/{name}", f"{name} {config}"
    splits[key] = timed(f"get_dataset_split_names {key}", get_dataset_split_names, hub_name, config)
    every = timed(f"load_dataset {key}", load_dataset, hub_name, config)
    rows[key] = {split: list(part) for split, part in every.items()}
    columns[key] = {column: repr(feature) for column, feature in next(iter(every.values())).features.items()}
    again = timed(f"load_dataset {key}, again", load_dataset, hub_name, config)
    info = timed(f"load_dataset_builder {key}", load_dataset_builder, hub_name, config).info
    assert {split: info.splits[split].num_examples for split in info.splits} == {s: len(again[s]) for s in again}
    assert info.features == next(iter(every.values())).features
    tagged = timed(f"load_dataset {key}, tag", load_dataset, hub_name, config, revision=given["tag"])
    for split, part in every.items():
        first = timed(f"load_dataset {key}, slice", load_dataset, hub_name, config, split=f"{split}[:2]")
        stream = load_dataset(hub_name, config, split=split, streaming=True)
        assert timed(f"load_dataset {key}, streaming", list, stream) == list(part) == list(tagged[split])
        assert list(stream.take(1)) == [part[0]] and list(first) == list(part)[:2]
print(json.dumps({"configs": configs, "splits": splits, "rows": rows, "columns": columns, "times": times}))
"""
OFFLINE = """
from datasets import load_dataset
rows = {}
for name, config in given:
    every = timed(f"load_dataset {name} {config}, offline", load_dataset, f"qabench/{name}", config)
    rows[f"{name} {config}"] = {split: list(part) for split, part in every.items()}
print(json.dumps({"rows": rows, "times": times}))
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
dev = timed("load_dataset fanoutqa dev", load_dataset, "qabench/fanoutqa", "dev", split="validation")
streamed = timed("load_dataset fanoutqa dev, streaming", list,
                 load_dataset("qabench/fanoutqa", "dev", split="validation", streaming=True))
assert streamed == list(dev)
metric = timed("evaluate.load fanout_acc", evaluate.load, "qabench/fanout_acc")
predictions = [f"It is {answer}" for answer in dev["answer"]]
score = timed("compute fanout_acc dev", metric.compute, predictions=predictions, references=dev["answer"],
              lemmatizer="simplemma")
print(json.dumps({"rows": list(dev), "predictions": predictions, "score": score, "times": times}))
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
imported = time.perf_counter()
import evaluate
times["import evaluate"] = round(time.perf_counter() - imported, 3)
results = {}
for name, (example, options) in given["examples"].items():
    metric = timed(f"evaluate.load {name}", evaluate.load, f"qabench/{name}")
    results[name] = timed(f"compute {name}", metric.compute, **example, **options)
timed("evaluate.load fanout_acc, again", evaluate.load, "qabench/fanout_acc")
both = timed("evaluate.combine", evaluate.combine, ["qabench/fanout_acc", "qabench/fanout_rouge"])
results["both"] = both.compute(predictions=["Paris"], references=["Paris"])
print(json.dumps({"results": results, "times": times}))
"""


def _example(name: str) -> dict[str, list[Any]]:
    """The initial input of a metric's page, without calls to a judge."""
    example = json.loads((METRICS / name / "example.json").read_text(encoding="utf-8"))
    if name == "fanout_judge":
        example["predictions"] = [None] * len(example["references"])
    return {"predictions": example["predictions"], "references": example["references"]}


def test_metrics(hub: Hub, home: Path, monkeypatch: pytest.MonkeyPatch, compared: Callable[[str], None]) -> None:
    """All metrics by their published names give the result of qabench.load_metric on their examples."""
    stand_ins.no_weights(monkeypatch)
    examples = {name: (_example(name), OPTIONS.get(name, {})) for name in metrics.metric_names()}
    stock = python(NO_WEIGHTS + EVALUATE, hub, home, {"examples": examples})["results"]
    assert stock.pop("both")["loose"] == 1
    ours = {
        name: qabench.load_metric(name).compute(**example, **options) for name, (example, options) in examples.items()
    }
    assert stock == json.loads(json.dumps(ours))
    asked = {line.split()[1].split("/info?")[0] for line in hub.outside}  # counters of downloads, and the viewer
    prompt = "raw.githubusercontent.com:443"  # the authors' file with the judge's prompt
    assert asked <= {"s3.amazonaws.com:443", prompt, hub.url.replace("://", "://datasets-server.")}
    compared(f"{len(ours)} metrics by published name: stock evaluate and qabench.load_metric")


WHICH = """
import contextlib, io, os, pathlib
if given["register"]:
    from qabench.cli import main
    sys.argv[1:] = ["register", "fanoutqa", "--config", "sample"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()
from datasets import load_dataset
import evaluate
ds = timed("load_dataset", load_dataset, "qabench/fanoutqa", "sample", split="validation")
metric = timed("evaluate.load", evaluate.load, "qabench/fanout_acc")
places = {"dataset": ds.cache_files[0]["filename"], "metric": sys.modules[type(metric).__module__].__file__}
marked = {name: (pathlib.Path(place).parent / "qabench-registered.json").exists() for name, place in places.items()}
score = metric.compute(predictions=["Paris"] * len(ds), references=ds["answer"], lemmatizer="simplemma")
print(json.dumps({"registered": [name for name in marked if marked[name]], "rows": list(ds), "score": score,
                  "times": times}))
"""


def test_registered_and_published_names(hub: Hub, home: Path) -> None:
    """The stock functions return the Hub's version if it responds, else the one cached last.

    Both have the same rows and scores. evaluate ignores HF_HUB_OFFLINE; it uses HF_EVALUATE_OFFLINE
    own.
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


FAULTY = """
from datasets import load_dataset
import evaluate
seen = {}
def tried(what, function, *args):
    for attempt in ("first", "second"):
        try:
            seen[what, attempt] = timed(f"{what}, {attempt}", function, *args)
            return attempt
        except Exception as error:
            seen[what, attempt] = f"{type(error).__name__}: {error}"
results = {name: tried(name, load_dataset, f"qabench/{name}", "sample") for name in given}
rows = {name: {split: list(part) for split, part in seen[name, results[name]].items()} for name in given}
results["fanout_acc"] = tried("fanout_acc", evaluate.load, "qabench/fanout_acc")
results["fanout_rouge"] = tried("fanout_rouge", evaluate.load, "qabench/fanout_rouge")
errors = {what: text for (what, attempt), text in seen.items() if isinstance(text, str)}
print(json.dumps({"results": results, "rows": rows, "errors": errors, "times": times}))
"""


def test_faults_of_downloads(hub: Hub, home: Path) -> None:
    """Short faults are retried or resumed; if the stock call gives up, the next call returns the correct rows."""
    contents = {name: hub.repo("dataset", f"qabench/{name}").tip.tree for name in benchmark_names()}
    digests = {
        name: next(blob.sha256 for path, blob in tree.items() if blob.sha256 and path.startswith("sample/"))
        for name, tree in contents.items()
    }
    add = hub.faults.add
    add(f"GET /cdn/{digests['fanoutqa']}", drop_response_after=1000)
    add("GET /api/resolve-cache/datasets/qabench/felm/.*README", status=429, headers={"Retry-After": "0"})
    add("GET /api/datasets/qabench/expertqa/tree/", status=500)
    add("HEAD /datasets/qabench/expertqa/resolve/main/", status=500)
    add(f"GET /cdn/{digests['fastbook']}", shorten_to=1000)
    add("HEAD /spaces/qabench/fanout_acc/resolve/main", status=429, headers={"Retry-After": "0"})
    add("GET /api/resolve-cache/spaces/qabench/fanout_rouge/", drop_response_after=1000)
    try:
        stock = python(FAULTY, hub, home, benchmark_names())
    finally:
        hub.faults.clear()
    expected = {"fanoutqa": "first", "felm": "first", "expertqa": "first", "fastbook": "second"}
    assert stock["results"] == {**expected, "fanout_acc": "second", "fanout_rouge": "second"}
    assert "Consistency check failed" in stock["errors"]["fastbook"]
    for name in benchmark_names():
        ours = qabench.load_dataset(name, "sample")
        assert stock["rows"][name] == {split: list(part) for split, part in ours.items()}


VERSIONS = """
from datasets import load_dataset
import evaluate
def prompts(**options):
    return load_dataset("qabench/felm", "sample", split="test", **options)["prompt"][:]
def description(**options):
    return evaluate.load("qabench/fanout_rouge", **options).description.strip()
revisions = {"tag": "v0.0.1", "commit": given["commit"], "main": "main", "none": None}
result = {"dataset": {name: prompts(revision=revision) for name, revision in revisions.items()},
          "number": description(revision="0.0.1"), "none": description()}
print(json.dumps(result))
"""


def test_versions(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tag does not change. Without a revision, evaluate prefers the tag with the name of its own version."""
    import pyarrow.parquet as pq

    folders = {"felm": tmp_path / "felm", "fanout_rouge": tmp_path / "fanout_rouge"}
    build(tmp_path, ["felm"], ["sample"])
    shutil.copytree(METRICS / "fanout_rouge", folders["fanout_rouge"])
    module = folders["fanout_rouge"] / "fanout_rouge.py"
    text = module.read_text(encoding="utf-8")
    with Hub() as hub:
        hub.used_here(monkeypatch)
        for version, tag in (("first", "v0.0.1"), ("second", f"v{evaluate.__version__}"), ("third", None)):
            (parquet,) = folders["felm"].rglob("*.parquet")
            table = pq.read_table(parquet)
            column = table.column_names.index("prompt")
            pq.write_table(table.set_column(column, "prompt", [[version] * len(table)]), parquet)
            module.write_text(text.replace('_DESCRIPTION = """', f'_DESCRIPTION = """{version}\n'), encoding="utf-8")
            for name, kind in (("felm", "dataset"), ("fanout_rouge", "space")):
                upload(hub, folders[name], kind, name)
                if tag:
                    HfApi(endpoint=hub.url, token=TOKEN).create_tag(f"qabench/{name}", tag=tag, repo_type=kind)
        given = {"commit": hub.repo("dataset", "qabench/felm").refs["refs/tags/v0.0.1"]}
        stock = python(VERSIONS, hub, home, given)
    found = {name: set(prompts) for name, prompts in stock["dataset"].items()}
    assert found == {"tag": {"first"}, "commit": {"first"}, "main": {"third"}, "none": {"third"}}
    assert stock["number"].splitlines()[0] == "first"
    assert stock["none"].splitlines()[0] == "second"
