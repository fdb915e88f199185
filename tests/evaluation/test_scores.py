"""Scores of records: means and functions of sums, with intervals, n and records left out."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qabench.benchmarks import benchmark
from qabench.benchmarks.felm.scores import Confusion, felm_scores
from qabench.evaluation import Evaluation, Metric, Record
from qabench.evaluation.comparison import compare
from qabench.evaluation.evaluation import item_score, scores_of
from qabench.evaluation.tables import undefined_note
from qabench.stats import bootstrap, bootstrap_mean

COUNTS = ("tp", "tn", "fp", "fn")
FELM = benchmark("felm").metrics


def record(id: str = "1", epoch: int = 1, **scores: float) -> Record:
    return Record(id, epoch, "q", "", [], "a", "answered", scores=scores)


def of(*records: Record, **more: Any) -> Evaluation:
    about = ("log", "task", "fanoutqa", "sample", "raw", "m", "2026-01-01", "success", len(records))
    return Evaluation(*about, records, **{"metrics": benchmark("fanoutqa").metrics} | more)


def mean_metric(name: str) -> Metric:
    return Metric(name, name, "", "x")


SHARE = Metric(
    "share", "Share", "", "x", unit="claims", columns=("part", "whole"), function=lambda part, whole: part / whole,
    size=lambda part, whole: whole, item=lambda part, whole: part / whole if whole else nan,
)  # fmt: skip
responses = st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=4), min_size=1, max_size=8)


@settings(max_examples=20, deadline=None)
@given(responses)
def test_f1_is_computed_from_sums(pairs: list[list[tuple[bool, bool]]]) -> None:
    labels, verdicts = [[label for label, _ in one] for one in pairs], [[said for _, said in one] for one in pairs]
    counts = [Confusion.of(*both) for both in zip(verdicts, labels, strict=True)]
    records = [record(str(i), **{name: getattr(one, name) for name in COUNTS}) for i, one in enumerate(counts)]
    found = scores_of(FELM, records)
    wanted = felm_scores(labels, verdicts).as_dict()
    for name in ("f1", "precision", "recall", "balanced_accuracy"):
        assert (found[name].interval.mean if name in found else None) == wanted[name]
    for score in found.values():
        assert 0 <= score.interval.low <= score.interval.high <= 1
        assert score.n == sum(map(len, labels)) and score.left_out == 0


def test_a_resample_without_a_flag_has_an_f1_of_0() -> None:
    """One of 847 responses has a flagged segment: a third of the resamples have no flag."""
    rows = [(3, 0, 1, 0)] * 846 + [(3, 1, 0, 0)]
    records = [record(str(i), **dict(zip(COUNTS, row, strict=True))) for i, row in enumerate(rows)]
    scores = scores_of(FELM, records)
    wanted = bootstrap(rows, lambda tp, tn, fp, fn: 2 * tn / (2 * tn + fn + fp))
    assert scores["f1"].interval == replace(wanted, mean=scores["f1"].interval.mean)
    assert scores["f1"].interval.low == 0 == scores["f1"].interval.undefined
    assert 0.3 < scores["precision"].interval.undefined < 0.45
    note = undefined_note({name: score.interval for name, score in scores.items()})
    assert note and "precision 3" in note and "f1" not in note


def test_comparisons_and_intervals_agree_on_undefined_resamples() -> None:
    flagged = [record(str(i), tp=1, tn=i % 2, fp=i % 2, fn=0) for i in range(4)]
    silent = [record(str(i), tp=1, tn=0, fp=2 * (i % 2), fn=float(i == 3)) for i in range(4)]
    metric = benchmark("felm").metric("precision")
    compared = compare({"flagged": of(*flagged), "silent": of(*silent)}, metric)
    (pair,) = compared.pairs
    alone = max(score.interval.undefined for score in compared.systems.values())
    assert pair.difference.interval.undefined >= alone > 0
    assert any("undefined in some resamples" in note for table in compared.tables() for note in table.notes)


def test_undefined_scores_are_left_out() -> None:
    found = scores_of(FELM, [record(tp=2, tn=0, fp=0, fn=0)])
    assert not {"f1", "recall", "precision"} & found.keys()
    assert scores_of([mean_metric("a")], [record()]) == {} == scores_of([mean_metric("a")], [])


def test_ratios_count_their_units_and_what_is_left_out() -> None:
    rows = [record("1", part=2, whole=4), record("2", part=1, whole=1), record("3", part=nan, whole=0), record("4")]
    score = scores_of([SHARE], rows)["share"]
    assert (score.interval.mean, score.n, score.left_out, score.size) == (3 / 5, 5, 2, "5 claims")
    assert scores_of([SHARE], rows[1:])["share"].size == "1 claim"
    assert [item_score(SHARE, row) for row in rows] == [0.5, 1.0, None, None]


def test_means_are_over_the_records_that_have_the_column() -> None:
    records = [record("1", 1, a=0.1), record("1", 2, a=0.2, b=nan), record("2", 1, a=0.7, b=0.3)]
    found = scores_of([mean_metric("a"), mean_metric("b")], records)
    assert found["b"].interval == bootstrap_mean([0.3]) and found["b"].left_out == 2
    assert found["a"].interval == bootstrap_mean([0.1, 0.2, 0.7], clusters=["1", "1", "2"])


def test_the_official_mean_to_the_last_digit() -> None:
    values = [0.1] * 10 + [0.7]
    metric = Metric("a", "A", "", "x", mean=lambda of: float(np.float32(sum(of) / len(of))))
    records = [record(str(i), a=value) for i, value in enumerate(values)]
    assert scores_of([metric], records)["a"].interval.mean == metric.mean(values)  # type: ignore[misc]


def test_nothing_answered_has_no_score() -> None:
    failed = Record("1", 1, "q", "", [], None, "failed", scores={"acc.loose": 0.0})
    found = of(failed).as_dict()
    assert of(failed).scores() == {} == found["scores"]
    assert found["unscored"] == "none of the 1 questions was answered"
    assert of(failed, unscored="the answers are secret").as_dict()["unscored"] == "the answers are secret"


def test_groups_are_ordered_by_size() -> None:
    groups = [{"domain": ["a"]}, {"domain": ["b", "c"]}, {"domain": ["b"]}]
    records = [
        Record(str(i), 1, "q", "", [], "a", "answered", scores={"acc.loose": float(i)}, groups=one)
        for i, one in enumerate(groups)
    ]
    evaluation = of(*records)
    assert evaluation.groupings() == ["domain"]
    assert list(evaluation.by_group("domain")) == ["b", "a", "c"]
    found = evaluation.as_dict(by=["domain"])["by"]["domain"]["b"]
    assert (found["records"], found["scores"], found["n"]) == (2, {"acc.loose": 1.5}, {"acc.loose": 2})


def test_equal_problems_are_one_sentence() -> None:
    records = [Record(str(i), 1, "q", "", [], None, "failed", problem="refused: http://x") for i in range(7)]
    found = of(*records, problems=("unreadable lines: 1",)).as_dict()["problems"]
    assert found == ["unreadable lines: 1", "7 x failed: refused: http://x (0, 1, 2, 3, 4 and 2 more)"]


@pytest.mark.parametrize("name", ["acc.loose", "acc.strict"])
def test_an_evaluation_has_n_unit_and_deviations(name: str) -> None:
    evaluation = of(record(**{name: 0.5}), available=10)
    found = evaluation.as_dict()
    assert (found["n"], found["unit"], found["left_out"]) == ({name: 1}, {name: "questions"}, {name: 0})
    assert "1 of 10 questions were asked" in found["deviations"][name]
    assert not isnan(found["intervals"][name]["low"])
