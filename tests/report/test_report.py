"""Reports: numbers, statements about runs, and the command."""

import json
import re
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_runs import felm_run, run_of, three_systems, written
from typer.testing import CliRunner

from qabench.benchmarks import benchmark, shipped_names
from qabench.benchmarks.report import Report
from qabench.cli import app
from qabench.errors import InputError, MissingExtra
from qabench.evaluation import Evaluation, ExtraSection, Message, Record, ScoreSpec, SectionRow
from qabench.evaluation.comparison import compare
from qabench.evaluation.labels import labels
from qabench.loading_scripts.published import PublishedScore
from qabench.report import build_report
from qabench.report.finding import finding
from qabench.report.section import sections_of
from qabench.report.view import section_data
from qabench.stats import mean_interval


@pytest.fixture(scope="module")
def three() -> list[Evaluation]:
    return three_systems()


def test_scores_are_those_of_the_evaluations(three: list[Evaluation], tmp_path: Path) -> None:
    section = written(build_report(three, tmp_path))["sections"][0]
    for label, run in zip(("openai/large", "org/medium", "org/small"), three, strict=True):
        rows = {row["metric"]: row for row in section["scores"] if row["run"] == label}
        scores = {name: (score.interval.mean, score.interval.low, score.n) for name, score in run.scores().items()}
        assert {name: (row["mean"], row["low"], row["n"]) for name, row in rows.items()} == scores


def test_runs_are_ranked_among_comparable_published_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    published = [("A", "all", 0.9), ("B", "sample", 0.9), ("C", "sample", 0.1)]
    scores = [PublishedScore(system, "raw", config, "f1", value, "a paper") for system, config, value in published]
    monkeypatch.setattr("qabench.benchmarks.numbers.Numbers.published", lambda self: scores)
    official, deviating = felm_run("org/official"), felm_run("org/deviating", seed=1)
    deviations = Evaluation.deviations
    monkeypatch.setattr(Evaluation, "deviations", lambda run, score: deviations(run, score) if run is deviating else [])
    (section,) = sections_of([official, deviating])
    rows = {entry.system: (entry.config, entry.rank, entry.low is not None) for entry in section.leaderboard}
    assert rows == {
        "A": ("all", 1, False), "B": ("sample", 1, False), "org/official": ("sample", 2, True),
        "org/deviating": ("sample", None, True), "C": ("sample", 3, False),
    }  # fmt: skip
    assert section.as_dict()["leaderboard"][0]["system"] == "A"


def grouped(sizes: dict[str, int]) -> Evaluation:
    groups = [name for name, size in sizes.items() for _ in range(size)]
    records = [
        Record(str(i), 1, "q", "", [], "a", "answered", scores={"acc.loose": i % 2}, groups={"category": (name,)})
        for i, name in enumerate(groups)
    ]
    return run_of("fanoutqa", "dev", "closed-book", "org/a", records)


def test_the_largest_groups_are_shown() -> None:
    (breakdown,) = sections_of([grouped({"A": 5, "B": 15, **{f"C{i:02}": 2 for i in range(20)}})])[0].breakdowns
    assert breakdown["title"].endswith("(the 15 largest of 22 groups)")
    assert breakdown["groups"][:3] == ["A", "B", "C00"] and len(breakdown["groups"]) == len(breakdown["rows"]) == 15
    assert [row["n"] for row in breakdown["rows"] if row["group"] == "A"] == [5]
    (numbered,) = sections_of([grouped({"10": 5, "9": 2})])[0].breakdowns
    assert numbered["groups"] == ["9", "10"]


