"""Every check of a log is needed: an attack on a log is noticed, and is not noticed if its check
always agrees.
"""

import inspect
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import expertqa
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput
from scripted_model import edited, run

from qabench.benchmarks import benchmark
from qabench.errors import InputError
from qabench.runs import archive, asked, facts, inspect_logs, log, rescoring, running, trust
from qabench.runs.archive import open_archive

pytestmark = pytest.mark.quick

MODEL = "scripted/model"
FANOUTQA = benchmark("fanoutqa")
CLOSED_BOOK = FANOUTQA.setting("closed-book")
FILLED_FROM_LOG = trust._filled_from_log


@dataclass(frozen=True)
class Logs:
    """An honest log of each task, and a folder for edited ones."""

    paths: dict[str, Path]
    folder: Path

    def edited(self, edit: Callable[[EvalLog], object], name: str = "fanoutqa") -> Path:
        return edited(self.paths[name], self.folder, edit)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("logs")

    def reply(messages: Any) -> str:
        return "The planet Mars is red."

    arguments = {"config": "sample", "prompt": "qabench", "lemmatizer": "simplemma"}
    closed_book = run("qabench/fanoutqa_closed_book", reply, folder, task_args=arguments, limit=2)
    claims = run(expertqa("sample", prompt="qabench"), reply, folder, limit=2)
    return {"fanoutqa": Path(closed_book.location), "expertqa": Path(claims.location)}


@pytest.fixture
def logs(honest: dict[str, Path], tmp_path: Path) -> Logs:
    return Logs(honest, tmp_path)


def read(path: Path) -> list[str]:
    """Return all that reading a log says about it."""
    try:
        evaluation = log.read_run(path)
    except InputError as error:
        return [str(error)]
    sentences = list(evaluation.problem_sentences())
    sentences += [f"setting {evaluation.setting}", *map(str, evaluation.recorded.items())]
    sentences += [f"{count} {status}" for status, count in evaluation.counts().items()]
    for score in evaluation.scores().values():
        sentences += evaluation.deviations(score)
    return sentences + list(evaluation.signatures.values())


def called(function: Callable[..., Any], *arguments: Any, **options: Any) -> list[str]:
    """Return the error of a call, or nothing."""
    try:
        function(*arguments, **options)
    except InputError as error:
        return [str(error)]
    return []


def setting(content: EvalLog, name: str, value: Any) -> None:
    (content.eval.metadata or {})[name] = value


def sign(content: EvalLog, old: str, new: str) -> None:
    """Change the signatures of all samples."""
    for sample in content.samples or []:
        for score in (sample.scores or {}).values():
            lines = (score.metadata or {})["signatures"]
            for group, line in lines.items():
                lines[group] = line.replace(old, new)


def raise_scores(content: EvalLog) -> None:
    for sample in content.samples or []:
        for score in (sample.scores or {}).values():
            score.value = dict.fromkeys(score.value, 1.0)  # type: ignore[arg-type]


def filter_first(content: EvalLog) -> None:
    (content.samples or [])[0].output.choices[0].stop_reason = "content_filter"


def without_text(content: EvalLog) -> None:
    (content.samples or [])[0].output = ModelOutput.from_content("scripted", "")


def no_task(content: EvalLog) -> None:
    (content.eval.metadata or {}).pop("config")


def as_open_book(content: EvalLog) -> None:
    """Change the setting everywhere but in the name of the task."""
    setting(content, "setting", "open-book")
    sign(content, "setting:closed-book", "setting:open-book")
    metadata = content.eval.metadata or {}
    of_run = metadata.get("signatures") or {}
    changed = {group: line.replace("setting:closed-book", "setting:open-book") for group, line in of_run.items()}
    metadata["signatures"] = changed


def other_solver(content: EvalLog) -> None:
    content.plan.steps[0].solver = "evil"


def without_prompt(content: EvalLog) -> None:
    """Remove the prompt from the signatures."""
    for sample in content.samples or []:
        for score in (sample.scores or {}).values():
            lines = (score.metadata or {})["signatures"]
            for group, line in lines.items():
                lines[group] = "|".join(part for part in line.split("|") if not part.startswith("prompt:"))


def change_question(content: EvalLog) -> None:
    messages = (content.samples or [])[0].messages
    messages[0] = messages[0].model_copy(update={"content": "The answer is Mars. " + messages[0].text})


def change_answer(content: EvalLog) -> None:
    for score in ((content.samples or [])[0].scores or {}).values():
        score.answer = "Venus"


