"""How ExpertQA's questions are answered, and how the answers get evidence.

A model answers from memory, or from passages of a corpus or of web pages. If it answers from
memory, evidence may be found afterward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from qabench.benchmarks import benchmark
from qabench.benchmarks.expertqa import prompts
from qabench.benchmarks.expertqa.claims import (
    ClaimedAnswer,
    cite_afterward,
    cut_sources,
    split_claims,
)
from qabench.benchmarks.expertqa.passages import (
    BM25,
    DENSE,
    PassageSource,
    SearchResult,
    engine_passages,
    load_passages,
    load_web,
)
from qabench.benchmarks.plan import named_in_this_call
from qabench.data.rows import Row
from qabench.errors import InputError
from qabench.evaluation.scoring import Messages
from qabench.prompts.prompt import AUTO, OFFICIAL, QABENCH, Prompt, chosen_prompt, chosen_protocol
from qabench.retrieval.documents import Document

# The authors give the model 5 passages.
K = 5
# Room for an answer of up to 500 words with its sources. The authors allow more.
ANSWER_TOKENS = 1000
OFFICIAL_ANSWER_TOKENS = 2048


@dataclass(frozen=True)
class Options:
    """The options of all methods (see the task ``qabench.benchmarks.expertqa.tasks.expertqa``)."""

    retriever: str | None = None
    corpus: str | None = None
    search: str | None = None
    ranker: str = AUTO
    encoder: str | None = None
    k: int = K


@dataclass(frozen=True)
class Answering:
    """How questions are answered (see ``answering``)."""

    method: str
    prompt: Prompt
    protocol: str
    evidence: PassageSource | None
    k: int

    @property
    def reads(self) -> bool:
        """Tell whether the model is given passages."""
        return self.method.startswith("retrieve-read")

    @property
    def from_web(self) -> bool:
        """Tell whether passages come from the web."""
        return self.method.endswith("-web")

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the generation options."""
        if self.protocol == OFFICIAL:
            # The authors send no temperature, so the API's default applies.
            return {"max_tokens": OFFICIAL_ANSWER_TOKENS}
        return {"temperature": 0, "max_tokens": ANSWER_TOKENS}

    @property
    def scoring(self) -> dict[str, Any]:
        """Return the options of the scorer."""
        # The claims of a run have no labels yet, and a missing label must not count as N.
        return {"unlabeled": "exclude", "in_run": True}

    def to_read(self, row: Row) -> SearchResult:
        """Return the passages that the model is given, best first."""
        if self.evidence is None or not self.reads:
            return SearchResult(())
        ranked_by = row["question"]
        # The authors search for the question alone, but rank passages by the question together with
        # the expert's field.
        if self.from_web and self.prompt.name == OFFICIAL:
            ranked_by = prompts.web_question().filled(
                field=row["field"] or "", question=row["question"]
            )
        return self.evidence.find(row["question"], ranked_by, self.k)

    def messages(self, row: Row, read: Sequence[Document] = ()) -> Messages:
        """Return the messages for a question and the passages that the model reads, best first.

        Two of the authors' prompts contain the expert's field: the one without passages, and the
        one with web passages.
        """
        values = {"question": row["question"], "field": row["field"] or ""}
        if self.reads and self.prompt.name == OFFICIAL:
            texts = [passage.text for passage in read]
            values["context"] = prompts.context(texts, web=self.from_web)
        elif self.reads:
            shown = []
            for number, passage in enumerate(read, start=1):
                shown.append(_numbered(number, passage))
            values["passages"] = "\n\n".join(shown) or "(none)"
        return self.prompt.messages(**values)

    def claimed(self, reply: str, read: SearchResult) -> tuple[ClaimedAnswer, SearchResult]:
        """Split a reply into claims with evidence. Also return the passages that were used."""
        if self.reads:
            sources = [self._source(passage) for passage in read.passages]
            return split_claims(reply, sources), read
        if self.protocol == OFFICIAL:
            answer, cited = cut_sources(reply)
        else:
            answer, cited = prompts.split_answer(reply)
        split = split_claims(answer, cited)
        if self.evidence is None:
            return split, read
        claims = [claim["claim"] for claim in split.claims]
        return cite_best_passages(claims, self.evidence)

    def _source(self, passage: Document) -> tuple[str, str]:
        """Return the address and the text of a passage, for the evidence of claims that cite it."""
        text = passage.text
        if self.from_web and self.protocol == OFFICIAL:
            # In the authors' evidence, web passages have the form that they have in the prompt,
            # without line breaks. The number that ``numbered`` adds is removed when the passage is
            # cited.
            (text,) = prompts.numbered([text])
        return passage.source or passage.id, text

    def fields(self) -> dict[str, object]:
        """Return the fields of signatures that describe how the answers are written."""
        described: dict[str, object] = {
            "method": self.method,
            "prompt": self.prompt.label,
            "protocol": self.protocol,
        }
        if self.evidence is not None:
            described |= self.evidence.signature()
            if self.reads:
                described["k"] = self.k
        return described


