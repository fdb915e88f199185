"""The prompts of ExpertQA's authors, read at run time from their pinned files.

Source: https://github.com/chaitanyamalaviya/ExpertQA.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qabench.errors import InputError, SourceUnavailable
from qabench.loading_scripts import open_path
from qabench.tasks.prompt_source import PromptSource
from qabench.tasks.prompts import FIELD, Prompt, check_fields

OFFICIAL, QABENCH, AUTO = "official", "qabench", "auto"
CLOSED = "prompts/qa_prompt.txt"
CLAIMS = "prompts/claims_prompt.txt"
READ_WEB = "modeling/response_collection/retrieve_and_read.py"
READ_CORPUS = "modeling/response_collection/sphere_and_read.py"
ATOMIC = "modeling/fact_score/break_down_to_atomic_claims.py"
DEMONSTRATIONS = "modeling/fact_score/demos/demons.json"
VERDICT = "modeling/fact_score/factscore.py"
FINE_TUNING = "modeling/lfqa/run_sft_qa.py"


@functools.cache
def closed() -> Prompt:
    """The prompt of the system gpt4; its fields are field and question."""
    return _of_text(CLOSED, {"[FIELD]": "{field}", "[QUESTION]": "{question}"})


@functools.cache
def read_web() -> Prompt:
    """The prompt for passages from the web; its fields are context, field and question."""
    source = PromptSource(open_path("expertqa", READ_WEB))
    template = source.assigned("prompt_template").replace("{question}", web_question().user)
    return check_fields(Prompt(OFFICIAL, template), {"context", "field", "question"})


@functools.cache
def web_question() -> Prompt:
    """The question with the expert's field, which passages from the web are ranked by; fields: field, question."""
    source = PromptSource(open_path("expertqa", READ_WEB))
    asked = source.assigned("gpt_query_text", fields={"example.metadata.field": "field", "query_text": "question"})
    return check_fields(Prompt(OFFICIAL, asked), {"field", "question"})


@functools.cache
def read_corpus() -> Prompt:
    """The prompt for passages from a corpus, with its indented lines; its fields are context and question."""
    template = PromptSource(open_path("expertqa", READ_CORPUS)).assigned("prompt_template")
    return check_fields(Prompt(OFFICIAL, template), {"context", "question"})


def context(passages: Sequence[str], *, web: bool) -> str:
    """Passages as they are inserted into ``read_web`` or ``read_corpus``."""
    numbered = [f"Passage ID {n}: " + text.replace("\n", "") for n, text in enumerate(passages, start=1)]
    return "Context: \n" + ("\n\n" if web else "\n").join(numbered)


@functools.cache
def claims() -> Prompt:
    """The prompt that splits a sentence into claims; its field is sentence."""
    return _of_text(CLAIMS, {"[SENTENCE]": "{sentence}"})


@dataclass(frozen=True)
class AtomicPrompt:
    """The parts of the prompt that splits a sentence into atomic facts.

    Attributes:
        instruction: its field is sentence.
        fact: one fact of a demonstration; its field is fact.
        demonstrations: sentence -> its facts, in the order of the file.
    """

    instruction: Prompt
    fact: Prompt
    demonstrations: Mapping[str, Sequence[str]]

    @property
    def label(self) -> str:
        """The name and a digest of all parts, for signatures."""
        return Prompt(OFFICIAL, json.dumps([self.instruction.user, self.fact.user, self.demonstrations])).label


@functools.cache
def atomic() -> AtomicPrompt:
    """The parts of the prompt for atomic facts."""
    source = PromptSource(open_path("expertqa", ATOMIC))
    within = "AtomicFactGenerator.get_init_atomic_facts_from_sentence"
    # prompt = prompt + "...{}\n".format(...): the last such assignment is the instruction, the second is a fact.
    instruction = source.assigned("prompt", within, fields={"prompt": "before"}, nth=-1)
    fact = source.assigned("prompt", within, fields={"prompt": "before"}, nth=2)
    path = open_path("expertqa", DEMONSTRATIONS)
    try:
        demonstrations = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the demonstrations {path}: {error}") from None
    return AtomicPrompt(
        check_fields(Prompt(OFFICIAL, instruction.removeprefix("{before}")), {"sentence"}),
        check_fields(Prompt(OFFICIAL, fact.removeprefix("{before}")), {"fact"}),
        demonstrations,
    )


@functools.cache
def verdict() -> tuple[Prompt, Prompt]:
    """The definition (field: field) and the whole prompt (fields: definition, claim) for the verdict on a fact."""
    source = PromptSource(open_path("expertqa", VERDICT))
    definition = source.assigned("definition", "get_score", fields={"topic": "field"})
    names = {"definition.strip()": "definition", "atomic_claim.strip()": "claim"}
    whole = source.assigned("prompt", "get_score", fields=names)
    return (
        check_fields(Prompt(OFFICIAL, definition), {"field"}),
        check_fields(Prompt(OFFICIAL, whole), {"definition", "claim"}),
    )


@functools.cache
def fine_tuning() -> Prompt:
    """The prompt with which the authors fine-tuned Llama 2 and Vicuna, with its special tokens; its field is question.

    The authors' file defines two more prompts (Alpaca's and Vicuna's) that its code does not use.
    """
    template = PromptSource(open_path("expertqa", FINE_TUNING)).assigned("llama2_prompt")
    return check_fields(Prompt(OFFICIAL, template.replace("[QUESTION]", "{question}")), {"question"})


def chosen_prompt(prompt: str, *files: str) -> str:
    """ "official" or "qabench" for a prompt argument; "auto" is official if the authors' files are available.

    Raises:
        InputError: another value.
        SourceError: "official", and a file is not available or has changed.
    """
    if prompt not in (OFFICIAL, QABENCH, AUTO):
        raise InputError(f"the prompt is {prompt!r}; allowed: official, qabench, auto (official if available)")
    if prompt == QABENCH:
        return QABENCH
    try:
        for file in files:
            open_path("expertqa", file)
    except SourceUnavailable:
        if prompt == OFFICIAL:
            raise
        return QABENCH
    return OFFICIAL


def chosen_protocol(protocol: str, prompt: str) -> str:
    """ "official" or "qabench"; "auto" is the same as the prompt. Raises InputError for another value."""
    if protocol not in (OFFICIAL, QABENCH, AUTO):
        raise InputError(f"the protocol is {protocol!r}; allowed: official, qabench, auto (as the prompt)")
    return prompt if protocol == AUTO else protocol


def _of_text(file: str, fields: Mapping[str, str]) -> Prompt:
    path = open_path("expertqa", file)
    text = path.read_text(encoding="utf-8")
    if FIELD.search(text) or not all(mark in text for mark in fields):
        raise InputError(f"{path} is not the authors' prompt: it must have {', '.join(fields)} and no field in braces")
    for mark, field in fields.items():
        text = text.replace(mark, field)
    return Prompt(OFFICIAL, text)
