"""Comparisons of evaluations: any metric, epochs, missing questions, resumed runs."""

from __future__ import annotations

from dataclasses import replace
from math import nan

import numpy as np
import pytest

from qabench.benchmarks import benchmark, benchmark_names
from qabench.errors import InputError
from qabench.evaluation import Evaluation, Metric, Record
from qabench.evaluation.comparison import compare
from qabench.evaluation.evaluation import without_superseded
from qabench.stats import adjust, paired_randomization

MEAN = Metric("x", "X", "", "x")
F1 = Metric(
    "f1", "F1", "", "x", columns=("tp", "fp", "fn"), function=lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn),
    item=lambda tp, fp, fn: tp - fp - fn,
)  # fmt: skip


def evaluation(rows: list[dict[str, float]], **more: object) -> Evaluation:
    records = [Record(str(i), 1, "q", "", [], "a", "answered", scores=row) for i, row in enumerate(rows)]
    about = ("log", "task", "fanoutqa", "sample", "raw", "m", "2026-01-01", "success", len(records))
    return replace(Evaluation(*about, records), **more)  # type: ignore[arg-type]


def of_values(values: list[float]) -> Evaluation:
    return evaluation([{"x": value} for value in values])


def test_every_pair_is_tested_and_corrected() -> None:
    rng = np.random.default_rng(0)
    values = {name: [float(v) for v in rng.random(40) + shift] for name, shift in (("a", 0.0), ("b", 0.4), ("c", 0.1))}
    comparison = compare({name: of_values(scores) for name, scores in values.items()}, MEAN)
    assert list(comparison.systems) == ["b", "c", "a"]
    assert [(pair.first, pair.second) for pair in comparison.pairs] == [("b", "c"), ("b", "a"), ("c", "a")]
    p = [paired_randomization(values[pair.first], values[pair.second]).p_value for pair in comparison.pairs]
    assert [pair.difference.p_value for pair in comparison.pairs] == p
    assert [pair.corrected_p for pair in comparison.pairs] == adjust(p, "holm")
    assert "corrected over all pairs (Holm)" in comparison.about()


def test_functions_of_sums_are_compared_by_their_sums() -> None:
    rng = np.random.default_rng(1)
    tables = {name: rng.integers(0, 4, (30, 3)).astype(float) for name in "ab"}
    systems = {
        name: evaluation([dict(zip(("tp", "fp", "fn"), row, strict=True)) for row in of.tolist()])
        for name, of in tables.items()
    }
    (pair,) = compare(systems, F1).pairs
    wanted = paired_randomization(tables[pair.first], tables[pair.second], function=F1.function)
    assert pair.difference.interval.mean == pytest.approx(wanted.interval.mean)
    assert pair.difference.p_value == wanted.p_value and pair.n == 30


def test_metrics_of_all_benchmarks_are_compared() -> None:
    for name in benchmark_names():
        for metric in benchmark(name).metrics:
            rows = [dict.fromkeys(metric.needs, value) for value in (1.0, 0.0, 1.0)]  # the second has no units
            pairs = compare({"a": evaluation(rows), "b": evaluation(rows)}, metric, resamples=20).pairs
            assert all(pair.ties == pair.n == 3 for pair in pairs), metric
            assert pairs or name != "expertqa" or metric.family == "factscore"  # some are undefined for equal numbers


def test_each_pair_uses_its_common_questions() -> None:
    systems = {"a": of_values([1, 0, 1, 1]), "b": of_values([0, 0, 1]), "c": of_values([nan, 1, 0, 0])}
    sizes = {frozenset(pair.first + pair.second): pair.n for pair in compare(systems, MEAN).pairs}
    assert sizes == {frozenset("ab"): 3, frozenset("ac"): 3, frozenset("bc"): 2}


def test_epochs_count_as_one_question_and_lower_may_be_better() -> None:
    rows = [Record(str(i // 2), i % 2 + 1, "q", "", [], "a", "answered", scores={"x": i % 2}) for i in range(8)]
    epochs = replace(of_values([]), records=rows)
    systems = {"a": epochs, "b": of_values([0.25] * 4)}
    (pair,) = compare(systems, MEAN).pairs
    assert (pair.first, pair.n, pair.wins, pair.difference.interval.mean) == ("a", 4, 4, 0.25)
    (pair,) = compare(systems, replace(MEAN, higher_is_better=False)).pairs
    assert (pair.first, pair.wins, pair.difference.interval.mean) == ("b", 4, -0.25)


def test_a_resumed_run_replaces_the_original() -> None:
    killed = evaluation([{"x": 1.0}], origin="o", created="2026-01-01", path="killed")
    resumed = evaluation([{"x": 1.0}, {"x": 0.0}], origin="o", created="2026-01-02", path="resumed")
    other = evaluation([{"x": 1.0}], path="other")
    kept, superseded = without_superseded([killed, other, resumed])
    assert [one.path for one in kept] == ["other", "resumed"]
    assert [one.path for one in superseded] == ["killed"]


def test_bad_arguments() -> None:
    systems = {"a": of_values([1.0]), "b": of_values([0.0])}
    with pytest.raises(InputError, match="unknown test 't'; allowed: randomization, bootstrap"):
        compare(systems, MEAN, test="t")
    with pytest.raises(InputError, match="unknown correction"):
        compare(systems, MEAN, correction="x")
    with pytest.raises(InputError, match="on one config; these are on fanoutqa dev, fanoutqa sample"):
        compare(systems | {"b": replace(systems["b"], config="dev")}, MEAN)
