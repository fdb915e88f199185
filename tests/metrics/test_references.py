"""Metrics tell the references of a whole config of the benchmark from others."""

from pathlib import Path
from typing import Any

import pytest

import qabench
from qabench.benchmarks.expertqa.agreement import FIELDS, scored_part
from qabench.benchmarks.expertqa.official import _references
from qabench.data.answers import loads
from qabench.evaluation.signature import digest


def about_references(name: str, references: Any, **options: Any) -> list[str]:
    """Return the deviations of a metric that are about references or questions."""
    result = qabench.load_metric(name).compute(predictions=["x"] * len(references), references=references, **options)
    return [sentence for sentence in result["deviations"] if sentence.startswith(("references", "questions"))]


@pytest.mark.parametrize("name", ["expertqa_autoais", "expertqa_autoais_agreement", "expertqa_factscore_agreement"])
def test_the_sample_of_expertqa_is_a_deviation(name: str) -> None:
    rows = list(qabench.load_dataset("expertqa", "sample", split="train"))
    deviations = qabench.load_metric(name).compute(predictions=rows, references=rows)["deviations"]
    assert deviations[0].startswith("references: not the references of all questions of main or all_evidences")
    assert "given, which is not verified" in deviations[1] and len(deviations) == 2


def test_whole_configs_are_known(mirror: Path) -> None:
    rows = qabench.load_dataset("fanoutqa", "dev", split="validation")
    answers = list(rows["answer"])
    assert about_references("fanout_rouge", rows["answer"]) == []
    assert about_references("fanout_rouge", answers, references_format="json") == []
    assert about_references("fanout_rouge", [loads(answer) for answer in answers], references_format="python") == []
    assert len(about_references("fanout_rouge", answers[:3], references_format="json")) == 1
    splits = qabench.load_dataset("expertqa", "lfqa_random")
    assert about_references("expertqa_lfqa", list(splits["test"]["answer"])) == []
    for references in (splits["test"]["answer"][:3], splits["validation"]["answer"]):
        (deviation,) = about_references("expertqa_lfqa", list(references))
        assert deviation.startswith("references: not the references of all questions of lfqa_random or lfqa_domain")


def test_annotated_files_are_digested(mirror: Path) -> None:
    field = _references(("random",), FIELDS)
    rows = list(qabench.load_dataset("expertqa", "random", split="test", streaming=True))
    assert field.accepts(digest(scored_part(rows, FIELDS)))
    assert not field.accepts(digest(scored_part(rows[1:], FIELDS)))
    assert "qabench fetch" not in field.sentence("references", "0")


def test_the_questions_of_the_judge_are_compared(mirror: Path) -> None:
    rows = qabench.load_dataset("fanoutqa", "dev", split="validation")
    options = {"questions": list(rows["question"])}
    judge = qabench.load_metric("fanout_judge")
    whole = judge.compute(predictions=[None] * len(rows), references=rows["answer"], **options)
    assert not [sentence for sentence in whole["deviations"] if sentence.startswith(("references", "questions"))]
    options["questions"][0] = "What?"
    changed = judge.compute(predictions=[None] * len(rows), references=rows["answer"], **options)
    assert "questions: not the questions of dev or dev_nov23" in changed["deviations"]
