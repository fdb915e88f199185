"""Recomputed published numbers, and the rank of scores among published scores."""

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from qabench.benchmarks import benchmark, benchmark_names, numbers
from qabench.benchmarks.fastbook import numbers as fastbook_numbers
from qabench.benchmarks.published import local_entries, own_entries, ranked
from qabench.benchmarks.reproduction import Check
from qabench.cli import app
from qabench.evaluation import ANSWERED, Evaluation, Record
from qabench.evaluation.signature import signature
from qabench.loading_scripts import dataset_table

COLBERT = "ColBERT (answerdotai/answerai-colbert-small-v1)"
FASTBOOK, FANOUTQA = benchmark("fastbook").scoring(), benchmark("fanoutqa").scoring()


@pytest.mark.parametrize(
    ("published", "ours", "agrees"),
    [(0.858333, 0.8583333, True), (0.858333, 0.85834, False), (2.6, 2.6, True), (191, 192, False), (None, 1, True)],
)
def test_numbers_agree_at_the_published_digits(published: float | None, ours: float, agrees: bool) -> None:
    assert Check("x", published, ours).agrees is agrees


@pytest.mark.parametrize("name", benchmark_names())
def test_real_numbers_are_reproduced(name: str, mirror: Path, compared: Callable[[str], None]) -> None:
    found = benchmark(name).numbers().reproduce()
    assert all(check.agrees or check.explanation for check in found.checks) and len(found.checks) >= 3
    compared(f"{len(found.checks)} published numbers, {sum(not check.agrees for check in found.checks)} explained")


