"""What a run of lm-evaluation-harness really did is in the signatures of its samples: a closed
world.
"""

import dataclasses
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval.api.model", reason="needs the extra lm-eval")

from lm_eval.api.task import TaskConfig
from lm_eval.loggers import EvaluationTracker
from lm_eval.loggers.evaluation_tracker import GeneralConfigTracker
from lm_eval.models.api_models import TemplateAPI
from lm_eval.result_schema import EvalResults
from lm_eval_runs import Scripted, run

from qabench.benchmarks.felm import BENCHMARK as FELM
from qabench.data.rows import SourceRow
from qabench.runs.lm_eval_facts import TABLES
from qabench.runs.lm_eval_predictions import predictions_in_samples
from qabench.runs.predictions import evaluate_predictions

pytestmark = pytest.mark.quick

TASK = "qabench_felm_math_raw"


def samples_of(folder: Path, **options: Any) -> Path:
    """Run the harness, and return its file of samples, which has the file of results next to it."""
    tracker = EvaluationTracker(output_path=str(folder))
    results = run(Scripted(lambda doc: "Answer: ALL_CORRECT"), TASK, log_samples=True, **options)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    tracker.save_results_samples(task_name=TASK, samples=samples[TASK])
    (path,) = folder.rglob("samples_*.jsonl")
    return path


def deviations(path: Path) -> set[str]:
    evaluation = evaluate_predictions("felm", "math", path)
    official = [score for score in evaluation.scores().values() if score.spec.official]
    return {sentence for score in official for sentence in evaluation.deviations(score)}


@pytest.fixture
def honest(mirror: Path, tmp_path: Path) -> Path:
    return samples_of(tmp_path)


def test_every_key_of_the_installed_harness_is_decided(honest: Path) -> None:
    (results,) = honest.parent.glob("results_*.json")
    document = json.loads(results.read_text())
    written = {
        "results": set(document) | set(EvalResults.__annotations__) | names_of(GeneralConfigTracker),
        "config": set(document["config"]),
        "configs": names_of(TaskConfig),
        "model_args": parameters(TemplateAPI.__init__) - {"truncate", "pretrained", "model", "max_images"},
    }
    for part, names in written.items():
        missing = names - TABLES[part][1].keys()
        assert not missing, f"decide in lm_eval_facts.json how these keys of {part} are signed"
    for _, table in TABLES.values():
        assert all(len(reason) > 10 for _, reason in table.values())


def names_of(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self", "kwargs"}


def test_an_honest_run_is_official(honest: Path) -> None:
    assert deviations(honest) == set()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gen_kwargs": {"temperature": 1.5, "do_sample": True}}, "temperature: 1.5"),
        ({"gen_kwargs": {"max_gen_toks": 9}}, "max tokens: 9 instead of 100"),
        ({"gen_kwargs": {"until": ["\n"]}}, 'until: ["\\n"]'),
        ({"limit": 3}, "limit: 3"),
        ({"system_instruction": "Be brief."}, "prompts are not the task's"),
        ({"metadata": {"felm_prompt": "qabench"}}, "prompt: qabench-"),
    ],
)
def test_options_of_the_harness_are_deviations(
    mirror: Path, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    sentences = deviations(samples_of(tmp_path, **options))
    assert any(said in sentence for sentence in sentences), sentences


def change_results(path: Path, change: Callable[[Any], object]) -> None:
    (results,) = path.parent.glob("results_*.json")
    document = json.loads(results.read_text())
    change(document)
    results.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda it: it["config"].update(model_args="pretrained=a/b,load_in_4bit=True"), "model arg load in 4bit"),
        (lambda it: it["config"].update(model_args={"pretrained": "a/b", "nobody_knows": "sk-1"}), "nobody knows"),
        (lambda it: it["config"].update(nobody_knows=True), "nobody knows"),
        (lambda it: it.update(nobody_knows=1), "nobody knows"),
        (lambda it: it.update(fewshot_as_multiturn=True), "fewshot as multiturn"),
        (lambda it: it.update({"n-shot": {TASK: 2}}), "n shot: 2"),
        (lambda it: it["configs"][TASK].update(doc_to_text="{{question}}"), "doc to text"),
        (lambda it: it["configs"][TASK].update(repeats=3), "repeats: 3"),
        (lambda it: it["configs"][TASK].update(nobody_knows="x"), "nobody knows"),
    ],
)
def test_keys_of_the_results_are_deviations(honest: Path, change: Callable[[Any], object], said: str) -> None:
    change_results(honest, change)
    sentences = deviations(honest)
    assert any(said in sentence for sentence in sentences), sentences
    assert "sk-1" not in str(sentences)


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it["config"].update(model_args="pretrained=a/b,revision=main,batch_size=4,load_in_4bit=False"),
        lambda it: it["config"].update(predict_only=True, use_cache="cache", batch_size="auto", device="cuda:0"),
        lambda it: it["config"].update(model_sha="1234", model_dtype="torch.bfloat16"),
    ],
)
def test_honest_variants_stay_official(honest: Path, change: Callable[[Any], object]) -> None:
    change_results(honest, change)
    assert deviations(honest) == set()


def change_rows(path: Path, change: Callable[[Any], object]) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_what_was_sent_is_compared_with_the_dataset(honest: Path) -> None:
    def rewrite(rows: list[Any]) -> None:
        call = rows[5]["arguments"]["gen_args_0"]
        rows[5]["doc"]["prompt"] = "What is 1 + 1?"
        call["arg_0"] = call["arg_0"].replace("Question", "What is 1 + 1?", 1) + " "
        rows[7]["arguments"]["gen_args_0"]["arg_1"]["temperature"] = 0.7

    change_rows(honest, rewrite)
    sentences = deviations(honest)
    assert "lm-evaluation-harness ran with asked text: 1 of 194 prompts are not the task's" in sentences
    assert "temperature: differs between the answers (193 0.0, 1 0.7)" in sentences


def test_what_is_not_recorded_is_said(honest: Path) -> None:
    (results,) = honest.parent.glob("results_*.json")
    results.unlink()
    change_rows(honest, lambda rows: [row.pop("arguments") for row in rows])
    sentences = deviations(honest)
    assert any("harness options: not recorded" in sentence for sentence in sentences)
    assert any("asked text: not recorded" in sentence for sentence in sentences)


def test_an_answer_that_is_too_long_is_a_bad_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("qabench.runs.lm_eval_predictions", "qabench.data.predictions"):
        monkeypatch.setattr(f"{module}.MAX_REPLY_CHARACTERS", 100)
    answers = ["ALL_CORRECT", "x" * 50, "x" * 200]
    samples = []
    for id, answer in enumerate(answers):
        samples.append(SourceRow.of({"doc": {"index": str(id)}, "filtered_resps": [answer]}, f"line {id}"))
    predictions = predictions_in_samples(FELM, Path("samples.jsonl"), samples)
    assert [row.fields["answer"] for row in predictions.rows] == answers[:2]
    (bad_line,) = predictions.bad_lines
    assert (bad_line.line, bad_line.reason.partition("(")[0]) == (3, "not JSON ")
