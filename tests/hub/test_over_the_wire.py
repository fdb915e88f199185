"""The published names over real HTTP: stock datasets and evaluate, in separate processes with an
empty HF_HOME.

The test Hub rejects requests of these processes to other machines (download counters, the dataset
viewer).
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stand_ins
from hub_server import TOKEN, Hub
from huggingface_hub import HfApi
from only_the_sample import only_the_sample
from openai_server import OpenAIServer

import qabench
from qabench import metrics
from qabench.hub.build import build
from qabench.hub.publish import publish
from qabench.loading_scripts import benchmark_names, dataset_table

TAG = f"v{qabench.__version__}"
SAMPLES = [
    (name, config.name)
    for name in benchmark_names()
    for config in dataset_table(name).configs.values()
    if not config.files and not dataset_table(name).restriction
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
    info = load_dataset_builder(hub_name, config).info
    assert {split: info.splits[split].num_examples for split in info.splits} == {s: len(every[s]) for s in every}
    tagged = load_dataset(hub_name, config, revision=arguments["tag"])
    for split, part in every.items():
        first = load_dataset(hub_name, config, split=f"{split}[:2]")
        stream = load_dataset(hub_name, config, split=split, streaming=True)
        assert list(stream) == list(part) == list(tagged[split])
        assert list(first) == list(part)[:2]
print(json.dumps({"configs": configs, "splits": splits, "rows": rows, "columns": columns}))
"""
EVALUATE = """
import evaluate, qabench
results = []
for load in (lambda name: evaluate.load(f"qabench/{name}"), qabench.load_metric):
    items = arguments.items()
    results.append({name: load(name).compute(**example, **options) for name, (example, options) in items})
both = evaluate.combine(["qabench/fanout_acc", "qabench/fanout_rouge"])
assert both.compute(predictions=["Paris"], references=["Paris"])["loose"] == 1
print(json.dumps(results))
"""
# As `inspect eval hf/...`, with a model that always gives the same answer and accepts all answers
# as a grader.
INSPECT = """
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model

def reply(messages, tools, tool_choice, config):
    output = ModelOutput.from_content("mockllm/model", "In 1998")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output

model = get_model("mockllm/model", custom_outputs=reply)
(log,) = eval("hf/qabench/fanoutqa", model=model, log_dir="logs", display="none")
scores = [{name: score.value for name, score in sample.scores.items()} for sample in log.samples]
samples = [[sample.input, sample.target, sample.metadata] for sample in log.samples]
print(json.dumps({"status": log.status, "scores": scores, "samples": samples}))
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


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """Everything that may be published, sent by `qabench publish`; the checks before it have
    separate tests.
    """
    with Hub() as hub:
        with pytest.MonkeyPatch.context() as patch:
            hub.used_here(patch)
            only_the_sample(tmp_path_factory.mktemp("home"), patch)
            patch.setattr("qabench.hub.staging.check_dataset", lambda name, folder: None)
            patch.setattr("qabench.hub.staging.run_card", lambda card, folder: None)
            patch.setattr("qabench.hub.publish.own_wheel", lambda folder: None)
            assert publish("all", "qabench", accept_licenses=True, skip_missing=True, unreleased=True).ok
        yield hub


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_datasets(hub: Hub, home: Path, compared: Callable[[str], None]) -> None:
    """All calls of the stock library on all published configs return the rows of
    qabench.load_dataset.
    """
    ours = {f"{name} {config}": qabench.load_dataset(name, config) for name, config in SAMPLES}
    rows = {key: {split: list(part) for split, part in every.items()} for key, every in ours.items()}
    stock = python(DATASETS, hub, home, {"samples": SAMPLES, "tag": TAG})
    assert stock["rows"] == rows
    assert stock["configs"] == {name: [c for known, c in SAMPLES if known == name] for name in dict(SAMPLES)}
    assert stock["splits"] == {key: list(every) for key, every in ours.items()}
    for key, every in ours.items():
        features = next(iter(every.values())).features
        assert stock["columns"][key] == {column: repr(feature) for column, feature in features.items()}
    counts = [len(part) for every in rows.values() for part in every.values()]
    compared(f"{sum(counts)} rows of {len(rows)} published configs: stock datasets and qabench.load_dataset")


def _example(name: str) -> dict[str, list[Any]]:
    """The initial input of a metric's page, without calls to a judge."""
    example = json.loads((METRICS / name / "example.json").read_text(encoding="utf-8"))
    if name == "fanout_judge":
        example["predictions"] = [None] * len(example["references"])
    return {"predictions": example["predictions"], "references": example["references"]}


def test_metrics(hub: Hub, home: Path, compared: Callable[[str], None]) -> None:
    """All metrics by their published names give the result of qabench.load_metric on their
    examples.
    """
    examples = {name: (_example(name), OPTIONS.get(name, {})) for name in metrics.metric_names()}
    stock, ours = python(NO_WEIGHTS + EVALUATE, hub, home, examples)
    assert stock == ours and stock.keys() == examples.keys()
    # counters of downloads, and the viewer
    asked = {line.split()[1].split("/info?")[0] for line in hub.outside}
    prompt = "raw.githubusercontent.com:443"  # the authors' file with the judge's prompt
    assert asked <= {"s3.amazonaws.com:443", prompt, hub.url.replace("://", "://datasets-server.")}
    compared(f"{len(ours)} metrics by published name: stock evaluate and qabench.load_metric")


def test_inspect_runs_a_repository(mirror: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks in a dataset's ``eval.yaml`` for the Hub, read and run by Inspect AI."""
    build(tmp_path, ["fanoutqa"], ["dev", "sample"])
    with Hub() as hub, OpenAIServer() as judge:
        hub.used_here(monkeypatch)
        judge.reply = lambda body: "GRADE: C"
        repo = {"repo_id": "qabench/fanoutqa", "repo_type": "dataset"}
        HfApi(endpoint=hub.url, token=TOKEN).create_repo(**repo)
        HfApi(endpoint=hub.url, token=TOKEN).upload_folder(**repo, folder_path=tmp_path / "fanoutqa")
        environment = {"XDG_CACHE_HOME": str(home / "cache"), "XDG_DATA_HOME": str(home / "data")}
        environment |= {"OPENAI_BASE_URL": judge.base_url, "OPENAI_API_KEY": "none"}
        log = python(INSPECT, hub, home, **environment)
        # The file names the judge, so the evaluated model does not grade itself.
        assert {call.body["model"] for call in judge.calls} == {"gpt-4o-2024-11-20"}
    rows = qabench.load_dataset("fanoutqa", "dev", split="validation")
    assert (log["status"], log["scores"]) == ("success", [{"model_graded_qa": "C"}] * len(rows))
    samples = [[row["question"], row["answer"], {"id": row["id"], "categories": row["categories"]}] for row in rows]
    assert log["samples"] == samples