def test_labels_of_long_names_keep_their_ends() -> None:
    start, end = "org/" + "a-long-name-" * 8, "-checkpoint-"
    runs = [scored(f"{start}{end}{number}", [1.0]) for number in (1000, 2000)]
    assert [label[-15:] for label in labels(runs)] == ["checkpoint-1000", "checkpoint-2000"]
    assert [len(label) for label in labels(runs)] == [80, 80]
    # What differs in the middle only is not cut.
    names = [f"{start}{size}{'-instruct' * 8}" for size in ("7b", "8b")]
    assert labels([scored(name, [1.0]) for name in names]) == [f"org/{name}" for name in names]


def scored(model: str, values: list[float]) -> Evaluation:
    records = [Record(str(i), 1, "q", "", [], "a", "answered", scores={"acc.loose": v}) for i, v in enumerate(values)]
    return run_of("fanoutqa", "dev", "closed-book", f"org/{model}", records)


def test_the_finding_names_leader_difference_and_test() -> None:
    rng = np.random.default_rng(0)
    weak = rng.random(200) * 0.5
    runs = {"a": weak + 0.3, "b": weak, "c": weak + rng.normal(0, 0.001, 200)}
    spec = ScoreSpec("acc.loose", "Loose accuracy", "", "acc")
    compared = compare({name: scored(name, list(values)) for name, values in runs.items()}, spec)
    second = list(compared.systems)[1]
    (interval,) = [pair.difference.interval for pair in compared.pairs if {pair.first, pair.second} == {"a", second}]
    test = f"0.300 (95% CI {interval.bounds('.3f')}, not corrected; paired test, corrected p = 0.0003, n = 200)"
    score = compared.systems["a"]
    bounds = score.interval.bounds(".3f")
    best = f"Loose accuracy: a is the best system, {score:.3f} (95% CI {bounds}, n = 200 questions)"
    significant = "it is significantly better than each of the 2 other systems."
    assert finding(compared) == f"{best}. It is {test} ahead of {second}; {significant}"
    two = {name: scored(name, list(runs[name])) for name in "bc"}
    sentence = finding(compare(two, spec), ["d"])
    assert "no system is shown to be the best. " in sentence and "is the best" not in sentence
    assert sentence.endswith("; the two cannot be told apart. Without this score: d.")
    few = scored("b", [0.0, 0.4])
    apart = {"a": scored("a", [1.0, 0.0]), "b": replace(few, records=few.records[1:])}
    sentence = finding(compare(apart, spec))
    assert "different questions, so their scores do not rank them. On the 1 that both have, b is" in sentence
    equal = {name: scored(name, [0.0, 1.0]) for name in "ab"}
    expected = "Loose accuracy: a and b have equal scores, 0.500 (95% CI 0.013 to 0.987, n = 2 questions)."
    assert finding(compare(equal, spec)) == expected
    equal = {name: scored(name, [0.0, 1.0]) for name in "abcd"} | {"e": scored("e", [0.0, 0.5])}
    assert finding(compare(equal, spec)).startswith("Loose accuracy: a, b, c and d have equal scores, 0.500 (")


def test_scores_for_different_questions_do_not_rank_the_systems() -> None:
    """Then no score on the page is the best of its column."""
    first, second = [scored(name, [1.0, 0.0]) for name in "ab"]
    common, own = second.records
    elsewhere = [replace(common, id="8"), replace(own, id="9")]
    for records, expected in ((second.records, True), ([common], False), (elsewhere, False)):
        (section,) = sections_of([first, replace(second, records=records)])
        (metric, *_) = section_data(section)["metrics"]
        assert metric["ranks"] is expected


