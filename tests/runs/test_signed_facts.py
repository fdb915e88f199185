"""A run's signatures say what happened: every field of Inspect's log is signed, or does not matter
for a reason.
"""

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import inspect_ai.log
import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import SolverSpec, generate, system_message
from scripted_model import SCRIPTS, edited

import qabench
from qabench.adapters.inspect_ai import facts
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.evaluation.signature import parse
from qabench.runs.log import read_run

TASKS = {"fanoutqa_closed_book": {"prompt": "qabench", "lemmatizer": "simplemma"}, "fastbook_rag": {}}
TASKS |= {"expertqa": {"prompt": "qabench"}, "felm": {"prompt": "qabench"}}
AGENT = """
from inspect_ai.solver import solver
@solver
def agent():
    async def solve(state, generate):
        state.output.completion = state.target.text
        return state
    return solve
"""
OPTIONS: dict[str, Any] = {
    **dict.fromkeys(("time_limit", "working_limit", "message_limit", "turn_limit"), 1000),
    **{"token_limit": 10**6, "seed": 7, "parallel_tool_calls": False, "reasoning_history": "all"},
    **{"extra_headers": {"X-Team": "secret"}, "extra_body": {"x": 1}},
}
ARGUMENTS = {"dtype": "float16", "chat_template": "/home/secret/x.jinja", "never_seen": "secret"}
# signed, and any value is official
SYSTEM = {"revision": "main", "model_path": "/home/secret/weights"}
HARMLESS = {"device": "cuda:1", "tensor-parallel-size": 2, "max_connections": 9, "timeout": 60, "api_key": "secret"}
CONTRADICTIONS = {
    "setting": "its metadata has the setting 'open-book', its run 'closed-book'",
    "config": "its metadata has the config 'open-book', its run 'sample'",
    "data": "its metadata has the data 'open-book', its run 'eb5884cb6b06'",
}


def log_of(folder: Path, task: str = "fanoutqa_closed_book", limit: int | None = 2, **options: Any) -> Path:
    SCRIPTS["model"] = lambda messages: "Mars. Answer: 1"
    arguments = {"config": "sample"} | TASKS[task] | options.pop("task_args", {})
    where = {"log_dir": str(folder), "display": "none"}
    (log,) = inspect_eval(f"qabench/{task}", "scripted/model", task_args=arguments, limit=limit, **where, **options)
    assert log.status == "success", log.error
    return Path(log.location)


