"""The commands as a user types them, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import answer_styles
import pytest

from qabench import loading_scripts

GENERATIONS = loading_scripts.FOLDER / "fanoutqa/sample/generations"


def qabench(*arguments: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "200", **environment}
    for name in [name for name, value in environment.items() if value == ""]:
        del env[name]
    done = subprocess.run(
        [sys.executable, "-m", "qabench", *map(str, arguments)], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def as_json(*arguments: str, **options: Any) -> Any:
    return json.loads(qabench(*arguments, "--json", **options).stdout)


def test_quickstart_ranks_the_sample_systems(tmp_path: Path) -> None:
    report = as_json("quickstart", QABENCH_MIRROR="", HOME=str(tmp_path), QABENCH_CACHE="")
    loose = {name: system["scores"]["acc"]["loose"] for name, system in report["systems"].items()}
    assert list(loose) == ["careful", "rambling", "hasty"]
    assert sorted(loose.values(), reverse=True) == list(loose.values())
    assert [c["significant"] for c in report["comparisons"]] == [False, True]
    assert all("simplemma" in system["unofficial"] for system in report["systems"].values())
    text = qabench("quickstart", QABENCH_MIRROR="").stdout
    for part in (
        "careful",
        "is better than hasty",
        "lemmatizer:simplemma",
        "qabench fetch fanoutqa",
        "qabench score fanoutqa dev",
    ):
        assert part in text


def test_quickstart_on_real_questions(mirror: Path) -> None:
    report = as_json("quickstart")
    systems = report["systems"]
    assert {system["config"] for system in systems.values()} == {"dev"}
    assert systems["hasty"]["counts"]["missing"] > 0
    assert all(c["significant"] for c in report["comparisons"])


def test_list() -> None:
    listed = as_json("list", QABENCH_MIRROR="")
    sample = next(row for row in listed["configs"] if (row["benchmark"], row["config"]) == ("fanoutqa", "sample"))
    assert sample["data"] == "shipped"
    assert "fanout_acc" in listed["metrics"]
    assert "fanoutqa dev_nov23" in qabench("list").stdout


def test_score_the_sample_with_every_output(tmp_path: Path) -> None:
    files = ("--output", tmp_path / "out/report.json", "--per-question", tmp_path / "rows.jsonl")
    done = qabench(
        "score", "fanoutqa", "sample", GENERATIONS / "hasty.jsonl", "--by", "category", "--by", "type", *files
    )
    for part in ("acc.loose", "95 % interval", "By category", "questions without an answer: 1", "empty answers: 1"):
        assert part in done.stdout
    report = json.loads((tmp_path / "out/report.json").read_text(encoding="utf-8"))
    assert report["counts"] == {
        "scored": 12, "missing": 1, "unknown": 0, "repeated": 0, "null": 0, "empty": 1, "not_text": 0, "bad_lines": 0,
    }  # fmt: skip
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert report["scores"]["acc"]["loose"] == sum(row["acc"]["loose"] for row in rows) / 12
    assert report["intervals"]["acc.loose"]["mean"] == pytest.approx(report["scores"]["acc"]["loose"])
    assert sum(group["questions"] for group in report["by"]["type"].values()) == 12
    assert [row["answered"] for row in rows].count(False) == 1
    again = as_json("score", "fanoutqa", "sample", GENERATIONS / "hasty.jsonl", "--by", "category", "--by", "type")
    assert again == report


def test_score_only_what_is_answered() -> None:
    every = as_json("score", "fanoutqa", "sample", GENERATIONS / "hasty.jsonl", "--metrics", "rouge")["scores"]
    part = as_json(
        "score", "fanoutqa", "sample", GENERATIONS / "hasty.jsonl", "--metrics", "rouge", "--only-score-answered"
    )["scores"]
    assert "acc" not in every
    assert part["rouge"]["rouge1"]["recall"] == pytest.approx(every["rouge"]["rouge1"]["recall"] * 12 / 11)


def test_score_a_real_size_run_twice(mirror: Path, tmp_path: Path, spacy_model: str) -> None:
    dev = json.loads((mirror / "zhudotexe/fanoutqa/fanoutqa/data/fanout-final-dev.json").read_text(encoding="utf-8"))
    texts = answer_styles.answers(dev[:60], answer_styles.dropped)
    lines = [json.dumps({"id": q["id"], "answer": text}) for q, text in zip(dev, texts, strict=False)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    first = as_json("score", "fanoutqa", "dev", tmp_path / "a.jsonl")
    assert first["counts"]["missing"] == 250
    assert as_json("score", "fanoutqa", "dev", tmp_path / "a.jsonl") == first


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["score", "fanoutqa", "sample", "nowhere.jsonl"], 2, "cannot read the generations file nowhere.jsonl"),
        (["score", "fanoutqa", "nope", "@"], 2, "no config 'nope'; allowed: dev, test"),
        (["score", "fanoutqa", "test", "@"], 2, "answers of FanOutQA test are not public"),
        (["score", "nope", "dev", "@"], 2, "there is no benchmark 'nope'; allowed:"),
        (["score", "fanoutqa", "sample", "@", "--metrics", "acc,bleu"], 2, "unknown metrics bleu; allowed: acc, rouge"),
        (["score", "fanoutqa", "sample", "@", "--by", "colour"], 2, "unknown grouping 'colour'; allowed: category"),
        (["score", "fanoutqa", "sample", "@", "--lemmatizer", "x"], 2, "unknown lemmatizer 'x'"),
        (["score", "fanoutqa", "dev", "@"], 1, "is in no mirror and not in the cache"),
        (["stats", "fanoutqa", "--config", "nope"], 2, "no config 'nope'"),
        (["quickstart", "--data", "dev"], 1, "fanout-final-dev.json"),
        (["nope"], 2, "No such command 'nope'"),
        (["score", "fanoutqa"], 2, "Missing argument"),
        (["score", "fanoutqa", "sample", "@", "--output", "/dev/null/x.json"], 1, "cannot write /dev/null/x.json"),
    ],
)
def test_errors_say_what_and_exit_right(arguments: list[str], code: int, message: str, tmp_path: Path) -> None:
    given = [str(GENERATIONS / "careful.jsonl") if a == "@" else a for a in arguments]
    done = qabench(*given, code=code, QABENCH_MIRROR=str(tmp_path))
    assert message in done.stderr
    assert done.stdout == ""


def test_spacy_that_is_not_there_says_how_to_install_it() -> None:
    try:
        import en_core_web_sm  # noqa: F401
    except ImportError:
        arguments = ("score", "fanoutqa", "sample", str(GENERATIONS / "careful.jsonl"), "--lemmatizer", "spacy")
        assert "pip install 'qabench[spacy]'" in qabench(*arguments, code=1).stderr
    else:
        pytest.skip("the model is installed")


def test_strict_fails_on_any_problem_after_scoring() -> None:
    done = qabench("score", "fanoutqa", "sample", str(GENERATIONS / "hasty.jsonl"), "--strict", code=2)
    assert "acc.loose" in done.stdout


def test_stats(mirror: Path) -> None:
    tables = as_json("stats", "fanoutqa", "--config", "dev")["tables"]
    cells = {table["title"]: {row[0]: row[1:] for row in table["rows"]} for table in tables}
    assert cells["FanOutQA dev: questions and evidence"]["questions"] == [310, 310]
    assert cells["FanOutQA dev: questions and evidence"]["pages without a revid"] == [None, 83]
    assert [cells["Answers by type"][kind][0] for kind in ("dict", "str", "list", "int", "bool")] == [
        274,
        13,
        12,
        10,
        1,
    ]
    by_type = [cells["Answers by type"][kind] for kind in ("str", "int", "float", "bool")]
    assert [row[1] for row in by_type] == [1095, 298, 83, 18]
    assert [row[1] + row[4] for row in by_type] == [1203, 326, 83, 27]  # with those of sub-questions
    assert [cells["Sub-questions"][f"depth {n}"] for n in (1, 2, 3)] == [[2013], [206], [6]]
    assert cells["The 10 most frequent categories"]["Geography"] == [94]
    test = as_json("stats", "fanoutqa", "--config", "test")["tables"]
    figures = {row[0]: row[1:] for row in test[0]["rows"]}
    assert figures["questions"] == [724, 724]
    assert figures["pages per question, mean"] == [None, 6.9]
    assert figures["pages without a pageid"] == [None, 199]


def test_version_and_no_arguments() -> None:
    from qabench import __version__

    assert qabench("--version").stdout == f"qabench {__version__}\n"
    assert "quickstart" in qabench(code=2).stderr