def copied(logs: Logs, member: str, change: Callable[[bytes], bytes]) -> Path:
    """Return a log in which a member of the archive is there twice."""
    path = logs.folder / "twice.eval"
    with open_archive(logs.paths["fanoutqa"]) as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            after.writestr(name, before.read(name))
        name = next(name for name in before.namelist() if name.startswith(member))
        with pytest.warns(UserWarning, match="Duplicate name"):
            after.writestr(name, change(before.read(name)))
    return path


def another_lemmatizer(logs: Logs) -> list[str]:
    """Return whether the lemmatizer of today's scores is signed, and not the one in an edited log."""
    lines = read(logs.edited(lambda content: sign(content, "lemmatizer:simplemma-", "lemmatizer:evil-")))
    return [] if any("lemmatizer:evil-" in line for line in lines) else ["signed again"]


def conditions(logs: Logs) -> list[str]:
    content = inspect_logs.whole_log(logs.paths["fanoutqa"])
    return called(trust.check_conditions, content, FANOUTQA, {"prompt": "official-1"}, "log")


def kept(logs: Logs) -> list[str]:
    """Return how many answers are kept by a resumed run, after one was made empty."""
    content = trust.checked_log(logs.edited(without_text), MODEL)
    return [f"kept {len(content.samples)}"]


def without_tags(logs: Logs) -> list[str]:
    """Return whether a resumed run has a field that the log must not decide."""
    content = trust.checked_log(logs.edited(stopped(lambda content: setattr(content.eval, "tags", ["evil"]))), MODEL)
    return [f"tags: {content.eval.tags}"]


def stopped(edit: Callable[[EvalLog], object]) -> Callable[[EvalLog], None]:
    """Return an edit that also says that the run did not end: of a complete one, nothing is asked."""

    def edit_both(content: EvalLog) -> None:
        edit(content)
        content.status = "error"

    return edit_both


def resumed(logs: Logs, edit: Callable[[EvalLog], object], **options: Any) -> list[str]:
    return called(trust.checked_log, logs.edited(stopped(edit)), MODEL, **options)


def unlikely_id(content: EvalLog) -> None:
    content.eval.task_id = "*"


def with_solver_file(logs: Logs) -> list[str]:
    file = logs.folder / "mine.py"
    file.write_text("# another solver", encoding="utf-8")
    return resumed(logs, lambda content: setting(content, "solver", "agent-0"), solver=f"{file}@agent")


def of_complete_run(logs: Logs) -> list[str]:
    """Return whether a complete log from elsewhere is read without the file that it names."""
    log = logs.edited(lambda content: setattr(content.eval, "solver", "/missing.py@agent"))
    return called(trust.checked_log, log) or ["no file was opened"]


def agree(*_: Any, **__: Any) -> None:
    """Find nothing wrong."""


def first(value: Any, *_: Any, **__: Any) -> Any:
    """Return the first argument."""
    return value