def said(evaluation: Evaluation) -> set[str]:
    """Return the deviations of all scores."""
    return {sentence for score in evaluation.scores().values() for sentence in evaluation.deviations(score)}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return log_of(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("name", sorted(facts.TABLES.keys() - {"MODEL_ARGS"}))
def test_every_field_of_inspect_is_decided(name: str) -> None:
    kind = GenerateConfig if name == "GenerateConfig" else getattr(inspect_ai.log, name)
    title, table = facts.TABLES[name]
    assert set(kind.model_fields) <= set(table), (
        f"decide in adapters/inspect_ai/facts.json how these are signed: {title}"
    )
    assert all(len(reason) > 10 for _, reason in table.values())


def test_a_field_that_nobody_decided_is_a_deviation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qabench.runs.facts.EVAL_CONFIG", {"epochs": facts.EVAL_CONFIG["epochs"]})
    assert "retry on error: 1, which the setting does not have" in said(read_run(log_of(tmp_path, retry_on_error=1)))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", ["file", "list"])
def test_another_solver_is_an_agent(task: str, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(AGENT, encoding="utf-8")
    solver: Any = SolverSpec(f"{file}@agent") if kind == "file" else [system_message("Be brief."), generate()]
    evaluation = read_run(log_of(tmp_path, task, solver=solver))
    name = "agent" if kind == "file" else "system_message+generate"
    assert evaluation.setting == "agent"
    assert all(parse(line)[1]["solver"].startswith(f"{name}-") for line in evaluation.signatures.values())
    if evaluation.scores():
        assert any(sentence.startswith(f"solver: {name}-") for sentence in said(evaluation))
    own = read_run(log_of(tmp_path, task))
    assert own.setting != "agent" and not any("solver" in sentence for sentence in said(own))


def test_limits_and_options_are_signed(plain: Path, tmp_path: Path) -> None:
    before = read_run(plain)
    after = read_run(log_of(tmp_path, **OPTIONS, model_args=ARGUMENTS | SYSTEM | HARMLESS))
    names = {*OPTIONS, *(f"model_arg_{name}" for name in ARGUMENTS | SYSTEM)}
    for group, line in after.signatures.items():
        assert set(parse(line)[1]) - set(parse(before.signatures[group])[1]) == names and "secret" not in line
    added = said(after) - said(before)
    # the seed has no effect at temperature 0
    assert len(added) == len(OPTIONS) - 1 + len(ARGUMENTS)
    assert not any("seed" in sentence or "revision" in sentence for sentence in added)


def test_an_honest_run_with_its_own_devices_is_official(mirror: Path, tmp_path: Path) -> None:
    arguments = {"config": "dev", "prompt": "official", "scores": "rouge"}
    run = read_run(log_of(tmp_path, task_args=arguments, limit=None, model_args=HARMLESS, max_connections=50))
    assert said(run) == set() and len(run.records) == run.available == 310


def test_a_part_has_another_signature_than_the_whole(plain: Path, tmp_path: Path) -> None:
    two, whole = read_run(plain), read_run(log_of(tmp_path, limit=None))
    answers = [{"id": record.id, "answer": record.answer} for record in whole.records]
    file = qabench.evaluate_predictions("fanoutqa", "sample", answers, lemmatizer="simplemma")
    function = qabench.run("fanoutqa", "sample", lambda question, row: "Mars", limit=2, scores=["rouge"])
    asked = [parse(each.signatures["rouge"])[1]["asked"] for each in (two, whole, file, function)]
    assert asked[0] == asked[3] != asked[1] == asked[2] and asked[1].startswith("12-")
    assert parse(two.signatures["run"])[1]["asked"] != parse(whole.signatures["run"])[1]["asked"]


def test_a_log_cannot_switch_scoring_off(plain: Path, tmp_path: Path) -> None:
    def forge(content: Any) -> None:
        content.eval.metadata["unscored"] = "x"
        for sample in content.samples:
            for score in sample.scores.values():
                score.value = dict.fromkeys(score.value, 1.0)

    honest, forged = read_run(plain), read_run(edited(plain, tmp_path, forge))
    assert forged.unscored is None and forged.problems
    intervals = [{name: score.interval for name, score in each.scores().items()} for each in (forged, honest)]
    assert intervals[0] == intervals[1]


@pytest.mark.parametrize("field", CONTRADICTIONS)
def test_metadata_that_contradicts_the_run_is_refused(field: str, plain: Path, tmp_path: Path) -> None:
    path = edited(plain, tmp_path, lambda content: content.eval.metadata.update({field: "open-book"}))
    with pytest.raises(InputError, match=re.escape(CONTRADICTIONS[field])):
        read_run(path)


def test_another_temperature_in_the_signature_is_not_used(plain: Path, tmp_path: Path) -> None:
    path = edited(plain, tmp_path, lambda content: setattr(content.plan.config, "temperature", 0.7))
    assert parse(read_run(path).signatures["rouge"])[1]["temperature"] == "0.7"


def test_a_question_counts_once(plain: Path, tmp_path: Path) -> None:
    path = edited(plain, tmp_path, lambda log: log.eval.dataset.sample_ids.extend(log.eval.dataset.sample_ids))
    with pytest.raises(InputError, match="is listed several times"):
        read_run(path)


def test_an_answer_counts_for_its_own_epoch(plain: Path, tmp_path: Path) -> None:
    if sys.version_info < (3, 14):
        import zipfile_zstd  # noqa: F401  (adds the compression of Inspect's logs to zipfile)
    forged = tmp_path / "forged.eval"
    with zipfile.ZipFile(plain) as before, zipfile.ZipFile(forged, "w") as after:
        for name in before.namelist():
            data = before.read(name)
            if name == "header.json":
                header = json.loads(data)
                header["eval"]["config"]["epochs"] = 2
                data = json.dumps(header).encode()
            after.writestr(name, data)
            if name.startswith("samples/"):
                after.writestr(name.replace("_epoch_1", "_epoch_2"), data)
    evaluation = read_run(forged)
    assert {record.epoch for record in evaluation.records} == {1}
    assert evaluation.counts()["missing"] == len(evaluation.records)
