"""A score is official if all samples of its log were asked and scored alike, not only the last one."""

import json
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import felm
from inspect_ai.log import EvalLog
from scripted_model import edited, run
from typer.testing import CliRunner

from qabench.adapters.inspect_ai.tasks import inspect_tasks
from qabench.benchmarks import benchmark
from qabench.cli import app
from qabench.cli.new import new
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.evaluation.signature import IRRELEVANT, Field, deviations, merged, parse
from qabench.hub.results import About, entries, read_reports
from qabench.runs.log import read_run
from qabench.runs.running import resume

LINE = "s|config:dev|prompt:official-1|qabench:1"


@pytest.mark.quick
def test_equal_signatures_are_one() -> None:
    assert merged([(LINE, True)] * 3) == LINE
    # it failed before it was asked
    assert merged([(LINE, True), ("s|config:dev|qabench:1", False)]) == LINE


@pytest.mark.parametrize(
    ("other", "field", "said"),
    [
        ("s|config:dev|prompt:mine-2|qabench:1", "prompt", "2 official-1, 1 mine-2"),
        ("s|config:dev|qabench:1", "prompt", "2 official-1, 1 not recorded"),
        ("s|config:dev|prompt:official-1|seed:1|qabench:1", "seed", "2 not recorded, 1 1"),
        ("t|config:dev|prompt:official-1|qabench:1", "score", "2 s, 1 t"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_difference_is_a_deviation_wherever_it_is(other: str, field: str, said: str, place: int) -> None:
    lines = [(LINE, True)] * 2
    lines.insert(place, (other, True))
    line = merged(lines)
    assert parse(line)[1][field] == f"mixed({said})"
    # Also of a field whose value does not matter, if it is the same in all answers.
    declared = dict.fromkeys(("config", "prompt", "seed", "score"), IRRELEVANT)
    assert deviations(line, declared) == [f"{field}: differs between the answers ({said})"]
    assert deviations(LINE, declared) == []


@pytest.mark.quick
def test_many_values_are_counted() -> None:
    lines = [(f"s|seed:{number}|qabench:1", True) for number in range(9)]
    assert parse(merged(lines))[1]["seed"] == "mixed(1 0, 1 1, 1 2, 1 3, 5 other values)"


@pytest.mark.quick
def test_a_cutoff_does_not_hide_a_difference() -> None:
    line = merged([("s|k:5|qabench:1", True), ("s|k:10|qabench:1", True)])
    assert deviations(line, {"k": Field(("10",))}, "10") == ["k: differs between the answers (1 5, 1 10)"]


@pytest.mark.quick
def test_an_edited_line_stays() -> None:
    assert merged([(LINE, True), ("nonsense", True), (LINE, True)]) == "nonsense"
    with pytest.raises(InputError, match="has the field 'prompt' twice"):
        parse("s|prompt:mine|prompt:official|qabench:1")


def replies(messages: Any) -> str:
    return "Answer: ALL_CORRECT"


@pytest.fixture(scope="module")
def two_prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose first answer has another prompt in its signatures."""
    folder = tmp_path_factory.mktemp("logs")
    log = run(felm(config="sample", prompt="qabench"), replies, folder)

    def change(content: EvalLog) -> None:
        (score,) = (content.samples or [])[0].scores.values()  # type: ignore[union-attr]
        lines = (score.metadata or {})["signatures"]
        for group, line in lines.items():
            lines[group] = line.replace("prompt:qabench-", "prompt:official-")

    return edited(Path(log.location), folder, change)


def sentences(evaluation: Evaluation) -> set[str]:
    return {sentence for score in evaluation.scores().values() for sentence in evaluation.deviations(score)}


def test_all_routes_say_that_prompts_differ(two_prompts: Path, tmp_path: Path) -> None:
    evaluation = read_run(two_prompts)
    (said,) = {sentence for sentence in sentences(evaluation) if sentence.startswith("prompt: ")}
    assert said.startswith("prompt: differs between the answers (")
    assert said.count("official-") == said.count("qabench-") == 1
    (report,) = read_reports(two_prompts)
    assert all(
        said in list(report["deviations"][name]) for name, value in report["scores"].items() if value is not None
    )
    with pytest.raises(InputError, match="differs between the answers"):
        entries(report, About())
    (entry, *_) = entries(report, About(allow_unofficial=True))
    assert said in str(entry.notes)
    other = run(felm(config="sample", prompt="qabench"), lambda messages: "Answer: 1", tmp_path / "other")
    compared = CliRunner().invoke(app, ["compare", str(two_prompts), other.location, "--scores", "recall", "--json"])
    assert compared.exit_code == 0 and "differs between the answers" in compared.output
    done = CliRunner().invoke(app, ["report", str(two_prompts), "-o", str(tmp_path / "report")])
    assert done.exit_code == 0, done.exception
    assert "differs between the answers" in (tmp_path / "report/report.json").read_text()


def test_a_run_is_not_resumed_with_another_prompt(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the authors' prompts are not available, then they are: nothing is edited."""
    calls = 0

    def second_fails(messages: Any) -> Any:
        nonlocal calls
        calls += 1
        return RuntimeError("no luck") if calls == 2 else "Answer: ALL_CORRECT"

    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path))
    log = run("qabench/felm", second_fails, tmp_path, task_args={"config": "sample"}, max_connections=1)
    before = calls
    monkeypatch.setenv("QABENCH_MIRROR", str(mirror))
    path = Path(log.location)
    with pytest.raises(
        InputError, match=r"questions were asked with the prompt qabench-.*, but the prompt is now official-"
    ) as error:
        resume(path, "scripted/model")
    assert "use -T prompt=qabench, or start a new run" in str(error.value)
    assert calls == before, "the check is before the first call"
    done = read_run(resume(path, "scripted/model", task_args={"prompt": "qabench"}))
    assert calls == before + 2  # the probe, and the failed question
    assert {record.status for record in done.records} == {"answered"}
    assert not any("differs" in sentence for sentence in sentences(done))


def test_results_accept_what_scoring_accepts(mirror: Path, tmp_path: Path) -> None:
    """Arguments that name the weights are a part of the system, in `score` and for the Hub alike."""
    arguments = {"config": "math", "prompt": "official"}
    log = run(felm(**arguments), replies, tmp_path, model_args={"model_path": "/models/small", "revision": "main"})
    evaluation = read_run(log.location)
    official = {score.spec.name for score in evaluation.scores().values() if not evaluation.deviations(score)}
    (report,) = read_reports(Path(log.location))
    published = {str(entry.notes).partition(",")[0] for entry in entries(report, About())}
    assert published == official and "recall" in official
    saved = tmp_path / "report.json"
    saved.write_text(json.dumps(report))
    (again,) = read_reports(saved)
    assert entries(again, About()) == entries(report, About())


def test_a_providers_own_limit_is_part_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A custom benchmark is official with a served model and with one in this process, which has a
    default limit.
    """
    new("rivers", tmp_path)
    monkeypatch.setenv("QABENCH_PATH", str(tmp_path))
    rivers = benchmark("rivers")
    served, in_process, limited = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    task = inspect_tasks(rivers)["rivers"]
    lines = []
    for folder, limit, options in ((served, None, {}), (in_process, 2048, {}), (limited, 2048, {"max_tokens": 5})):
        monkeypatch.setattr("inspect_ai.model.ModelAPI.max_tokens", lambda self, limit=limit: limit)
        evaluation = read_run(run(task(), lambda messages: "the Seine", folder, **options).location)
        lines.append((sentences(evaluation), next(iter(evaluation.signatures.values()))))
    assert lines[0][0] == lines[1][0]
    assert "|default_max_tokens:2048|" in lines[1][1]
    assert lines[2][0] - lines[1][0] == {"max tokens: 5 (the official value is not known)"}
