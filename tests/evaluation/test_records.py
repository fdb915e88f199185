"""Scores of records with intervals, n and records left out; comparisons by any metric, with epochs
and gaps.
"""

from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_results import metric_result

from qabench.benchmarks import benchmark, benchmark_names
from qabench.benchmarks.felm.scores import response_score
from qabench.errors import InputError
from qabench.evaluation import Evaluation, Record, ScoreSpec
from qabench.evaluation.comparison import compare
from qabench.evaluation.records import item_score, scores_of
from qabench.evaluation.resumed import without_superseded
from qabench.stats import adjust, mean_interval, paired_test, score_interval

COUNTS = ("error_tn", "error_tp", "error_fn", "error_fp")
FELM = benchmark("felm").scores


def record(id: str = "1", epoch: int = 1, **scores: float) -> Record:
    return Record(id, epoch, "q", "", [], "a", "answered", scores=scores)


def of(*records: Record, **more: Any) -> Evaluation:
    about = ("log", "task", "fanoutqa", "sample", "raw", "m", "2026-01-01", "success", len(records))
    return replace(Evaluation(*about, records, score_specs=benchmark("fanoutqa").scores), **more)


def mean_spec(name: str) -> ScoreSpec:
    return ScoreSpec(name, name, "", "x")


SHARE = ScoreSpec(
    "share", "Share", "", "x", unit="claims", columns=("part", "whole"), function=lambda part, whole: part / whole,
    size=lambda part, whole: whole, item=lambda part, whole: part / whole if whole else nan,
)  # fmt: skip
responses = st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=4), min_size=1, max_size=8)


@settings(max_examples=20, deadline=None)
@given(responses)
def test_f1_is_computed_from_sums(pairs: list[list[tuple[bool, bool]]]) -> None:
    labels, verdicts = ([[pair[i] for pair in response] for response in pairs] for i in (0, 1))
    responses = list(map(response_score, labels, verdicts))
    records = [
        record(str(i), **{name: response.columns()[name] for name in COUNTS}) for i, response in enumerate(responses)
    ]
    scores = scores_of(FELM, records)
    expected = metric_result("felm_factuality", labels, verdicts)
    for name in ("f1", "precision", "recall", "balanced_accuracy"):
        assert (scores[name].interval.mean if name in scores else None) == expected[name]
    for score in scores.values():
        if score.interval.low is not None and score.interval.high is not None:
            assert 0 <= score.interval.low <= score.interval.high <= 1
        assert score.n == sum(map(len, labels)) and score.left_out == 0
    # The columns are what their names say: F1 of them is the reported one.
    _, tp, fn, fp = (sum(record.scores[name] for record in records) for name in COUNTS)
    if "f1" in scores:
        assert scores["f1"].value == pytest.approx(2 * tp / (2 * tp + fp + fn))


def test_without_a_flag_f1_is_0_and_precision_undefined() -> None:
    """One of 847 responses has a flagged segment."""
    rows = [(3, 0, 1, 0)] * 846 + [(3, 1, 0, 0)]
    records = [record(str(i), **dict(zip(COUNTS, row, strict=True))) for i, row in enumerate(rows)]
    scores = scores_of(FELM, records)
    wanted = score_interval(rows, lambda tp, tn, fp, fn: 2 * tn / (2 * tn + fn + fp))
    assert scores["f1"].interval == replace(wanted, mean=scores["f1"].interval.mean)
    assert scores["f1"].interval.undefined == 0
    assert scores["precision"].interval.undefined == pytest.approx(1 / 847)


def test_comparisons_and_intervals_agree_on_what_is_undefined() -> None:
    flagged = [record(str(i), error_tn=1, error_tp=i % 2, error_fn=i % 2, error_fp=0) for i in range(4)]
    silent = [record(str(i), error_tn=1, error_tp=0, error_fn=2 * (i % 2), error_fp=float(i == 3)) for i in range(4)]
    spec = benchmark("felm").score_spec("precision")
    compared = compare({"flagged": of(*flagged), "silent": of(*silent)}, spec)
    (pair,) = compared.pairs
    alone = max(score.interval.undefined for score in compared.systems.values())
    assert pair.difference.interval.undefined >= alone > 0