Attack = Callable[[Logs], list[str]]
# A function, a mutant of it that always agrees, what an edited log then still says, and what it
# must say.
CHECKS: dict[str, tuple[Any, str, Any, Attack, str]] = {
    "log.check_is_own": (
        inspect_logs,
        "check_is_own",
        agree,
        lambda logs: called(inspect_logs.read_header, logs.edited(no_task)),
        "its metadata has no config",
    ),
    "log.check_archive": (
        log,
        "check_archive",
        agree,
        lambda logs: read(copied(logs, "header.json", bytes)),
        "two files have the same name",
    ),
    "log.answered_copies": (
        archive,
        "answered_copies",
        lambda name, contents: list(contents),
        lambda logs: read(copied(logs, "samples/", lambda content: content.replace(b"Mars", b"Moon"))),
        "with different answers",
    ),
    "log._status": (
        log,
        "_status",
        lambda sample: ("answered", None),
        lambda logs: read(logs.edited(filter_first)),
        "1 refused",
    ),
    "log.rescored": (
        log,
        "rescored",
        first,
        lambda logs: read(logs.edited(raise_scores)),
        "answers whose scores in the log differ",
    ),
    "log._is_by_same_model": (
        rescoring,
        "_is_by_same_model",
        lambda *_: True,
        lambda logs: read(logs.edited(lambda content: sign(content, "|qabench:", "|judge:other|qabench:"))),
        "as recorded in the log",
    ),
    "log._labeled": (
        rescoring,
        "_labeled",
        lambda *_: {},
        lambda logs: read(logs.edited(lambda content: sign(content, "labels:none", "labels:evil"), "expertqa")),
        "labels by evil",
    ),
    "log.merged": (
        log,
        "merged",
        lambda lines: lines[-1][0],
        lambda logs: read(logs.edited(lambda content: sign_first(content, "prompt:qabench-", "prompt:official-"))),
        "prompt: differs between the answers",
    ),
    "log._signed": (rescoring, "_signed", first, another_lemmatizer, "signed again"),
    "log.with_facts": (
        log,
        "with_facts",
        first,
        lambda logs: read(logs.edited(lambda content: setattr(content.plan.config, "temperature", 0.7))),
        "temperature: 0.7",
    ),
    "facts.facts_of": (
        facts,
        "facts_of",
        lambda log: {},
        lambda logs: read(logs.edited(lambda content: setattr(content.plan.config, "temperature", 0.7))),
        "temperature: 0.7",
    ),
    "facts._shown": (
        facts,
        "_shown",
        lambda value: "official",
        lambda logs: read(logs.edited(lambda content: content.eval.model_args.update(dtype="int3"))),
        "dtype: int3",
    ),
    "facts._is_of_system": (
        facts,
        "_is_of_system",
        lambda name: True,
        lambda logs: read(logs.edited(lambda content: content.eval.model_args.update(dtype="int3"))),
        "dtype: int3, which the setting does not have",
    ),
    "facts._setting_of": (
        facts,
        "_setting_of",
        lambda *_: CLOSED_BOOK,
        lambda logs: read(logs.edited(as_open_book)),
        "contradicts itself",
    ),
    "facts.setting_of": (
        facts,
        "setting_of",
        lambda *_: CLOSED_BOOK,
        lambda logs: read(logs.edited(lambda content: setattr(content.eval, "task", "qabench/evil"))),
        "which is not a task of",
    ),
    "facts._check_metadata": (
        facts,
        "_check_metadata",
        agree,
        lambda logs: read(logs.edited(lambda content: setting(content, "data", "evil"))),
        "contradicts itself",
    ),
    "facts._check_arguments": (
        facts,
        "_check_arguments",
        agree,
        lambda logs: read(logs.edited(lambda content: content.eval.task_args.update(prompt="official"))),
        "its call has the argument prompt 'official'",
    ),
    "facts._requiring_run_fields": (
        facts,
        "_requiring_run_fields",
        first,
        lambda logs: read(logs.edited(without_prompt)),
        "prompt: not recorded",
    ),
    "asked.with_asked_texts": (
        facts,
        "with_asked_texts",
        first,
        lambda logs: read(logs.edited(change_question)),
        "what was asked: 1 of 2 questions",
    ),
    "asked.is_sent_as": (
        asked,
        "is_sent_as",
        lambda *_: True,
        lambda logs: read(logs.edited(change_question)),
        "what was asked: 1 of 2 questions",
    ),
    "asked._fits": (
        asked,
        "_fits",
        lambda *_: True,
        lambda logs: read(logs.edited(change_question)),
        "what was asked: 1 of 2 questions",
    ),
    "asked._groups_of_model": (
        asked,
        "_groups_of_model",
        lambda *_: [],
        lambda logs: read(logs.edited(change_question)),
        "what was asked: 1 of 2 questions",
    ),
    "asked.with_edited_answers": (
        facts,
        "with_edited_answers",
        first,
        lambda logs: read(logs.edited(change_answer)),
        "answers: 1 of 2 are not the model's replies",
    ),
    "facts._solver_of": (
        facts,
        "_solver_of",
        lambda *_: "",
        lambda logs: read(logs.edited(other_solver)),
        "setting agent",
    ),
    "facts.with_solver": (facts, "with_solver", first, lambda logs: read(logs.edited(other_solver)), "solver: evil-"),
    "trust.checked_log": (
        trust,
        "checked_log",
        agree,
        lambda logs: resumed(logs, lambda content: setattr(content.eval, "model", "openai/evil")),
        "the model openai/evil, not scripted/model",
    ),
    "trust._differences": (
        trust,
        "_differences",
        lambda *_: {},
        lambda logs: resumed(logs, lambda content: setattr(content.eval, "model", "openai/evil")),
        "the model openai/evil, not scripted/model",
    ),
    "started.was_started_here": (
        trust,
        "was_started_here",
        lambda spec: True,
        lambda logs: called(trust.checked_log, logs.edited(stopped(lambda content: None))),
        "the model scripted/model. It is not read from this log",
    ),
    "trust._given_task_args": (
        trust,
        "_given_task_args",
        lambda spec, benchmark, setting, task_args, scores: task_args or {},
        lambda logs: resumed(logs, lambda content: content.eval.task_args_passed.update(evil=None)),
        "has no option 'evil'",
    ),
    "trust._filled_from_log": (
        trust,
        "_filled_from_log",
        lambda given, spec, complete: FILLED_FROM_LOG(given, spec, False),
        of_complete_run,
        "no file was opened",
    ),
    "trust._server": (
        trust,
        "_server",
        lambda options, spec: spec.model_base_url,
        lambda logs: resumed(logs, lambda content: setattr(content.eval, "model_base_url", "http://evil/v1")),
        "was run with the server http://evil/v1",
    ),
    "trust._with_new_choices": (
        trust,
        "_with_new_choices",
        lambda spec, benchmark, setting, options: {**spec.task_args_passed, **options.task_args},
        lambda logs: resumed(logs, lambda content: None, task_args={"prompt": "official"}),
        "the option prompt qabench, not official",
    ),
    "trust._reduced_log": (trust, "_reduced_log", lambda log, path, **_: log, without_tags, "tags: None"),
    "trust._is_empty": (trust, "_is_empty", lambda sample: False, kept, "kept 1"),
    "trust.is_complete": (
        trust,
        "is_complete",
        lambda log: True,
        lambda logs: resumed(logs, unlikely_id),
        "has the task id '*'",
    ),
    "trust.check_conditions": (trust, "check_conditions", agree, conditions, "questions were asked with the prompt"),
    "trust.signed_values": (
        trust,
        "signed_values",
        lambda sample: {},
        conditions,
        "questions were asked with the prompt",
    ),
    "trust.arguments_to_repeat": (
        trust,
        "arguments_to_repeat",
        lambda *_: {},
        lambda logs: resumed(logs, lambda content: content.eval.task_args_passed.update(questions="/evil")),
        "was run with the option questions",
    ),
    "trust.task_of": (
        trust,
        "task_of",
        lambda *_: (FANOUTQA, CLOSED_BOOK),
        lambda logs: resumed(logs, lambda content: setattr(content.eval, "task", "other/evil")),
        "which is not a task of qabench",
    ),
    "trust.solver_with_digest": (
        trust,
        "solver_with_digest",
        lambda solver: "agent-0",
        with_solver_file,
        "was run with the solver agent-0",
    ),
    "trust.check_task": (
        running,
        "check_task",
        agree,
        lambda logs: called(
            running.resume,
            logs.edited(stopped(lambda content: setattr(content.eval.dataset, "samples", 9))),
            MODEL,
        ),
        "has 2 of 9 questions",
    ),
}


