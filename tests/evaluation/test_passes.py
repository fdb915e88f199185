"""Several samples per question: pass@k and pass^k, from epochs and from files of one system."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import qabench.loading_scripts
from qabench import evaluate_predictions, load_dataset
from qabench.cli import app
from qabench.data.answers import loads, text_of
from qabench.errors import InputError
from qabench.evaluation.matching import as_samples
from qabench.evaluation.passes import with_passes
from qabench.evaluation.score_spec import Pass, ScoreSpec, select_scores

SAMPLE = ("--config", "sample", "--lemmatizer", "simplemma")


def document(*arguments: object) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json", "--quiet"], catch_exceptions=False)
    document = json.loads(result.stdout)
    (first,) = document.get("evaluations") or document["comparisons"]
    return dict(first)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three samples of a system: question i is right in i % 4 of them."""
    folder = tmp_path_factory.mktemp("samples")
    rows = load_dataset("fanoutqa", "sample", split="validation")
    paths = []
    for number in range(3):
        path = folder / f"system-{number}.jsonl"
        answers = [text_of(loads(row["answer"])) if i % 4 > number else "no idea" for i, row in enumerate(rows)]
        lines = [{"id": row["id"], "answer": answer} for row, answer in zip(rows, answers, strict=True)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("right", range(6))
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_estimates_are_those_of_all_draws_and_of_inspect(right: int, k: int) -> None:
    reducers = pytest.importorskip("inspect_ai.scorer")
    values = [1.0] * right + [0.0] * (5 - right)
    draws = list(combinations(values, k))
    at_least_one, every = Pass(k)(values), Pass(k, all=True)(values)
    assert at_least_one == pytest.approx(sum(map(any, draws)) / len(draws))
    assert every == pytest.approx(sum(map(all, draws)) / len(draws))
    scores = [reducers.Score(value=value) for value in values]
    assert at_least_one == pytest.approx(reducers.pass_at(k)(scores).value)
    assert every == pytest.approx(reducers.pass_k(k)(scores).value)


def test_files_of_one_system(files: list[str]) -> None:
    scored = document("score", "fanoutqa", *files, "--samples", *SAMPLE, "--scores", "acc")
    scores = {name.removeprefix("acc.strict."): value for name, value in scored["scores"].items() if "strict" in name}
    # a quarter of the questions each has 0, 1, 2 and 3 right samples of 3
    expected = {"pass@2": (0 + 2 / 3 + 1 + 1) / 4, "pass@3": 3 / 4, "pass^2": (0 + 0 + 1 / 3 + 1) / 4, "pass^3": 1 / 4}
    assert scores == pytest.approx({"acc.strict": 0.5} | expected)
    assert (
        scored["model"] == "system-0 and 2 more"
        and scored["n"]["acc.strict"] == 12
        and scored["n"]["acc.strict.pass@2"] == 12
    )
    assert scored["unit"]["acc.strict"] == "questions"
    assert "each question was asked 3 times" in str(scored["deviations"])
    chosen = document("score", "fanoutqa", ",".join(files), *SAMPLE, "--scores", "acc", "--pass-k", "1")
    assert chosen["scores"]["acc.strict.pass^1"] == chosen["scores"]["acc.strict"] == 0.5
    assert "acc.strict.pass@2" not in chosen["scores"]
    one = CliRunner().invoke(app, ["score", "fanoutqa", files[0], "--samples", *SAMPLE, "--scores", "rouge"])
    assert "--samples: each question has one answer, so there is no pass@k" in one.stdout


def test_systems_with_samples_are_compared_by_question(files: list[str]) -> None:
    systems = [",".join(files), f"{files[1]},{files[2]}"]
    compared = document("compare", "fanoutqa", *systems, *SAMPLE, "--scores", "acc.strict.pass@2")
    (pair,) = compared["pairs"]
    # of 12 questions, three each with pass@2 of 0 and 0, 2/3 and 0, 1 and 1, 1 and 1
    assert (pair["difference"], pair["n"]) == (pytest.approx(2 / 3 / 4), 12)
    assert (pair["wins"], pair["ties"], pair["losses"]) == (3, 9, 0)


def test_a_score_named_as_its_group_is_chosen_alone() -> None:
    mean = ScoreSpec("binv", "binv", "", "binv")
    specs = [mean, Pass(2).of(mean), Pass(2, all=True).of(mean)]
    chosen = {
        name: [spec.name for spec in select_scores(specs, name, "a task")] for name in ("binv", "binv.pass@2", None)
    }
    every = ["binv", "binv.pass@2", "binv.pass^2"]
    assert chosen == {"binv": ["binv"], "binv.pass@2": ["binv.pass@2"], None: every}


def test_a_report_has_scores_of_samples(files: list[str], tmp_path: Path) -> None:
    options = ["--samples", "--benchmark", "fanoutqa", "--config", "sample", "-o", str(tmp_path)]
    assert CliRunner().invoke(app, ["report", *files, *options]).exit_code == 0
    (section,) = json.loads((tmp_path / "report.json").read_text())["sections"]
    sizes = {row["metric"]: row["n"] for row in section["scores"] if row["metric"].startswith("acc.strict.pass")}
    assert sizes == dict.fromkeys([f"acc.strict.{name}" for name in ("pass@2", "pass@3", "pass^2", "pass^3")], 12)


def test_questions_with_fewer_samples_limit_k(files: list[str]) -> None:
    parts = [evaluate_predictions("fanoutqa", "sample", file, ["acc"], lemmatizer="simplemma") for file in files]
    merged = as_samples(parts)
    named = [replace(part, model=name, setting="predictions") for part, name in zip(parts, "abc", strict=False)]
    assert as_samples(named).model == f"a and {len(named) - 1} more"
    fewer = with_passes(replace(merged, records=merged.records[:-1]))
    assert "acc.strict.pass@2" in fewer and "acc.strict.pass@3" not in fewer
    assert "at most 2: 1 of 12 questions have only 2 samples" in fewer.notes[-1]
    more = [replace(record, epoch=epoch) for record in merged.records for epoch in range(1, 7)]
    names = [name for name in with_passes(replace(merged, records=more)) if name.startswith("acc.strict.pass@")]
    assert [int(name.partition("@")[2]) for name in names] == [2, 3, 4, 5, 6, 7, 8, 16, 18]
    with pytest.raises(InputError, match=r"k is 4, but 12 of 12 questions have only 3 samples .*; allowed: 1 to 3"):
        with_passes(merged, [4])
    with pytest.raises(InputError, match="was given twice"):
        as_samples([parts[0], parts[0]])


def test_a_fraction_that_is_always_0_has_no_pass_scores(tmp_path: Path) -> None:
    ids = load_dataset("fanoutqa", "sample", split="validation")["id"]
    text = json.dumps([{"id": id, "answer": "none"} for id in ids])
    paths = [tmp_path / "a1.json", tmp_path / "a2.json"]
    for path in paths:
        path.write_text(text)
    scores = document("score", "fanoutqa", *paths, "--samples", *SAMPLE, "--scores", "acc.strict,rouge")["scores"]
    assert {name for name in scores if "pass" in name} == {"acc.strict.pass@2", "acc.strict.pass^2"}


def test_without_0_1_scores_k_has_no_effect() -> None:
    answers = Path(qabench.loading_scripts.__file__).parent / "fanoutqa/sample/generations/careful.jsonl"
    notes = document("score", "fanoutqa", answers, *SAMPLE, "--scores", "rouge", "--pass-k", "2")["notes"]
    assert notes == ["pass@k is not computed, because no score here is 0 or 1 for each sample"]
