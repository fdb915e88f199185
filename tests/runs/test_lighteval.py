"""lighteval: its details are scored as files, and its tasks have the scores of ``qabench score``."""

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from openai_server import OpenAIServer

from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.loading import load_dataset
from qabench.runs.sources import evaluate_predictions

LIGHTEVAL = os.environ.get("LIGHTEVAL")  # the program, in an environment of its own
TASKS = {"felm": "qabench_felm_sample_cot", "fanoutqa": "qabench_fanoutqa_closed_book_sample"}
DATE = "2026-01-01T00-00-00"


def details(folder: Path, general: dict[str, Any] | None, **doc: Any) -> Path:
    ids = load_dataset("fanoutqa", "sample", split="validation[:3]")["id"]
    reply = {"text": ["<think>7</think> 1998"], "text_post_processed": ["1998"]}
    docs = [{"id": str(i), "query": "?", "specific": {"id": id}, **doc} for i, id in enumerate(ids)]
    rows = [{"doc": one, "metric": {"acc.loose": 0.0}, "model_response": reply} for one in docs]
    path = folder / "details" / "org" / "m" / DATE / f"details_task|0_{DATE}.parquet"
    path.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    if general is not None:
        results = folder / "results" / "org" / "m" / f"results_{DATE}.json"
        results.parent.mkdir(parents=True)
        results.write_text(json.dumps({"config_general": general}))
    return path


def deviations(evaluation: Evaluation) -> str:
    return "; ".join(evaluation.deviations(evaluation.scores()["acc.loose"]))


def test_details_are_scored_as_files(tmp_path: Path) -> None:
    model = {"generation_parameters": {"temperature": 0.7}, "system_prompt": "Be brief."}
    path = details(tmp_path, {"max_samples": 3, "model_config": model}, instruction="Hi.", fewshot_samples=[{"id": ""}])
    evaluation = evaluate_predictions("fanoutqa", "sample", path, lemmatizer="simplemma")
    assert [record.answer for record in evaluation.records].count("1998") == 3
    sentences = deviations(evaluation)
    facts = ["limit: 3", "few shot: 1", "system instruction: Be brief.", "temperature: 0.7"]
    for fact in (*facts, "system message: in the user message"):
        assert f"lighteval ran with {fact}" in sentences


def test_details_without_results_and_other_tables(tmp_path: Path) -> None:
    path = details(tmp_path, None)
    evaluation = evaluate_predictions("fanoutqa", "sample", path, lemmatizer="simplemma")
    assert "lighteval ran with harness options: not recorded" in deviations(evaluation)
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table.set_column(0, "doc", pyarrow.array([{"id": "0"}] * 3)), path)
    with pytest.raises(InputError, match="has no details of a task of qabench"):
        evaluate_predictions("fanoutqa", "sample", path)


@pytest.mark.slow
@pytest.mark.skipif(not LIGHTEVAL, reason="LIGHTEVAL does not name the program lighteval")
def test_scores_of_a_run_are_those_of_its_details(tmp_path: Path) -> None:
    program = Path(str(LIGHTEVAL))
    environment = os.environ | {
        "HF_HOME": str(tmp_path / "hf"), "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "none",
    }  # fmt: skip
    # lighteval downloads this table for another task, whenever it is missing.
    folder = next(program.parents[1].glob("lib/python3*/site-packages/lighteval/tasks/tasks"))
    (folder / "tinyBenchmarks.pkl").touch()

    def run(*command: object) -> str:
        texts = list(map(str, command))
        done = subprocess.run(texts, env=environment, cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    qabench = program.with_name("qabench")
    for name in TASKS:
        run(qabench, "register", name, "--config", "sample")
    with OpenAIServer() as server:
        server.reply = lambda body: "Thought: the second, of 1998, is wrong.\nAnswer: 2"
        model = f"model_name=openai/m,base_url={server.base_url},generation_parameters={{temperature:0.0}}"
        options = ["--custom-tasks", run(qabench, "path", "lighteval"), "--output-dir", tmp_path / "out"]
        run(program, "endpoint", "litellm", model, ",".join(TASKS.values()), *options, "--save-details")
    (results,) = (json.loads(path.read_text()) for path in tmp_path.rglob("results_*.json"))
    for name, task in TASKS.items():
        (path,) = tmp_path.rglob(f"details_{task}*.parquet")
        evaluation = evaluate_predictions(name, "sample", path)
        shown = results["results"][f"{task}|0"]
        assert shown.pop("unanswered") == 0 and evaluation.counts()["answered"] == len(evaluation.records)
        scores = {metric.name: evaluation.scores().get(metric.name) for metric in evaluation.score_specs}
        for metric, value in shown.items():
            if metric != "unparsed" and not math.isnan(value):
                assert scores[metric].value == pytest.approx(value, rel=1e-12), metric
        assert any(not math.isnan(value) and value for value in shown.values())
        sentences = "; ".join(evaluation.deviations(next(iter(evaluation.scores().values()))))
        assert ("system message: in the user message" in sentences) == (name == "felm")
        assert not any(fact in sentences for fact in ("limit", "temperature", "few shot", "not recorded"))
