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
from qabench.loading_scripts import dataset_table
from qabench.prompts.authors import PromptSource
from qabench.prompts.prompt import (
    DATA_NOT_INSTRUCTIONS,
    OFFICIAL,
    Prompt,
    check_fields,
)

CLOSED = "prompts/qa_prompt.txt"
READ_WEB = "modeling/response_collection/retrieve_and_read.py"
READ_CORPUS = "modeling/response_collection/sphere_and_read.py"
ATOMIC = "modeling/fact_score/break_down_to_atomic_claims.py"
DEMONSTRATIONS = "modeling/fact_score/demos/demons.json"
VERDICT = "modeling/fact_score/factscore.py"
FINE_TUNING = "modeling/lfqa/run_sft_qa.py"
# The authors' prompt shows this many demonstrations, and the one most similar to the sentence.
FIRST_DEMONSTRATIONS = 7

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
# The list of sources begins at a line with the mark [1], which may have a bullet before it.
_LIST = re.compile(r"\n[ \t]*(?=(?:[-*•][ \t]*)?\[1\])")
_HEADING = re.compile(
    r"[\W_]*(?:references?|sources?|citations?|works cited|bibliography)[\W_]*", re.IGNORECASE
)
_ENTRY = re.compile(r"\n[-*• \t]*(?=\[\d{1,4}\])")


@cache
def closed_prompt() -> Prompt:
    """Return the authors' prompt for the system gpt4. Its fields are field and question."""
    text = dataset_table("expertqa").open_path(CLOSED).read_text(encoding="utf-8")
    return _checked(
        text.replace("[FIELD]", "{field}").replace("[QUESTION]", "{question}"), "field", "question"
    )


@cache
def web_prompt() -> Prompt:
    """Return the authors' prompt for web passages. Its fields are context, field and question."""
    template = _source(READ_WEB).assigned("prompt_template")
    # In the script, {question} is filled with a sentence that contains the expert's field and the
    # question.
    template = template.replace("{question}", web_question().user)
    return _checked(template, "context", "field", "question")


@cache
def web_question() -> Prompt:
    """Return the template of a question with the expert's field. The authors rank web passages by it."""
    fields = {"example.metadata.field": "field", "query_text": "question"}
    template = _source(READ_WEB).assigned("gpt_query_text", fields=fields)
    return _checked(template, "field", "question")


@cache
def corpus_prompt() -> Prompt:
    """Return the authors' prompt for corpus passages. Its fields are context and question."""
    # In the script, all lines of this prompt but the first are indented, and are sent that way.
    return _checked(_source(READ_CORPUS).assigned("prompt_template"), "context", "question")


def context(passages: Sequence[str], *, web: bool) -> str:
    """Return passages as they are inserted into ``web_prompt`` or ``corpus_prompt``."""
    # The authors' two scripts join passages in different ways.
    separator = "\n\n" if web else "\n"
    return "Context: \n" + separator.join(numbered(passages))


def numbered(passages: Sequence[str]) -> list[str]:
    """Return passages in the authors' format: "Passage ID 1: ...", without line breaks."""
    lines = []
    for number, text in enumerate(passages, start=1):
        # As in the authors' script, words around a line break are joined without a space.
        lines.append(f"Passage ID {number}: " + text.replace("\n", ""))
    return lines


@dataclass(frozen=True)
class AtomicPrompt:
    """The authors' prompt that splits a sentence into atomic facts.

    Attributes:
        instruction: the instruction, with the field {sentence}.
        fact: the line for one fact of a demonstration, with the field {fact}.
        demonstrations: the demonstrations, which map sentences to their facts.
    """

    instruction: Prompt
    fact: Prompt
    demonstrations: Mapping[str, Sequence[str]]

    @property
    def label(self) -> str:
        """Return the name and a digest of all parts, for signatures."""
        parts = [self.instruction.user, self.fact.user, self.demonstrations]
        return Prompt(OFFICIAL, json.dumps(parts)).label

    def demonstration(self, sentence: str) -> str:
        """Return a sentence with its facts, as the prompt shows them."""
        text = self.instruction.filled(sentence=sentence)
        for fact in self.demonstrations[sentence]:
            text += self.fact.filled(fact=fact)
        return text


@cache
def atomic_parts() -> AtomicPrompt:
    """Return the parts of the authors' prompt for atomic facts."""
    source = _source(ATOMIC)
    within = "AtomicFactGenerator.get_init_atomic_facts_from_sentence"
    # The script builds the prompt by assignments prompt = prompt + "...{}\n".format(...). The last
    # assignment appends the instruction, and the third one appends a fact.
    instruction = source.assigned("prompt", within, fields={"prompt": "before"}, nth=-1)
    fact = source.assigned("prompt", within, fields={"prompt": "before"}, nth=2)
    demonstrations = json.loads(
        dataset_table("expertqa").open_path(DEMONSTRATIONS).read_text(encoding="utf-8")
    )
    sentence = _checked(instruction.removeprefix("{before}"), "sentence")
    return AtomicPrompt(sentence, _checked(fact.removeprefix("{before}"), "fact"), demonstrations)


