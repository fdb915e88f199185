"""Scores of any task of the installed lm-evaluation-harness equal what the harness wrote in its
results.
"""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval.api.model", reason="needs the extra lm-eval")

from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager
from lm_eval_runs import Scripted

from qabench.runs.sources import read_evaluations

ONE_FILTER = ""
TWO_FILTERS = """
filter_list:
- name: first
  filter:
  - function: regex
    regex_pattern: "(\\\\d+)"
  - function: take_first
- name: last
  filter:
  - function: regex
    regex_pattern: "(\\\\d+)"
    group_select: -1
  - function: take_first
"""


@pytest.mark.parametrize("limit", [None, 5])
@pytest.mark.parametrize("filters", [ONE_FILTER, TWO_FILTERS])
@pytest.mark.parametrize("metrics", [["exact_match"], ["exact_match", "bleu"]])
def test_scores_equal_the_results(tmp_path: Path, metrics: list[str], filters: str, limit: int | None) -> None:
    rows = [{"question": f"What is {number} + 1?", "answer": str(number + 1)} for number in range(12)]
    data = tmp_path / "rows.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "sums.yaml").write_text(
        f"""
task: sums
dataset_path: json
dataset_kwargs:
  data_files: {{test: "{data}"}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["<end>"], do_sample: false}}
metric_list:
{"".join(f"- metric: {metric}{chr(10)}" for metric in metrics)}{filters}
"""
    )

    def reply(doc: dict[str, Any]) -> str:
        number = int(doc["answer"])
        return f"{number} or {number + number % 3}" if filters else str(number + number % 3)

    tracker = EvaluationTracker(output_path=str(tmp_path / "out"))
    results = simple_evaluate(
        model=Scripted(reply),
        tasks=["sums"],
        task_manager=TaskManager(include_path=str(tmp_path), include_defaults=False),
        log_samples=True,
        limit=limit,
    )
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    tracker.save_results_samples(task_name="sums", samples=samples["sums"])

    read = read_evaluations(list((tmp_path / "out").rglob("samples_*.jsonl")))
    (evaluation,) = read.evaluations
    scores = {name: score.value for name, score in evaluation.scores().items()}
    several = bool(filters)
    for key, value in results["results"]["sums"].items():
        metric, _, filter_name = key.partition(",")
        name = key if several else metric
        if metric == "exact_match" and filter_name:
            assert scores[name] == pytest.approx(value), name
    said = [*read.notes, *evaluation.notes]
    assert not any("exact_match" in note for note in said), said
    # BLEU is computed over the whole corpus, so samples have no value that could be averaged.
    assert ("bleu" in str(said)) == ("bleu" in metrics)
