"""Compares the messages in a log with the messages that the setting prescribes.

The first messages are rendered again from the dataset's row and the setting, so that an edited log,
or a program that changed the questions, is a deviation even if the log's metadata names the
official prompt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any

from qabench.benchmarks import Setting
from qabench.benchmarks import benchmark as benchmark_of
from qabench.benchmarks.logs import UNKNOWN_TEXT
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
    """Add ``asked_text`` to signatures if questions were not asked as the setting prescribes.

    The field also says if the questions could not be compared. Without it, the first messages of
    every question that was asked are the setting's. Signatures of scores that depend on no model
    never have it.

    Args:
        evaluation: the evaluation of a qabench task's log, from a run with the setting's own
            solver.
        setting: the setting.
        arguments: the task's arguments.
    """
    benchmark = benchmark_of(evaluation.benchmark)
    logs = benchmark.logs()
    groups = _groups_of_model(evaluation, logs.groups_without_model)
    # A question that failed, or was answered without a model, need not have been asked.
    asked = []
    for record in evaluation.records:
        if record.messages and record.status != FAILED and record.replies != 0:
            asked.append(record)
    if not groups or not asked:
        return evaluation
    if arguments.get("questions"):
        # The file may have changed since the run. Its digest is in the signature.
        return _signed(evaluation, groups, NOT_COMPARED + " (custom questions)", IRRELEVANT)
    # Groups with scores come first: their signatures name the prompt that was sent. The others were
    # written before the first call, so they are wrong if the model then rejected tools and got
    # another prompt.
    scored = {spec.group for spec in evaluation.score_specs}
    prompt = None
    for group in sorted(groups, key=lambda group: group not in scored):
        prompt = parse_field(evaluation.signatures[group], "prompt")
        if prompt is not None:
            break
    try:
        render = logs.first_messages(setting, arguments, prompt)
        if render is None:
            return _signed(evaluation, groups, NOT_COMPARED, IRRELEVANT)
        rows = {question.id: question.row for question in benchmark.load(evaluation.config).rows}
        differing = 0
        for record in asked:
            row = rows.get(record.id)
            candidates = [] if row is None else render(row, record)
            if not any(is_sent_as(expected, record.messages) for expected in candidates):
                differing += 1
    except QabenchError as error:
        # Prompts or data may not be available here.
        reason = str(error).partition(":")[0]
        return _signed(evaluation, groups, f"{NOT_COMPARED} ({reason:.80})", IRRELEVANT)
    if differing:
        value = f"{differing} of {len(asked)} questions were not asked with the setting's text"
        return _signed(evaluation, groups, value, _DIFFERS)
    return evaluation


def _groups_of_model(evaluation: Evaluation, without_model: Collection[str]) -> list[str]:
    """Return the signed groups of scores that depend on a model's answers."""
    return [group for group in evaluation.signatures if group not in without_model]


def _signed(evaluation: Evaluation, groups: Sequence[str], value: str, field: Field) -> Evaluation:
    """Return an evaluation whose signatures of these groups have the field ``asked_text``."""
    return evaluation.signed_groups(groups, {ASKED_TEXT: field}, **{ASKED_TEXT: value})


def parse_field(line: str, name: str) -> str | None:
    """Return the value of a field of a signature, or None if ``line`` does not have it."""
    try:
        return parse(line)[1].get(name)
    except QabenchError:
        return None


def is_sent_as(expected: Messages, messages: Sequence[Message]) -> bool:
    """Return whether a conversation begins with these messages. ``UNKNOWN_TEXT`` is any text."""
    # What follows the first reply depends on the model.
    first = list(takewhile(lambda message: message.role != "assistant", messages))
    roles = [message.role for message in first]
    if roles != [role for role, _ in expected]:
        return False
    for (_, text), message in zip(expected, first, strict=True):
        # Messages were sent without lone surrogates, which UTF-8 cannot encode.
        if not _fits(SURROGATE.sub("\ufffd", text), message.text):
            return False
    return True


def _fits(expected: str, text: str) -> bool:
    """Return whether a text matches the expected one. ``UNKNOWN_TEXT`` in it matches any text."""
    fixed_texts = expected.split(UNKNOWN_TEXT)
    if len(fixed_texts) == 1:
        return expected.strip() == text.strip()
    start = fixed_texts[0].lstrip()
    end = fixed_texts[-1].rstrip()
    if not (text.startswith(start) and text.endswith(end) and len(text) >= len(start) + len(end)):
        return False
    # The parts between start and end must occur in order and without overlap.
    position = len(start)
    for fixed_text in fixed_texts[1:-1]:
        position = text.find(fixed_text, position)
        if position < 0:
            return False
        position += len(fixed_text)
    return True


def with_edited_answers(evaluation: Evaluation) -> Evaluation:
    """Add to signatures how many answers are not among the replies in the log, if there are any."""
    logs = benchmark_of(evaluation.benchmark).logs()
    edited = 0
    for record in evaluation.records:
        if record.status == FAILED:
            continue
        texts = logs.scored_replies(record)
        replies = []
        for message in record.messages:
            if message.role == "assistant":
                replies.append(message.text.strip())
        # If a prompt was answered several times, the log has only one of the replies as a message.
        if texts and replies and not any(text.strip() in replies for text in texts):
            edited += 1
    if not edited:
        return evaluation
    groups = _groups_of_model(evaluation, logs.groups_without_model)
    value = f"{edited} of {len(evaluation.records)} are not the model's replies in the log"
    return evaluation.signed_groups(groups, {"answers": _EDITED}, answers=value)
