"""ExpertQA's prompts, the authors' and this project's, and how replies to them are read.

The authors' prompts are read at run time from their pinned files. Source: Malaviya et al.,
ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and
https://github.com/chaitanyamalaviya/ExpertQA.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from qabench.errors import MissingExtra
from qabench.loading_scripts import open_path
from qabench.tasks.prompts import DATA_NOT_INSTRUCTIONS, OFFICIAL, Prompt, PromptSource, check_fields

CLOSED = "prompts/qa_prompt.txt"
READ_WEB = "modeling/response_collection/retrieve_and_read.py"
READ_CORPUS = "modeling/response_collection/sphere_and_read.py"
ATOMIC = "modeling/fact_score/break_down_to_atomic_claims.py"
DEMONSTRATIONS = "modeling/fact_score/demos/demons.json"
VERDICT = "modeling/fact_score/factscore.py"
FINE_TUNING = "modeling/lfqa/run_sft_qa.py"
TOP_DEMONSTRATIONS = 7  # the first ones. The one that is most similar to the sentence is added

OWN_CLOSED = Prompt(
    "qabench",
    """Answer the question for a reader who knows the field. Support every statement with a source: put its number in
square brackets at the end of the sentence, such as [1] or [2][3]. After the answer, list the sources, one per line.
Each line begins with the number in brackets and names an address or a publication, such as:

[1] https://example.org/page

Question: {question}""",
)
OWN_READ = Prompt(
    "qabench",
    f"""Answer the question for a reader who knows the field. Use only the numbered passages, and write at most 500
words. End every sentence with the numbers of the passages that support it, in square brackets, such as [1] or [2][3].
Do not list the passages. If they do not contain the answer, say so.

<passages>
{{passages}}
</passages>

{DATA_NOT_INSTRUCTIONS}

Question: {{question}}""",
)

MARK = re.compile(r"\[(\d{1,4})\]")
_LIST = re.compile(r"\n[ \t]*(?=(?:[-*•][ \t]*)?\[1\])")
_HEADING = re.compile(
    r"[\W_]*(?:references?|sources?|citations?|works cited|bibliography)[\W_]*", re.IGNORECASE
)
_ENTRY = re.compile(r"\n[-*• \t]*(?=\[\d{1,4}\])")


@cache
def closed_prompt() -> Prompt:
    """Return the authors' prompt of the system gpt4.

    Its fields are field and question.
    """
    text = open_path("expertqa", CLOSED).read_text(encoding="utf-8")
    return _checked(
        text.replace("[FIELD]", "{field}").replace("[QUESTION]", "{question}"), "field", "question"
    )


@cache
def web_prompt() -> Prompt:
    """Return the authors' prompt for passages from the web.

    Its fields are context, field and question.
    """
    template = _source(READ_WEB).assigned("prompt_template").replace("{question}", web_question().user)
    return _checked(template, "context", "field", "question")


@cache
def web_question() -> Prompt:
    """Return the question with the expert's field, by which the authors rank passages from the web."""
    fields = {"example.metadata.field": "field", "query_text": "question"}
    return _checked(_source(READ_WEB).assigned("gpt_query_text", fields=fields), "field", "question")


@cache
def corpus_prompt() -> Prompt:
    """Return the authors' prompt for passages from a corpus, with its indented lines.

    Fields: context, question.
    """
    return _checked(_source(READ_CORPUS).assigned("prompt_template"), "context", "question")


def context(passages: Sequence[str], *, web: bool) -> str:
    """Return passages as they are inserted into ``web_prompt`` or ``corpus_prompt``."""
    return "Context: \n" + ("\n\n" if web else "\n").join(numbered(passages))


def numbered(passages: Sequence[str]) -> list[str]:
    """Return passages as the authors write them: "Passage ID 1: ...", without line breaks."""
    return [f"Passage ID {n}: " + text.replace("\n", "") for n, text in enumerate(passages, start=1)]


@dataclass(frozen=True)
class AtomicPrompt:
    """The authors' prompt that splits a sentence into atomic facts: {sentence}, {fact}, and sentence -> its facts."""

    instruction: Prompt
    fact: Prompt
    demonstrations: Mapping[str, Sequence[str]]

    @property
    def label(self) -> str:
        """Return the name and a digest of all parts, for signatures."""
        return Prompt(
            OFFICIAL, json.dumps([self.instruction.user, self.fact.user, self.demonstrations])
        ).label