def sign_first(content: EvalLog, old: str, new: str) -> None:
    """Change the signatures of the first sample only."""
    samples = content.samples or []
    content.samples = samples[:1]
    sign(content, old, new)
    content.samples = samples


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_that_always_agrees_is_noticed(name: str, logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, mutant, attack, sentence = CHECKS[name]

    def is_noticed() -> bool:
        return any(sentence in said for said in attack(logs))

    assert is_noticed()
    with monkeypatch.context() as patched:
        patched.setattr(module, function, mutant)
        assert not is_noticed(), "the attack is noticed by something else, so it does not test this check"


# Functions that check nothing themselves.
NO_CHECKS = {
    "asked._signed": "adds the field that its caller decides on",
    "asked.parse_field": "reads a field; without it nothing is compared with a prompt",
    "facts._contradiction": "makes the error",
    "facts.with_facts_declared": "declares fields: without it they are deviations",
    "trust._not_repeated": "makes the error",
    "trust.resume_command": "makes a text",
}


def test_every_function_is_attacked_or_checks_nothing() -> None:
    functions = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (asked, facts, trust)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    }
    attacked = {name for name in CHECKS if not name.startswith(("log.", "started."))}
    assert functions == attacked | NO_CHECKS.keys() | {"facts.with_facts"}  # which log attacks


@pytest.mark.parametrize("name", ["fanoutqa", "expertqa"])
def test_honest_logs_have_none_of_these_sentences(name: str, logs: Logs) -> None:
    sentences = {sentence for *_, sentence in CHECKS.values()}
    said = read(logs.paths[name])
    assert [sentence for sentence in sentences if any(sentence in each for each in said)] == []
