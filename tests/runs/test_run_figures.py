"""Figures of runs: those of summed counts, with intervals also where resamples leave them undefined."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qabench.evaluation import Evaluation, Record
from qabench.runs.figures import by_group, figures, groupings
from qabench.scoring.felm import Confusion, felm_scores
from qabench.stats import bootstrap, bootstrap_mean

NAMES = ("f1", "precision", "recall", "balanced_accuracy")
COUNTS = ("tp", "tn", "fp", "fn")


def record(id: str = "1", epoch: int = 1, **scores: float) -> Record:
    return Record(id, epoch, "q", "", [], "a", "answered", scores=scores)


def run_of(benchmark: str, *records: Record) -> Evaluation:
    return Evaluation("log", "task", benchmark, "sample", "raw", "m", "2026-01-01", "success", len(records), records)


def judged(id: str, labels: list[bool], verdicts: list[bool] | None) -> Record:
    """A response of FELM; no verdicts: it is in none but the official figures."""
    segments = [
        {"text": "", "label": label, "verdict": None if verdicts is None else verdicts[i]}
        for i, label in enumerate(labels)
    ]
    official = Confusion.of([True] * len(labels) if verdicts is None else verdicts, labels)
    scores: dict[str, float] = {f"official_{name}": getattr(official, name) for name in COUNTS}
    if verdicts is not None:
        scores |= {name: getattr(official, name) for name in COUNTS}
    return Record(id, 1, "q", "", [], "a", "answered", scores=scores, detail={"segments": segments})


responses = st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=4), min_size=1, max_size=8)


@settings(max_examples=30, deadline=None)
@given(responses, st.integers(0, 8))
def test_felm_is_scored_as_the_metric_scores_it(pairs: list[list[tuple[bool, bool]]], unscored: int) -> None:
    labels = [[label for label, _ in one] for one in pairs]
    verdicts = [None if i == unscored else [said for _, said in one] for i, one in enumerate(pairs)]
    records = [judged(str(i), *both) for i, both in enumerate(zip(labels, verdicts, strict=True))]
    found = figures(run_of("felm", *records))
    scored = felm_scores(labels, verdicts, on_unparsed="exclude").as_dict()
    official = felm_scores(labels, verdicts).as_dict()
    for prefix, wanted in (("", scored), ("responses_", scored["responses"]), ("official_", official)):
        defined = {name: wanted[name] for name in NAMES if wanted[name] is not None}
        assert {name: found[prefix + name].mean for name in NAMES if prefix + name in found} == defined
    for interval in found.values():
        assert 0 <= interval.low <= interval.high <= 1 and np.isfinite(interval.standard_error)


def test_intervals_are_the_bootstrap_s_where_every_resample_is_defined() -> None:
    rows = [(3, 2, 1, 1), (2, 1, 1, 2), (4, 1, 2, 1)] * 5
    records = [record(str(i), **dict(zip(COUNTS, row, strict=True))) for i, row in enumerate(rows)]
    found = figures(run_of("felm", *records))
    wanted = bootstrap(rows, lambda tp, tn, fp, fn: (tp / (tp + fn) + tn / (tn + fp)) / 2)
    assert found["balanced_accuracy"] == wanted


def test_epochs_of_a_response_are_drawn_together() -> None:
    rows = [(3, 2, 1, 1), (2, 1, 1, 2), (4, 1, 2, 1)] * 4
    records = [record(str(i // 2), i % 2 + 1, **dict(zip(COUNTS, row, strict=True))) for i, row in enumerate(rows)]
    wanted = bootstrap(rows, lambda tp, tn, fp, fn: tn / (tn + fp), clusters=[one.id for one in records])
    assert figures(run_of("felm", *records))["recall"] == wanted


def test_a_single_error_among_many_responses_still_gives_intervals() -> None:
    records = [judged(str(i), [True, True], [True, True]) for i in range(9)]
    records.append(judged("9", [False, True], [False, True]))
    found = figures(run_of("felm", *records))
    assert (found["f1"].mean, found["f1"].low, found["f1"].high) == (1.0, 1.0, 1.0)


def test_what_is_undefined_is_left_out() -> None:
    found = figures(run_of("felm", judged("1", [True, True], [True, True])))
    assert found == {}
    assert set(figures(run_of("felm", judged("1", [True], [False])))) >= {"precision"}
    assert "recall" not in figures(run_of("felm", judged("1", [True], [False])))
    assert figures(run_of("felm")) == {} and figures(run_of("fanoutqa", record())) == {}


def test_shares_of_claims_are_ratios_of_sums_and_autoais_has_both_means() -> None:
    rows: list[dict[str, Any]] = [
        {"claims": 4, "claims_with_evidence": 2, "claims_counted": 2, "claims_supported": 1},
        {"claims": 1, "claims_with_evidence": 1, "claims_counted": 1, "claims_supported": 1},
        {"claims": 0, "claims_with_evidence": 0, "claims_counted": 0, "claims_supported": 0},
    ]
    shares = (0.5, 1.0, nan)
    records = [
        record(str(i), **row, abstains=i == 2, autoais_macro=share, rouge1=0.25 * i)
        for i, (row, share) in enumerate(zip(rows, shares, strict=True))
    ]
    failed = record("f", rouge1=0.0, **dict.fromkeys([*rows[0], "abstains", "autoais_macro"], nan))
    found = {name: one.mean for name, one in figures(run_of("expertqa", *records, failed)).items()}
    assert found == {
        "evidence": 3 / 5,
        "autoais_micro": 2 / 3,
        "autoais_macro": 0.75,
        "abstains": 1 / 3,
        "rouge1": pytest.approx(0.75 / 4, abs=0.03),  # a median of bootstrapped means
    }


@pytest.mark.parametrize("benchmark", ["fanoutqa", "fastbook"])
def test_other_figures_are_means_over_the_records_that_have_them(benchmark: str) -> None:
    records = [record("1", 1, a=0.1), record("1", 2, a=0.2, b=nan), record("2", 1, a=0.7, b=0.3)]
    found = figures(run_of(benchmark, *records))
    assert found["b"] == bootstrap_mean([0.3])
    wanted = bootstrap_mean([0.1, 0.2, 0.7], clusters=["1", "1", "2"])
    assert (found["a"].low, found["a"].high) == (wanted.low, wanted.high)
    assert found["a"].mean == pytest.approx(wanted.mean, abs=1e-15)


def test_groups_are_ordered_by_size() -> None:
    groups = [{"domain": ["a"]}, {"domain": ["b", "c"]}, {"domain": ["b"]}]
    records = [
        Record(str(i), 1, "q", "", [], "a", "answered", scores={"x": float(i)}, groups=of)
        for i, of in enumerate(groups)
    ]
    run = run_of("fanoutqa", *records)
    assert groupings(run) == ["domain"]
    assert {name: len(of) for name, of in by_group(run, "domain").items()} == {"b": 2, "a": 1, "c": 1}
    assert list(by_group(run, "domain")) == ["b", "a", "c"]
    assert figures(run, by_group(run, "domain")["b"])["x"].mean == 1.5