def test_undefined_scores_are_left_out() -> None:
    found = scores_of(FELM, [record(error_tn=2, error_tp=0, error_fn=0, error_fp=0)])
    assert not {"f1", "recall", "precision"} & found.keys()
    assert scores_of([mean_spec("a")], [record()]) == {} == scores_of([mean_spec("a")], [])


def test_ratios_count_their_units_and_what_is_left_out() -> None:
    rows = [record("1", part=2, whole=4), record("2", part=1, whole=1), record("3", part=nan, whole=0), record("4")]
    score = scores_of([SHARE], rows)["share"]
    assert (score.interval.mean, score.n, score.left_out, score.size) == (3 / 5, 5, 2, "5 claims")
    assert scores_of([SHARE], rows[1:])["share"].size == "1 claim"
    assert [item_score(SHARE, row) for row in rows] == [0.5, 1.0, None, None]


def test_means_are_over_the_records_that_have_the_column() -> None:
    records = [record("1", 1, a=0.1), record("1", 2, a=0.2, b=nan), record("2", 1, a=0.7, b=0.3)]
    found = scores_of([mean_spec("a"), mean_spec("b")], records)
    assert found["b"].interval == mean_interval([0.3]) and found["b"].left_out == 2
    assert found["a"].interval == mean_interval([(0.1 + 0.2) / 2, 0.7]) and found["a"].n == 2


def test_the_official_mean_to_the_last_digit() -> None:
    values = [0.1] * 10 + [0.7]
    spec = ScoreSpec("a", "A", "", "x", mean=lambda of: float(np.float32(sum(of) / len(of))))
    records = [record(str(i), a=value) for i, value in enumerate(values)]
    assert scores_of([spec], records)["a"].interval.mean == spec.mean(values)  # type: ignore[misc]


def test_nothing_answered_has_no_score() -> None:
    failed = Record("1", 1, "q", "", [], None, "failed", scores={"acc.loose": 0.0})
    found = of(failed).as_dict()
    assert of(failed).scores() == {} == found["scores"]
    assert found["unscored"] == "none of the 1 questions was answered"
    assert of(failed, unscored="the answers are secret").as_dict()["unscored"] == "the answers are secret"


def test_groups_are_ordered_by_name_and_number() -> None:
    groups = ["chapter 10"], ["b", "Chapter 2"], ["b"]
    records = [replace(record(str(i), **{"acc.loose": i}), groups={"domain": names}) for i, names in enumerate(groups)]
    grouped = of(*records)
    assert grouped.groupings() == ["domain"] and list(grouped.by_group("domain")) == ["b", "Chapter 2", "chapter 10"]
    numbers = grouped.as_dict(by=["domain"])["by"]["domain"]["b"]
    assert (numbers["records"], numbers["scores"], numbers["n"]) == (2, {"acc.loose": 1.5}, {"acc.loose": 2})


def test_scores_that_a_caller_removes_are_still_there() -> None:
    row = replace(record("1", **{"acc.loose": 0.5}), groups={"domain": ["a"]})
    evaluation = of(row)
    evaluation.scores().pop("acc.loose")
    by_group = evaluation.scores_by_group("domain")
    by_group["a"].clear()
    by_group.clear()
    assert evaluation["acc.loose"].value == 0.5
    assert evaluation.scores_by_group("domain")["a"]["acc.loose"].value == 0.5


def test_equal_problems_are_one_sentence() -> None:
    records = [Record(str(i), 1, "q", "", [], None, "failed", problem="refused: http://x") for i in range(7)]
    evaluation = of(*records, problems=("unreadable lines: 1",))
    sentences = ["unreadable lines: 1", "7 x failed: refused: http://x (0, 1, 2, 3, 4 and 2 more)"]
    assert evaluation.as_dict()["problems"] == sentences
    rest = "more problems: 1, which `qabench score --json` lists"
    assert evaluation.problem_sentences(1) == [sentences[0], rest]


def test_only_a_list_of_unusable_predictions_replaces_them() -> None:
    record = Record("1", 1, "q", "", [], None, "answered", problem="unusable: 99 verdicts")
    listed = "unusable predictions: 1 (1 (line 1): 99 verdicts)"
    assert list(of(record, problems=(listed,)).problem_sentences()) == [listed]
    other = "the index is unusable, so that passages were not compared"
    assert "1 x unusable: 99 verdicts (1)" in of(record, problems=(other,)).problem_sentences()


# Comparisons

