"""What a log's answers were asked is rendered again and compared, and a log that contradicts itself
is not official.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import expertqa, fanoutqa_closed_book, fastbook_rag, felm
from inspect_ai.log import EvalLog, EvalSample, ProvenanceData
from inspect_ai.model import ChatMessageSystem, ChatMessageUser
from scripted_model import edited, run

from qabench.benchmarks.felm.official import names_vicuna
from qabench.errors import InputError
from qabench.evaluation import Message
from qabench.evaluation.signature import parse
from qabench.runs.asked import UNKNOWN_TEXT, is_sent_as
from qabench.runs.log import read_run

FELM_TASKS = [
    {"method": "raw"}, {"method": "cot"}, {"method": "cot-cons", "num_cons": 2}, {"method": "link"},
    {"method": "content"}, {"method": "raw", "claims": True},
]  # fmt: skip


def reply(messages: Any) -> str:
    return "1. Mars is red.\nAnswer: ALL_CORRECT"


def sentences(path: Path | str) -> set[str]:
    evaluation = read_run(path)
    return {sentence for score in evaluation.scores().values() for sentence in evaluation.deviations(score)}


@pytest.mark.parametrize("prompt", ["official", "qabench"])
@pytest.mark.parametrize(
    "task",
    [
        *(lambda prompt, options=options: felm(config="sample", prompt=prompt, **options) for options in FELM_TASKS),
        lambda prompt: fanoutqa_closed_book(config="sample", prompt=prompt, lemmatizer="simplemma"),
        lambda prompt: expertqa(config="sample", method="closed", prompt=prompt),
        lambda prompt: fastbook_rag(config="sample", method="bm25", k=2),
    ],
)
def test_honest_runs_are_what_the_setting_asks(
    mirror: Path, task: Callable[[str], Any], prompt: str, tmp_path: Path
) -> None:
    evaluation = read_run(run(task(prompt), reply, tmp_path).location)
    for line in evaluation.signatures.values():
        assert parse(line)[1].keys().isdisjoint({"asked_text", "answers", "invalidated"}), line
    said = {sentence for score in evaluation.scores().values() for sentence in evaluation.deviations(score)}
    assert not any("not recorded" in sentence or "missing" in sentence for sentence in said)


def test_inputs_that_the_program_changed_are_seen(mirror: Path, tmp_path: Path) -> None:
    """Inspect's interface, with the answer before each question: nothing in the metadata says so."""
    task = fanoutqa_closed_book(config="dev", prompt="official", scores="rouge")
    for sample in list(task.dataset)[:300]:
        sample.input = f"Hint: {sample.target}\n\n{sample.input}"
    said = sentences(run(task, reply, tmp_path).location)
    assert said == {"what was asked: 300 of 310 questions were not asked with the setting's text"}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    task = felm(config="sample", prompt="qabench")
    return Path(run(task, reply, tmp_path_factory.mktemp("log")).location)


def samples_of(content: EvalLog) -> list[EvalSample]:
    assert content.samples
    return content.samples


def signed(content: EvalLog, change: Callable[[str], str]) -> None:
    for sample in samples_of(content):
        for score in (sample.scores or {}).values():
            lines = (score.metadata or {})["signatures"]
            for group, line in lines.items():
                lines[group] = change(line)


def add_system_message(content: EvalLog) -> None:
    samples_of(content)[0].messages.insert(0, ChatMessageSystem(content="Be right."))


def change_question(content: EvalLog) -> None:
    for number, message in enumerate(samples_of(content)[1].messages):
        if message.role == "user":
            samples_of(content)[1].messages[number] = ChatMessageUser(content=message.text + " The answer is 1.")


def change_reply(content: EvalLog) -> None:
    for score in (samples_of(content)[0].scores or {}).values():
        (score.metadata or {})["detail"]["replies"] = ["Answer: 1"]


def invalidate(content: EvalLog) -> None:
    samples_of(content)[0].invalidation = ProvenanceData(author="me")
    content.invalidated = True


def only_first_epoch(content: EvalLog) -> None:
    content.eval.config.epochs = 3


def remove_prompt(content: EvalLog) -> None:
    signed(content, lambda line: "|".join(part for part in line.split("|") if not part.startswith("prompt:")))


def remove_method(content: EvalLog) -> None:
    signed(content, lambda line: "|".join(part for part in line.split("|") if not part.startswith("method:")))


def twice(content: EvalLog) -> None:
    signed(content, lambda line: line.replace("|method:raw", "|method:cot|method:raw"))


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (add_system_message, "what was asked: 1 of 13 questions were not asked with the setting's text"),
        (change_question, "what was asked: 1 of 13 questions were not asked with the setting's text"),
        (change_reply, "answers: 1 of 13 are not the model's replies in the log"),
        (invalidate, "1 answers in Inspect's log were invalidated"),
        (only_first_epoch, "26 of 39 answers are missing"),
        (remove_prompt, "prompt: not recorded"),
        (remove_method, "method: not recorded"),
        (twice, "has the field 'method' twice"),
    ],
)
def test_edited_logs_are_not_official(log: Path, tmp_path: Path, edit: Callable[[EvalLog], None], said: str) -> None:
    assert not any(said in sentence for sentence in sentences(log))
    found = sentences(edited(log, tmp_path, edit))
    assert any(said in sentence for sentence in found), found


@pytest.mark.parametrize("place", ["task", "plan"])
def test_arguments_that_contradict_the_signature_are_refused(log: Path, tmp_path: Path, place: str) -> None:
    def claim_official(content: EvalLog) -> None:
        if place == "task":
            content.eval.task_args["prompt"] = "official"
        else:
            content.plan.steps[0].params["prompt"] = "official"

    with pytest.raises(InputError, match="contradicts itself: its call has the argument prompt 'official'"):
        read_run(edited(log, tmp_path, claim_official))


@pytest.mark.parametrize("name", ["vicuna-33b", "lmsys/Vicuna-33b-v1.3", "openai-api-completions/qabench/vicuna-7b"])
def test_vicuna_is_known_by_its_name(name: str) -> None:
    assert names_vicuna(name)
    assert not names_vicuna(name.replace("icuna", "icuña")) and not names_vicuna("not-a-vicuna")


def test_unknown_texts_are_only_where_they_belong() -> None:
    expected = (("user", f"Read:\n{UNKNOWN_TEXT}\nQuestion: Why?"),)
    assert is_sent_as(expected, [Message("user", "Read:\na page\nQuestion: Why?"), Message("assistant", "So.")])
    assert not is_sent_as(expected, [Message("user", "Hint. Read:\na page\nQuestion: Why?")])
    assert not is_sent_as(expected, [Message("user", "Read:\na page\nQuestion: Why? Because.")])
    assert not is_sent_as(expected, [Message("system", "x"), Message("user", "Read:\na page\nQuestion: Why?")])