def test_a_benchmark_adds_sections(three: list[Evaluation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = SectionRow("large", "Recall", "some type", mean_interval([0.5, 0.5]), 2)
    extra = [ExtraSection("Type of error", "errors", [row], note="A note."), ExtraSection("Empty", "errors", [])]
    (section,) = sections_of(three)
    monkeypatch.setattr(type(section.benchmark), "report", lambda self: Report(sections=lambda evaluations: extra))
    page = build_report(three, tmp_path).read_text(encoding="utf-8")
    assert "Type of error</h3>" in page and "Empty" not in page
    (numbers,) = written(tmp_path / "index.html")["sections"][0]["sections"]
    assert (numbers["rows"][0]["mean"], numbers["rows"][0]["low"]) == (0.5, None) and numbers["note"] == "A note."


def test_missing_and_unscored_answers_are_reported(three: list[Evaluation], tmp_path: Path) -> None:
    records = [replace(three[0].records[0], scores={}), *three[0].records[1:]]
    run = replace(three[0], records=records, expected=20, status="cancelled")
    page = build_report([run], tmp_path).read_text(encoding="utf-8")
    assert "the run did not finish (cancelled)" in page and "12 of 20" in page and "1 left out" in page
    counts = written(tmp_path / "index.html")["sections"][0]["runs"][0]["counts"]
    # without a record, and without an answer
    assert (sum(counts.values()), counts["missing"]) == (20, 8 + 2)


def test_nothing_answered_has_no_scores(three: list[Evaluation], tmp_path: Path) -> None:
    records = [replace(record, status="failed", answer=None) for record in three[0].records]
    page = build_report([replace(three[0], records=records)], tmp_path).read_text(encoding="utf-8")
    assert "There are no scores: none of the 12 questions was answered." in page and 'class="scores"' not in page
    secret = [replace(three[0], records=records, unscored="the answers are secret")]
    assert "There are no scores: the answers are secret." in build_report(secret, tmp_path).read_text(encoding="utf-8")


def test_labels_distinguish_runs(three: list[Evaluation]) -> None:
    first = three[0]
    changes = {"setting": "open-book"}, {"model": "other/large"}, {"created": "2026-05-01T11:00"}
    labels = list(sections_of([first, *(replace(first, **change) for change in changes)])[0].runs)
    assert len(set(labels)) == 4
    assert [label.partition(" · ")[0] for label in labels] == [first.model, first.model, "other/large", first.model]


def test_nothing_to_report_and_no_jinja2(three: list[Evaluation], tmp_path: Path, monkeypatch: Any) -> None:
    with pytest.raises(InputError, match=r"large\.eval has no records yet \(status: started\)"):
        build_report([replace(three[0], records=[], status="started")], tmp_path)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r"qabench\[report\]"):
        build_report(three[:1], tmp_path)


def test_the_command(tmp_path: Path) -> None:
    from inspect_ai import eval as run_task
    from scripted_model import scripted

    model = scripted(lambda messages: "Mars, 1998 and Lima")
    options: dict[str, Any] = {"task_args": {"config": "sample"}, "log_dir": str(tmp_path / "logs"), "display": "none"}
    run_task("qabench/fanoutqa_closed_book", model=model, **options)
    (log,) = (tmp_path / "logs").glob("*.eval")
    done = CliRunner().invoke(app, ["report", str(log), "--output", str(tmp_path / "out")])
    assert done.exit_code == 0 and "index.html" in done.stdout, done.output
    (section,) = json.loads((tmp_path / "out" / "report.json").read_text())["sections"]
    assert section["runs"][0]["counts"]["answered"] == 12


def test_the_page_knows_no_field_of_a_detail() -> None:
    """Benchmarks declare in which form their details are shown."""
    scripts = files("qabench.report") / "static"
    texts = [script.read_text() for script in scripts.iterdir() if script.name.endswith(".js")]
    assert len(texts) > 10 and [text for text in texts if re.search(r"\bdetail\.\w", text)] == []
    for name in shipped_names():
        assert benchmark(name).report().details, f"{name} does not say how its details are shown"


def test_conversations_are_bounded(three: list[Evaluation], tmp_path: Path) -> None:
    chatter = [Message("tool", "x" * 50_000) for _ in range(200)]
    run = replace(three[0], records=[replace(record, messages=chatter) for record in three[0].records])
    assert build_report([run], tmp_path).stat().st_size < 2_000_000