MEAN = mean_spec("x")
F1 = ScoreSpec(
    "f1", "F1", "", "x", columns=("tp", "fp", "fn"), function=lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn),
    item=lambda tp, fp, fn: tp - fp - fn,
)  # fmt: skip


def evaluation(rows: list[dict[str, float]], **more: object) -> Evaluation:
    return of(*(record(str(i), **row) for i, row in enumerate(rows)), **{"score_specs": ()} | more)


def of_values(values: list[float]) -> Evaluation:
    return evaluation([{"x": value} for value in values])


def test_every_pair_is_tested_and_corrected() -> None:
    rng = np.random.default_rng(0)
    values = {name: [float(v) for v in rng.random(40) + shift] for name, shift in (("a", 0.0), ("b", 0.4), ("c", 0.1))}
    comparison = compare({name: of_values(scores) for name, scores in values.items()}, MEAN)
    assert list(comparison.systems) == ["b", "c", "a"]
    assert [(pair.first, pair.second) for pair in comparison.pairs] == [("b", "c"), ("b", "a"), ("c", "a")]
    p = [paired_test(values[pair.first], values[pair.second]).p_value for pair in comparison.pairs]
    assert [pair.difference.p_value for pair in comparison.pairs] == p
    assert [pair.corrected_p for pair in comparison.pairs] == adjust(p, "holm")
    assert "corrected over all pairs (holm)" in comparison.about()


def test_functions_of_sums_are_compared_by_their_sums() -> None:
    rng = np.random.default_rng(1)
    tables = {name: rng.integers(0, 4, (30, 3)).astype(float) for name in "ab"}
    systems = {
        name: evaluation([dict(zip(("tp", "fp", "fn"), row, strict=True)) for row in of.tolist()])
        for name, of in tables.items()
    }
    (pair,) = compare(systems, F1).pairs
    expected = paired_test(tables[pair.first], tables[pair.second], function=F1.function)
    assert pair.difference.interval.mean == pytest.approx(expected.interval.mean)
    assert pair.difference.p_value == expected.p_value and pair.n == 30


def test_scores_of_all_benchmarks_are_compared() -> None:
    for name in benchmark_names():
        for spec in benchmark(name).scores:
            # the second has no units
            rows = [dict.fromkeys(spec.needs, value) for value in (1.0, 0.0, 1.0)]
            pairs = compare({"a": evaluation(rows), "b": evaluation(rows)}, spec, resamples=20).pairs
            assert all(pair.ties == pair.n == 3 for pair in pairs), spec
            # some are undefined for equal numbers
            assert pairs or name != "expertqa" or spec.group == "factscore"


def test_each_pair_uses_its_common_questions() -> None:
    systems = {"a": of_values([1, 0, 1, 1]), "b": of_values([0, 0, 1]), "c": of_values([nan, 1, 0, 0])}
    sizes = {frozenset(pair.first + pair.second): pair.n for pair in compare(systems, MEAN).pairs}
    assert sizes == {frozenset("ab"): 3, frozenset("ac"): 3, frozenset("bc"): 2}


def test_epochs_count_as_one_question_and_lower_may_be_better() -> None:
    epochs = of(*(record(str(i // 2), i % 2 + 1, x=i % 2) for i in range(8)))
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


def test_scores_of_groups_are_those_of_their_records_alone() -> None:
    reduced = replace(mean_spec("best"), columns=("a",), reducer=max)
    numbers = [(1, 2, 4), (2, 1, 1), (3, nan, 3), (1, 0, 5), (4, 3, 3), (2, 4, 4), (5, 1, 2)]
    records = []
    for position, (id, part, whole) in enumerate(numbers):
        row = record(str(id), position + 1, a=part / 4, part=part, whole=whole)
        groups = {"half": (f"{position % 2}",), "all": ("x",)}
        records.append(replace(row, groups=groups, cluster="c" if id in (1, 4) else None))
    records.append(replace(record("6"), groups={"half": ("without scores",)}))
    evaluation = of(*records, score_specs=[mean_spec("a"), SHARE, reduced])
    for grouping in ("half", "all"):
        for name, members in evaluation.by_group(grouping).items():
            alone = of(*members, score_specs=evaluation.score_specs).scores()
            assert evaluation.scores_by_group(grouping)[name] == alone
    assert evaluation.scores_by_group("half")["without scores"] == {}
    assert evaluation.scores_by_group("half")["0"]["best"].left_out == 1
