"""Compares what the answers of a log were asked with what their setting asks.

The first messages are rendered again from the dataset's row and the setting, so that an edited log,
or a program that changed the questions, is a deviation even though its metadata names the official
prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from qabench.benchmarks import Setting, benchmark
from qabench.benchmarks.base import UNKNOWN_TEXT
from qabench.errors import QabenchError
from qabench.evaluation import FAILED, Evaluation, Message
from qabench.evaluation.scoring import Messages
from qabench.evaluation.signature import IRRELEVANT, Field, parse
from qabench.llm.exchange import SURROGATE

ASKED_TEXT = "asked_text"
_DIFFERS = Field((), "what was asked: {value}", absent=True)
_EDITED = Field((), "answers: {value}", absent=True)
NOT_COMPARED = "not compared"


def with_asked_texts(
    evaluation: Evaluation, setting: Setting, arguments: Mapping[str, Any]
) -> Evaluation:
    """Return the evaluation of a run with the field ``asked_text`` in its signatures, if it says something.

    Without the field, every text that was sent first is what the setting asks.

    Args:
        evaluation: of a log of a task of qabench, with the setting's own solver.
        setting: the setting.
        arguments: the task's arguments.
    """
    scorer = benchmark(evaluation.benchmark)
    groups = [group for group in evaluation.signatures if group not in scorer.groups_without_model]
    asked = [
        record
        for record in evaluation.records
        if record.messages and record.status != FAILED and record.replies != 0
    ]
    if not groups or not asked:
        return evaluation
    if arguments.get("questions"):  # the file may be another one today; its digest is signed
        return _signed(evaluation, groups, NOT_COMPARED + " (custom questions)", IRRELEVANT)
    labels = {parse_field(evaluation.signatures[group], "prompt") for group in groups} - {None}
    try:
        render = scorer.first_messages(setting, arguments, next(iter(labels), None))
        if render is None:
            return _signed(evaluation, groups, NOT_COMPARED, IRRELEVANT)
        rows = {question.id: question.row for question in scorer.load(evaluation.config).rows}
        differing = 0
        for record in asked:
            row = rows.get(record.id)
            candidates = [] if row is None else render(row, record)
            if not any(is_sent_as(expected, record.messages) for expected in candidates):
                differing += 1
    except QabenchError as error:  # such as prompts or data that are not available here
        reason = str(error).partition(":")[0]
        return _signed(evaluation, groups, f"{NOT_COMPARED} ({reason:.80})", IRRELEVANT)
    if differing:
        value = f"{differing} of {len(asked)} questions were not asked with the setting's text"
        return _signed(evaluation, groups, value, _DIFFERS)
    return evaluation


def _signed(evaluation: Evaluation, groups: Sequence[str], value: str, field: Field) -> Evaluation:
    return evaluation.signed_groups(groups, {ASKED_TEXT: field}, **{ASKED_TEXT: value})


def parse_field(line: str, name: str) -> str | None:
    """Return the value of a field of a signature, or None without it and for a text that is not a signature."""
    try:
        return parse(line)[1].get(name)
    except QabenchError:
        return None


def is_sent_as(expected: Messages, messages: Sequence[Message]) -> bool:
    """Return whether a conversation begins with these messages. ``UNKNOWN_TEXT`` stands for any text."""
    first = list(takewhile(lambda message: message.role != "assistant", messages))
    if [message.role for message in first] != [role for role, _ in expected]:
        return False
    return all(
        _fits(SURROGATE.sub("\ufffd", text), message.text)
        for (_, text), message in zip(expected, first, strict=True)
    )


def _fits(expected: str, text: str) -> bool:
    parts = expected.split(UNKNOWN_TEXT)
    if len(parts) == 1:
        return expected.strip() == text.strip()
    start, end = parts[0].lstrip(), parts[-1].rstrip()
    if not (text.startswith(start) and text.endswith(end) and len(text) >= len(start) + len(end)):
        return False
    place = len(start)
    for part in parts[1:-1]:
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def with_edited_answers(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with a deviation for answers that are not what the model replied in the log."""
    scorer = benchmark(evaluation.benchmark)
    edited = 0
    for record in evaluation.records:
        texts = scorer.scored_replies(record) if record.status != FAILED else []
        replies = [message.text.strip() for message in record.messages if message.role == "assistant"]
        # Of several replies to one prompt, the log has one as a message.
        if texts and replies and not any(text.strip() in replies for text in texts):
            edited += 1
    if not edited:
        return evaluation
    groups = [group for group in evaluation.signatures if group not in scorer.groups_without_model]
    value = f"{edited} of {len(evaluation.records)} are not the model's replies in the log"
    return evaluation.signed_groups(groups, {"answers": _EDITED}, answers=value)
