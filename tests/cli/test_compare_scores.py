"""``qabench compare scores``: files of scores, invalid input, and output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from qabench.cli import app
from qabench.errors import InputError
from qabench.stats import paired_bootstrap, paired_randomization


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, ["compare", "scores", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def report(*arguments: object) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("COLUMNS", "250")


def write(path: Path, rows: list[Any]) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_tests_are_those_of_the_statistics(tmp_path: Path) -> None:
    a, b = np.random.default_rng(0).random((2, 30)).round(2)
    files = [
        write(tmp_path / f"{name}.jsonl", [{"id": f"q{i}", "f1": v} for i, v in enumerate(values)])
        for name, values in (("a", a), ("b", b))
    ]
    for name, test in (("randomization", paired_randomization), ("bootstrap", paired_bootstrap)):
        compared = report(*files, "--metric", "f1", "--test", name, "--seed", 3, "--resamples", 500)
        better, worse = (a, b) if a.mean() > b.mean() else (b, a)
        expected = test(better.tolist(), worse.tolist(), seed=3, resamples=500)
        (pair,) = compared["pairs"]
        assert pair["p"] == pair["corrected_p"] == expected.p_value
        assert (pair["low"], pair["high"]) == (expected.interval.low, expected.interval.high)


def test_only_shared_ids_count_and_others_are_named(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", [{"id": i, "s": True} for i in range(12)])  # ids may be numbers
    b = write(
        tmp_path / "b.jsonl",
        [
            *({"id": str(i), "s": 0} for i in range(3)),
            {"id": "2", "s": 0.5},
            {"id": "3", "s": None},
            {"id": "4", "s": float("nan")},
            {"id": "x", "s": 1},
            "",
            '{"id": "5", "s": 1',
            '{"s": 1}',
            "[1]",
        ],
    )
    compared = report(a, b, "--metric", "s")
    assert compared["items"] == 3
    means = {system["system"]: system["mean"] for system in compared["systems"]}
    assert means == pytest.approx({"a": 1, "b": 0.5 / 3})
    notes = "\n".join(compared["notes"])
    assert "a: left out because they are not in every file: 9 (3, 4, 5, 6, 7 and 4 more)" in notes
    for part in (
        "left out because they are not in every file: 1 (x)",
        "replaced an earlier line of the same id: 1 (2 (line 4))",
        "without a number for s: 2 (3, 4)",
        "unreadable lines: 3 (line 9: not JSON",
        "line 10: without 'id' (keys: 's')",
    ):
        assert part in notes
    assert "b: unreadable lines: 3" in run(a, b, "--metric", "s").stdout


def test_items_of_one_question_are_clustered(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    files = []
    for name in ("a", "b"):
        hard = np.repeat(rng.random(20), 5)
        rows = [{"id": f"i{i}", "question": f"q{i // 5}", "scores": {"s": v}} for i, v in enumerate(hard)]
        files.append(write(tmp_path / f"{name}.jsonl", rows))
    clustered = report(*files, "--metric", "s", "--cluster", "question")
    plain = report(*files, "--metric", "s")
    assert (clustered["items"], clustered["questions"], plain["questions"]) == (100, 20, 100)
    (pair,) = clustered["pairs"]
    assert pair["wins"] + pair["losses"] == 20
    assert clustered["systems"][0]["standard_error"] > 1.8 * plain["systems"][0]["standard_error"]
    text = run(*files, "--metric", "s", "--cluster", "question").stdout
    assert "100 items of 20 questions" in text


def test_files_with_equal_names_are_shown_by_path(tmp_path: Path) -> None:
    files = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        files.append(write(tmp_path / folder / "run.jsonl", [{"id": "1", "s": 1}]))
    compared = report(*files, "--metric", "s")
    assert [system["system"] for system in compared["systems"]] == list(map(str, files))
    assert compared["pairs"][0]["p"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["A", "--metric", "acc.loose"], "give at least two files"),
        (["A", "A", "--metric", "acc.loose"], "the file was given twice"),
        (["nowhere.jsonl", "A", "--metric", "acc.loose"], "cannot read nowhere.jsonl: No such file"),
        (
            ["A", "B", "--metric", "acc.loose"],
            "does not have exactly one score 'acc.loose'; allowed: p.s, q.s",
        ),
        (["A", "B", "--metric", "s"], "a.jsonl does not have exactly one score 's'; allowed: p.s, q.s"),
        (["A", "B", "--metric", "p.s"], r"have no id in common: a: 1 \(1\); b: 1 \(2\)"),
        (["A", "E", "--metric", "p.s"], r"empty.jsonl .* no predictions.*empty"),
        (["A", "J", "--metric", "p.s"], r"junk.jsonl .* no predictions.*line 1: not JSON"),
        (["A", "C", "--metric", "p.s", "--test", "t"], "unknown test 't'; allowed: randomization, bootstrap"),
        (["A", "C", "--metric", "p.s", "--correction", "t"], "unknown correction 't'; allowed: holm, bh, none"),
        (["A", "B", "--metric", "p.s", "--cluster", "doc"], "id '1' does not have its question in .*'doc'"),
        (["A", "C", "--metric", "p.s", "--cluster", "k"], "different questions for id '1': 'x', 'y'"),
        (["A", "C", "--metric", "p.s", "--resamples", "1"], "1 resamples; allowed: 2 or more"),
    ],
)
def test_errors_name_the_problem(arguments: list[str], message: str, tmp_path: Path) -> None:
    files = {
        "A": write(tmp_path / "a.jsonl", [{"id": "1", "k": "x", "p": {"s": 1}, "q": {"s": 1}}]),
        "B": write(tmp_path / "b.jsonl", [{"id": "2", "k": "x", "p": {"s": 1}}]),
        "C": write(tmp_path / "c.jsonl", [{"id": "1", "k": "y", "p": {"s": 1}}]),
        "E": write(tmp_path / "empty.jsonl", []),
        "J": write(tmp_path / "junk.jsonl", ["{"]),
    }
    with pytest.raises(InputError, match=message):
        run(*[files.get(argument, argument) for argument in arguments])


def test_the_agreement_of_two_judges(tmp_path: Path) -> None:
    # 75 and 15 agreements, 5 and 5 not; kappa = (0.90 - 0.68) / (1 - 0.68).
    verdicts = [(1, 1)] * 75 + [(1, 0)] * 5 + [(0, 1)] * 5 + [(0, 0)] * 15
    files = [
        write(tmp_path / f"judge{n}.jsonl", [{"id": str(i), "score": pair[n]} for i, pair in enumerate(verdicts)])
        for n in (0, 1)
    ]
    (found,) = report(*files, "--metric", "score", "--agreement")["agreement"]
    assert found["kappa"] == pytest.approx((0.90 - 0.68) / (1 - 0.68))
    assert (found["agreement"], found["chance"]) == (pytest.approx(0.90), pytest.approx(0.68))
    assert found["low"] < found["kappa"] < found["high"]
    assert "judge0 - judge1  0.6875" in run(*files, "--metric", "score", "--agreement").stdout
