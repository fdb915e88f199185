"""What someone who writes a paper types: names of systems, percent, one table of benchmarks, numbers, a baseline."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from qabench.cli import app
from qabench.errors import InputError
from qabench.loading_scripts import FOLDER
from qabench.runs.sources import name_and_path

pytestmark = pytest.mark.quick
CAREFUL, HASTY, RAMBLING = (
    str(FOLDER / f"fanoutqa/sample/generations/{name}.jsonl") for name in ("careful", "hasty", "rambling")
)
SAMPLE = ("--config", "sample", "--lemmatizer", "simplemma")


def run(*arguments: object) -> str:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False).stdout


def test_systems_have_the_names_that_the_user_gives(tmp_path: Path) -> None:
    named = [f"GPT-4 & tools={CAREFUL}", f"Ours={HASTY}"]
    assert "GPT-4 & tools" in run("score", "fanoutqa", *named, *SAMPLE, "--scores", "acc")
    assert "GPT-4 \\& tools & \\textbf{" in run(
        *("score", "fanoutqa", *named, *SAMPLE, "--scores", "acc", "--format", "latex"),
    )  # fmt: skip
    compared = run("compare", "fanoutqa", *named, *SAMPLE, "--resamples", "50", "--json")
    assert {each["system"] for each in json.loads(compared)["comparisons"][0]["systems"]} == {"GPT-4 & tools", "Ours"}
    samples = run("score", "fanoutqa", f"Both={CAREFUL},{HASTY}", *SAMPLE, "--scores", "acc.strict", "--json")
    assert [each["name"] for each in json.loads(samples)["evaluations"]] == ["Both"]
    run("report", "fanoutqa", *named, "--config", "sample", "--scores", "rouge", "-o", tmp_path / "page")
    runs = json.loads((tmp_path / "page/report.json").read_text())["sections"][0]["runs"]
    assert [each["label"] for each in runs] == ["GPT-4 & tools", "Ours"]
    table = tmp_path / "scores.csv"
    table.write_text("id,score\n1,0.5\n2,1\n")
    assert "Ours on scores" in run("score", f"Ours={table}", "--score", "score")
    assert "Ours" in run("leaderboard", "fanoutqa", f"Ours={CAREFUL}", "--config", "sample")
    odd = tmp_path / "a=b.jsonl"
    odd.write_text(Path(CAREFUL).read_text())
    assert "a=b on fanoutqa sample" in run("score", "fanoutqa", odd, *SAMPLE, "--scores", "acc")
    with pytest.raises(InputError, match="No such file"):
        run("score", "fanoutqa", "Ours=none.jsonl", *SAMPLE)
    # Samples in folders such as those that Hydra makes.
    paths = [tmp_path / f"seed={seed}/a.jsonl" for seed in (1, 2)]
    for path in paths:
        path.parent.mkdir()
        path.write_text(Path(CAREFUL).read_text())
    assert name_and_path(",".join(map(str, paths)))[0] == ""


def test_a_column_of_systems_needs_scores() -> None:
    with pytest.raises(InputError, match="--system s needs --score"):
        run("score", CAREFUL, "--benchmark", "felm", "--system", "s")


def test_only_the_numbers() -> None:
    text = run("score", "fanoutqa", CAREFUL, HASTY, *SAMPLE, "--scores", "acc", "--score-only", "--percent")
    lines = text.splitlines()
    assert lines[0].split() == ["89.24", "75.00"] and len(lines) == 2
    with pytest.raises(InputError, match="--score-only prints numbers, so that --format csv has no effect"):
        run("score", "fanoutqa", CAREFUL, *SAMPLE, "--score-only", "--format", "csv")


def test_percent_is_for_readers_and_not_for_programs() -> None:
    arguments = ("score", "fanoutqa", CAREFUL, *SAMPLE, "--scores", "acc", "--percent", "--decimals", "1")
    assert "89.2%" in run(*arguments) and "acc.loose" in run(*arguments)
    value = json.loads(run(*arguments, "--json"))["evaluations"][0]["scores"]["acc.loose"]
    assert 0.892 < value < 0.893 and str(value) in run(*arguments, "--format", "csv")
    with pytest.raises(InputError, match="99 decimals; allowed: 0 to 15"):
        run(*arguments[:-1], 99)


def sample_of_felm(tmp_path: Path) -> Path:
    path = tmp_path / "felm.jsonl"
    path.write_text('{"id": "0", "reply": "ALL_CORRECT"}\n')
    return path


def test_several_benchmarks_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = {"fanoutqa": CAREFUL, "felm": str(sample_of_felm(tmp_path))}
    read: list[Any] = []

    def sample(inputs: Any, benchmark: Any, config: None, **options: Any) -> Any:
        read.append(options.get("scores"))
        return original(inputs, benchmark, "sample", **options)

    from qabench.cli import score as module

    original = module.read_evaluations
    monkeypatch.setattr(module, "read_evaluations", sample)
    arguments = ["score", "fanoutqa", f"Ours={logs['fanoutqa']}", "felm", f"Ours={logs['felm']}"]
    text = run(*arguments, "--scores", "acc,balanced_accuracy", "--format", "markdown")
    assert text.startswith("| system | FanOutQA (sample): Loose accuracy | FanOutQA (sample): Strict accuracy | FELM")
    assert len([line for line in text.splitlines() if line.startswith("| Ours ")]) == 1
    assert read == [["acc"], ["balanced_accuracy"]]
    with pytest.raises(InputError, match="has no score 'bleu'"):
        run(*arguments, "--scores", "acc,bleu")
    with pytest.raises(InputError, match="--config: for a single benchmark; score each benchmark by itself"):
        run(*arguments, "--config", "sample")


def test_a_baseline_and_short_signatures() -> None:
    arguments = ("compare", "fanoutqa", CAREFUL, HASTY, RAMBLING, *SAMPLE, "--resamples", "100")
    document = json.loads(run(*arguments, "--baseline", "hasty", "--json"))["comparisons"][0]
    assert document["baseline"] == "hasty" and len(document["pairs"]) == 2
    text = run(*arguments, "--baseline", "hasty", "--short-signatures")
    assert "corrected over all pairs with hasty" in text and "|sha:" in text and "asked:" not in text
    with pytest.raises(InputError, match="there is no system 'hastie'"):
        run(*arguments, "--baseline", "hastie")