def test_published_methods_without_their_model_are_listed(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without the author's chunker, whose package cannot be installed beside others: each chapter is one passage.
    monkeypatch.setattr(fastbook_numbers, "cut_as_source", lambda text: [text])
    monkeypatch.setattr(fastbook_numbers, "CHUNKS", 7)
    checks = {check.name: check for check in fastbook_numbers.score_checks()}
    assert len(checks) == 8
    for model in ("BAAI/bge-small-en-v1.5", "colbert-ir/colbertv2.0", "answerdotai/answerai-colbert-small-v1"):
        (check,) = [check for name, check in checks.items() if f"({model}): recall@10" in name]
        assert not check.computed and check.explanation.startswith(f"not computed: needs the model {model}")


@pytest.mark.parametrize(("recall", "explained"), [(0.86, True), (0.5, False)])
def test_published_methods_are_compared(
    mirror: Path, monkeypatch: pytest.MonkeyPatch, recall: float, explained: bool
) -> None:
    monkeypatch.setattr(fastbook_numbers, "_scores", lambda method, model: {"mrr@10": 0.571, "recall@10": recall})
    monkeypatch.setattr(fastbook_numbers, "SYSTEMS", {COLBERT: fastbook_numbers.SYSTEMS[COLBERT]})
    mrr, of_recall = fastbook_numbers.score_checks()
    assert (mrr.explanation, bool(of_recall.explanation)) == (fastbook_numbers.OTHER_SOFTWARE, explained)


def test_published_chunks_are_needed(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastbook_numbers, "cut_as_source", lambda text: [text])
    checks = fastbook_numbers.score_checks()
    assert all("llama-index makes 7 chunks, and the source has 271" in check.explanation for check in checks)
    monkeypatch.setattr(fastbook_numbers, "CHUNKS", 7)
    mrr, recall = (check for check in fastbook_numbers.score_checks() if "full-text" in check.name)
    assert mrr.computed and recall.computed and not mrr.agrees and not mrr.explanation


def test_a_new_difference_is_not_explained(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = numbers.published_numbers("felm")
    content["published"]["all"]["segments"]["wk"] = 531
    monkeypatch.setattr(numbers, "published_numbers", lambda name: content)
    result = CliRunner().invoke(app, ["reproduce", "felm"])
    assert result.exit_code == 1 and "unexplained differences: 1" in result.stdout


def test_unavailable_files_are_named(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    result = CliRunner().invoke(app, ["reproduce", "expertqa"])
    assert result.exit_code == 0 and "qabench fetch expertqa" in result.stdout
    assert "0 published numbers" in result.stdout


def evaluation(value: float, **fields: object) -> Evaluation:
    (file,) = dataset_table("fastbook").config("questions").files
    line = signature(
        "fastbook_retrieval",
        config="questions",
        data=dataset_table("fastbook").file_digest(file),
        **{"k": 10, "repair": "ftfy-6.3", "options": "official", "longest": 500} | fields,
    )
    record = Record("1-1", 1, "q", "r", (), None, ANSWERED, scores={"mrr@10": value})
    return Evaluation(
        path="x", task="x", **FASTBOOK, config="questions", setting="rag", model="m", created="2026",
        status="success", expected=1, available=1, records=[record], signatures={"retrieval": line},
    )  # fmt: skip


def rank(of: Evaluation, metric: str = "mrr@10") -> str | None:
    """Return the place of a score among those of its group, if it has one and there are others."""
    rows = ranked([*own_entries(of, [metric]), *local_entries(of.benchmark)], benchmark(of.benchmark))
    own = next(row for row in rows if row.n is not None)  # published scores have no n
    comparable = attrgetter("metric", "setting", "config", "judge")
    group = [row for row in rows if comparable(row) == comparable(own)]
    return f"{own.rank} of {len(group)}" if own.rank and len(group) > 1 else None


@pytest.mark.parametrize(("value", "place"), [(0.6, "1 of 5"), (0.5, "4 of 5")])
def test_a_score_is_ranked(value: float, place: str) -> None:
    assert rank(evaluation(value)) == place


@pytest.mark.parametrize(
    ("field", "official", "other"),
    [("options", "official", "explicit_only"), ("longest", 500, 23712),
     ("chunk_size", 500, 2000), ("overlap", 64, 400)],
)  # fmt: skip
def test_deviating_scores_have_no_rank(field: str, official: object, other: object) -> None:
    assert rank(evaluation(0.6, **{field: official})) and rank(evaluation(0.6, **{field: other})) is None


def test_published_scores_are_of_known_metrics(mirror: Path) -> None:
    for name in benchmark_names():
        scores = benchmark(name).numbers().published()
        settings = {setting.name for setting in benchmark(name).settings}
        for score in scores:
            assert score.config in dataset_table(name).configs
            assert score.setting is None or score.setting in settings
        assert len({(score.system, score.setting, score.config, score.metric) for score in scores}) == len(scores)
    open_book = [
        score
        for score in benchmark("fanoutqa").numbers().published()
        if (score.setting, score.config) == ("open-book", "test")
    ]
    assert len(open_book) == 16 * 13
    for score in benchmark("felm").numbers().published():
        assert benchmark("felm").score_spec(score.metric).official


def test_no_published_file_is_downloaded(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    of = replace(evaluation(0.6), benchmark="fanoutqa")
    monkeypatch.setattr(Evaluation, "deviations", lambda *_: [])
    assert rank(of) is None


@pytest.mark.parametrize(
    ("judge", "place"),
    [("gpt-4-0613", "2 of 14"),
     ("gpt-4o-2024-11-20", "1 of 4"),
     ("another", None)],
)  # fmt: skip
def test_scores_of_one_judge_are_ranked(mirror: Path, monkeypatch: Any, judge: str, place: str | None) -> None:
    monkeypatch.setattr(Evaluation, "deviations", lambda *_: [])
    record = Record("1", 1, "q", "r", (), "x", ANSWERED, scores={"gpt": 0.36})
    of = replace(
        evaluation(0.6), **FANOUTQA, config="test", setting="open-book", records=[record],
        signatures={"judge": signature("fanout_judge", judge=judge)},
    )  # fmt: skip
    assert rank(of, "gpt") == place


def test_scores_are_ranked_among_the_same_setting_and_questions(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Evaluation, "deviations", lambda *_: [])
    record = Record("1", 1, "q", "r", (), "x", ANSWERED, scores={"acc.loose": 0.5})
    of = replace(evaluation(0.6), config="test", setting="closed-book", records=[record], **FANOUTQA)
    assert rank(of, "acc.loose") == "2 of 17" and rank(replace(of, config="dev"), "acc.loose") is None
    # a file: the setting is not known
    assert rank(replace(of, setting="predictions"), "acc.loose") is None
