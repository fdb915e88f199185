"""Every field of fastbook's signatures is declared: a change is a deviation, or the field is irrelevant."""

from __future__ import annotations

from pathlib import Path

import pytest

import qabench
from qabench.benchmarks.fastbook import BENCHMARK
from qabench.benchmarks.fastbook.evaluate import read
from qabench.benchmarks.fastbook.official import DECLARATIONS
from qabench.benchmarks.fastbook.retrieval import parse_method
from qabench.benchmarks.fastbook.study import load_study, run
from qabench.evaluation.signature import IRRELEVANT, deviations, parse


@pytest.fixture(scope="module")
def signatures(mirror: Path) -> list[str]:
    """The signatures of a file of predictions, of retrieval and of the metrics, on the real questions."""
    study = load_study()
    nothing: list[list[str]] = [[] for _ in study.questions]
    rows = [{"id": row["id"], "passages": [], "answer": "x"} for row in study.questions]
    scored = BENCHMARK.evaluate(None, read(rows), families=["retrieval", "rouge"])
    metrics = [
        qabench.load_metric(name).compute(predictions=nothing, references=study.references)
        for name in ("answer_component_mrr", "answer_component_recall")
    ]
    assert [one["deviations"] for one in metrics] == [[], []]
    study_line = run(study, parse_method("bm25")).signature
    return [*scored.signatures.values(), study_line, *(one["signature"] for one in metrics)]


def test_official_signatures_have_no_deviations(signatures: list[str]) -> None:
    assert [deviations(line, DECLARATIONS[parse(line)[0]]) for line in signatures] == [[]] * 5


def test_each_changed_field_deviates_or_is_irrelevant(signatures: list[str]) -> None:
    for line in signatures:
        name, fields = parse(line)
        declaration = DECLARATIONS[name]
        for field, value in fields.items():
            if field == "qabench":
                continue
            changed = line.replace(f"|{field}:{value}", f"|{field}:other")
            removed = line.replace(f"|{field}:{value}", "")
            said = deviations(changed, declaration), deviations(removed, declaration)
            assert [len(one) for one in said] == ([0, 0] if declaration[field] is IRRELEVANT else [1, 1]), field