def atomic_prompt(sentence: str) -> str:
    """Return the authors' prompt for a sentence's atomic facts.

    The prompt has the first 7 demonstrations, the demonstration with the most similar sentence, and
    the sentence. Raises MissingExtra without the package rank-bm25, and SourceError without the
    authors' files.
    """
    parts = atomic_parts()
    sentences = list(parts.demonstrations)
    nearest = _ranking().get_top_n(sentence.split(" "), sentences, 1)
    shown = [*sentences[:FIRST_DEMONSTRATIONS], *nearest]
    blocks = [parts.demonstration(text) for text in shown]
    blocks.append(parts.instruction.filled(sentence=sentence))
    return "\n".join(blocks).strip()


@cache
def verdict_parts() -> tuple[Prompt, Prompt]:
    """Return the authors' prompt for a verdict in two parts, the definition and the rest.

    The definition has the field {field}, and the rest has {definition} and {claim}. The parts are
    separate because evidence and a period are appended to the definition.
    """
    source = _source(VERDICT)
    definition = source.assigned("definition", "get_score", fields={"topic": "field"})
    names = {"definition.strip()": "definition", "atomic_claim.strip()": "claim"}
    whole = source.assigned("prompt", "get_score", fields=names)
    return _checked(definition, "field"), _checked(whole, "definition", "claim")


def verdict_label() -> str:
    """Return the name and a digest of the prompt for a verdict, for signatures."""
    return Prompt(OFFICIAL, "".join(part.user for part in verdict_parts())).label


def verdict_prompt(atomic_claim: str, evidence: str, field: str) -> str:
    """Return the authors' prompt for the verdict on an atomic claim."""
    definition, whole = verdict_parts()
    text = definition.filled(field=field) + evidence.strip()
    # As in the authors' script, missing evidence leaves a lone period.
    if text[-1] not in string.punctuation:
        text += "."
    return whole.filled(definition=text.strip(), claim=atomic_claim.strip()).strip()


@cache
def fine_tuning_prompt() -> Prompt:
    """Return the prompt with which the authors fine-tuned Llama 2 and Vicuna, with special tokens.

    Its field is question. The authors' file defines two more prompts (Alpaca's and Vicuna's) that
    its code does not use.
    """
    template = _source(FINE_TUNING).assigned("llama2_prompt")
    return _checked(template.replace("[QUESTION]", "{question}"), "question")


def official_list(reply: str) -> list[str]:
    """Split a reply at "- " into the entries of its list, as the authors' script does."""
    entries = []
    # The script ignores line breaks, so a "- " within a sentence also begins an entry.
    for part in reply.split("- ")[1:]:
        entry = part.strip()
        # The script fails on an entry without text.
        if entry:
            entries.append(entry)
    # The script adds a period to the last entry, which the token limit may have cut off.
    if entries and not entries[-1].endswith("."):
        entries[-1] += "."
    return entries


def split_answer(reply: str) -> tuple[str, list[str]]:
    """Split a reply into the answer and its sources.

    The sources start at the first line that begins with "[1]", except for the reply's first line. A
    heading such as "References:" before them is dropped. A source ends where the next one begins.
    """
    answer, *lists = _LIST.split(reply.strip(), maxsplit=1)
    if not lists:
        return answer, []
    answer = answer.rstrip()
    before, _, last_line = answer.rpartition("\n")
    if before and _HEADING.fullmatch(last_line):
        answer = before.rstrip()
    sources = []
    for entry in _ENTRY.split("\n" + lists[0])[1:]:
        # Blank lines are dropped, because paragraphs of evidence are read separately.
        lines = filter(None, map(str.strip, entry.splitlines()))
        sources.append("\n".join(lines))
    return answer, sources


def _source(file: str) -> PromptSource:
    return PromptSource(dataset_table("expertqa").open_path(file))


def _checked(template: str, *fields: str) -> Prompt:
    return check_fields(Prompt(OFFICIAL, template), set(fields))


@cache
def _ranking() -> Any:
    """Return a BM25 index of the demonstrations' sentences."""
    try:
        from rank_bm25 import BM25Okapi
    except ImportError:
        raise MissingExtra(
            "the authors' prompt for atomic facts needs rank-bm25: pip install 'qabench[retrieval]'"
        ) from None
    return BM25Okapi([text.split(" ") for text in atomic_parts().demonstrations])