@cache
def atomic_parts() -> AtomicPrompt:
    """Return the parts of the authors' prompt for atomic facts."""
    source = _source(ATOMIC)
    within = "AtomicFactGenerator.get_init_atomic_facts_from_sentence"
    # prompt = prompt + "...{}\n".format(...): the last such assignment is the instruction, the
    # second is a fact.
    instruction = source.assigned("prompt", within, fields={"prompt": "before"}, nth=-1)
    fact = source.assigned("prompt", within, fields={"prompt": "before"}, nth=2)
    demonstrations = json.loads(open_path("expertqa", DEMONSTRATIONS).read_text(encoding="utf-8"))
    sentence = _checked(instruction.removeprefix("{before}"), "sentence")
    return AtomicPrompt(sentence, _checked(fact.removeprefix("{before}"), "fact"), demonstrations)


def atomic_prompt(sentence: str) -> str:
    """Return the authors' prompt for a sentence's atomic facts: 7 demonstrations, the most similar one, the sentence.

    Raises MissingExtra without the package rank-bm25, and SourceError without the authors' files.
    """
    parts = atomic_parts()
    sentences = list(parts.demonstrations)
    nearest = _ranking().get_top_n(sentence.split(" "), sentences, 1)
    demonstrations = [
        parts.instruction.filled(sentence=text)
        + "".join(parts.fact.filled(fact=fact) for fact in parts.demonstrations[text])
        for text in [*sentences[:TOP_DEMONSTRATIONS], *nearest]
    ]
    return "\n".join([*demonstrations, parts.instruction.filled(sentence=sentence)]).strip()


@cache
def verdict_parts() -> tuple[Prompt, Prompt]:
    """Return the authors' prompt for a verdict: the definition (field: field), and the whole (definition, claim)."""
    source = _source(VERDICT)
    definition = source.assigned("definition", "get_score", fields={"topic": "field"})
    names = {"definition.strip()": "definition", "atomic_claim.strip()": "claim"}
    whole = source.assigned("prompt", "get_score", fields=names)
    return _checked(definition, "field"), _checked(whole, "definition", "claim")


def verdict_label() -> str:
    """Return the name and a digest of the prompt for a verdict, for signatures."""
    return Prompt(OFFICIAL, "".join(part.user for part in verdict_parts())).label


def verdict_prompt(atomic_claim: str, evidence: str, field: str) -> str:
    """Return the authors' prompt for the verdict on an atomic claim.

    Empty evidence leaves a full stop, as upstream.
    """
    definition, whole = verdict_parts()
    text = definition.filled(field=field) + evidence.strip()
    if text[-1] not in string.punctuation:
        text += "."
    return whole.filled(definition=text.strip(), claim=atomic_claim.strip()).strip()


@cache
def fine_tuning_prompt() -> Prompt:
    """Return the prompt with which the authors fine-tuned Llama 2 and Vicuna, with special tokens.

    Field: question.

    The authors' file defines two more prompts (Alpaca's and Vicuna's) that its code does not use.
    """
    return _checked(
        _source(FINE_TUNING).assigned("llama2_prompt").replace("[QUESTION]", "{question}"), "question"
    )


def official_list(reply: str) -> list[str]:
    """Return the entries of a reply as upstream reads them: after each "- ".

    The last entry ends with a full stop.
    """
    entries = [entry.strip() for entry in reply.split("- ")[1:] if entry.strip()]
    if entries and not entries[-1].endswith("."):
        entries[-1] += "."
    return entries


def split_answer(reply: str) -> tuple[str, list[str]]:
    """Split a reply into the answer and its sources, which start at the first later line that begins with "[1]".

    A heading such as "References:" before the list belongs to neither. An entry ends where the next
    entry begins.
    """
    answer, *lists = _LIST.split(reply.strip(), maxsplit=1)
    if not lists:
        return answer, []
    answer = answer.rstrip()
    before, _, last_line = answer.rpartition("\n")
    if before and _HEADING.fullmatch(last_line):
        answer = before.rstrip()
    entries = _ENTRY.split("\n" + lists[0])[1:]
    lines = ([line.strip() for line in entry.splitlines()] for entry in entries)
    return answer, ["\n".join(filter(None, own)) for own in lines]


def _source(file: str) -> PromptSource:
    return PromptSource(open_path("expertqa", file))


def _checked(template: str, *fields: str) -> Prompt:
    return check_fields(Prompt(OFFICIAL, template), set(fields))


@cache
def _ranking() -> Any:
    """Return BM25 over the sentences of the demonstrations."""
    try:
        from rank_bm25 import BM25Okapi
    except ImportError:
        raise MissingExtra(
            "the authors' prompt for atomic facts needs rank-bm25: pip install 'qabench[retrieval]'"
        ) from None
    return BM25Okapi([text.split(" ") for text in atomic_parts().demonstrations])