def _numbered(number: int, passage: Document) -> str:
    """Return a passage as attributions show it: "[2] https://...", an empty line, and the text."""
    if not passage.source:
        return f"[{number}] {passage.text}"
    return f"[{number}] {passage.source}\n\n{passage.text}"


def cite_best_passages(
    claims: Sequence[str], evidence: PassageSource
) -> tuple[ClaimedAnswer, SearchResult]:
    """Return an answer in which each claim cites its best passage, and return these passages."""
    shown: dict[Document, None] = {}
    searches: list[Row] = []

    def find(claim: str) -> tuple[str, str] | None:
        # The authors' post-hoc systems take one passage per claim.
        result = evidence.find(claim, claim, 1)
        searches.extend(result.searches)
        shown.update(dict.fromkeys(result.passages))
        if not result.passages:
            return None
        best = result.passages[0]
        return best.source or best.id, best.text

    answer = cite_afterward(claims, find)
    evidences: list[str] = []
    for claim in answer.claims:
        evidences += claim["evidence"]
    return replace(answer, attribution=evidences), SearchResult(list(shown), tuple(searches))


def answering(
    method: str = "closed",
    prompt: str = AUTO,
    protocol: str = AUTO,
    options: Options | None = None,
    *,
    with_fields: bool = True,
) -> Answering:
    """Return how questions are answered in a task ``expertqa`` with these arguments.

    With the official protocol, the sources are separated from the reply as in the authors' scripts,
    and each row of the corpus is a passage. Otherwise, sources below a heading such as "References"
    are also read, and long texts of the corpus are split. ``with_fields`` tells whether the
    questions have the expert's field, which two of the authors' prompts contain.
    """
    # ``setting`` raises an error for an unknown method.
    benchmark("expertqa").setting(method)
    options = options or Options()
    if options.k < 1:
        raise InputError(f"k is {options.k}; it must be at least 1")
    file, _, _ = _prompts_of(method)
    chosen = chosen_prompt("expertqa", prompt, file)
    # The prompt for corpus passages is the only one without the expert's field.
    if chosen == OFFICIAL and file != prompts.READ_CORPUS and not with_fields:
        if prompt == OFFICIAL:
            raise InputError(
                "the authors' prompt needs the expert's field, which the questions of this config lack"
            )
        chosen = QABENCH
    text = prompt_text(method, chosen)
    how = Answering(method, text, chosen_protocol(protocol, chosen), None, options.k)
    if method == "closed":
        return how
    return replace(how, evidence=_evidence(how, options))


def prompt_text(method: str, prompt: str) -> Prompt:
    """Return the prompt of a method, for a ``prompt`` argument.

    Raises:
        SourceUnavailable: "official", and the authors' file is not available.
    """
    file, official_prompt, own_prompt = _prompts_of(method)
    if chosen_prompt("expertqa", prompt, file) == OFFICIAL:
        return official_prompt()
    return own_prompt


def _prompts_of(method: str) -> tuple[str, Callable[[], Prompt], Prompt]:
    """Return the authors' file with a method's prompt, the function that reads it, and qabench's prompt."""
    if method == "retrieve-read":
        return prompts.READ_CORPUS, prompts.corpus_prompt, prompts.OWN_READ
    if method == "retrieve-read-web":
        return prompts.READ_WEB, prompts.web_prompt, prompts.OWN_READ
    return prompts.CLOSED, prompts.closed_prompt, prompts.OWN_CLOSED


def _evidence(how: Answering, options: Options) -> PassageSource:
    if how.from_web:
        if options.search is None:
            raise InputError(
                f"the setting {how.method} needs a search engine: add -T search=searxng, -T search=google, or "
                "-T search=FILE.toml"
            )
        ranker = DENSE if options.ranker == AUTO else options.ranker
        return load_web(options.search, ranker, options.encoder)
    if options.retriever is not None:
        if options.corpus or options.encoder or options.ranker != AUTO:
            raise InputError(
                "-T corpus, ranker and encoder have no effect with -T retriever; leave out these or the retriever"
            )
        return engine_passages(
            options.retriever, named_in_this_call("retriever", options.retriever)
        )
    if options.corpus is None:
        raise InputError(
            f"the setting {how.method} needs passages: add -T corpus=FILE.jsonl, with a column 'text', or "
            "-T retriever=lucene:DIR"
        )
    ranker = BM25 if options.ranker == AUTO else options.ranker
    return load_passages(options.corpus, ranker, options.encoder, whole=how.protocol == OFFICIAL)
