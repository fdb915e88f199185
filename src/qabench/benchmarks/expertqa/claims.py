"""Answers split into claims with the evidence that they cite, as ExpertQA's authors did before annotation.

A claim is a sentence, or a part of one that a model writes. Source: Malaviya et al., ExpertQA, NAACL 2024
(https://arxiv.org/abs/2309.07852), and ``split_ans_to_claims.py`` below ``modeling/response_collection`` of its
repository; tests execute it for comparison. The released claims are sentences: the script has the way by a model too,
but it stops with an error there (a name is not defined), so here a sentence's citations are given to its claims.

Lines of files of claims are {"id", "answer", "claims": [{"claim", "evidence", "label", "fact_score", ...}]}: the input
and output of ``qabench expertqa`` commands, and input of ``qabench score expertqa``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qabench.benchmarks.expertqa import prompts
from qabench.benchmarks.expertqa.agreement import is_texts
from qabench.benchmarks.expertqa.evaluate import Question, Questions
from qabench.benchmarks.expertqa.factscore import Splitter, is_void
from qabench.data.predictions import Predictions, read_predictions
from qabench.errors import InputError
from qabench.io.files import write_text
from qabench.llm.client import Caller, Progress, answered, run_sync
from qabench.llm.exchange import ChatRequest
from qabench.models.entailment import Entailment, label_claims, punkt

LONGEST_ANSWER = 200_000  # characters; sentences are removed from an answer in quadratic time
LONGEST_ABBREVIATION = 16  # characters, including the required character before it
MIN_LENGTH = 5  # a claim has more characters than this
NUMBER_MARK = re.compile(r"\[\d+\]")
PASSAGE_NUMBER = re.compile(r"Passage (?:Number|ID) \d+:?")
# Bing's follow-up questions do not have a full stop before them.
BING_QUESTION = re.compile(r"\]\n\n(?=Are|What|Which|How|Does)")
BING_EMOJI = "\N{SMILING FACE WITH SMILING EYES}"
# A sentence ends at . ! or ? with closing quotes and citations, unless a lowercase letter follows.
STOP = re.compile(r"""(?<![.!?])[.!?]++["'”’)]*+(?:\s*\[\d{1,4}\])*(?:[.!?])?(?=\s+[^\sa-z]|\s*$)""")
SURROGATE = re.compile("[\ud800-\udfff]")
ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|No|Fig|vs|e\.g|i\.e|cf|al|approx)|^\s*\d{1,3})$")
SPLIT_BY_MODEL: Mapping[str, Any] = {"max_tokens": 200}  # and the API's default temperature

Item = dict[str, Any]
"""A line of a file of claims."""


@dataclass(frozen=True, slots=True)
class ClaimedAnswer:
    """An answer without the sentences that are not claims, its claims, and the sources of the whole answer.

    A claim is {"claim_string", "evidence"}; evidence is a list of strings.
    """

    answer: str
    claims: list[dict[str, Any]]
    attribution: list[str]


def split_claims(
    answer: str, sources: Sequence[str], split: Splitter | None = None, *, bing: bool = False
) -> ClaimedAnswer:
    """Split an answer with citation marks such as [2] into claims.

    Sentences of 5 characters or fewer, questions, and void sentences (see ``is_void``) are removed, from the answer,
    too.

    Args:
        answer: at most ``LONGEST_ANSWER`` characters; a longer one is an InputError.
        sources: the sources of the marks: [2] refers to the second one. Marks without a source are ignored.
        split: splits a text into sentences; None means ``sentence_splitter()``.
        bing: whether Bing Chat wrote the answer, which has special rules.
    """
    if len(answer) > LONGEST_ANSWER:
        raise InputError(f"the answer has {len(answer):,} characters; allowed: {LONGEST_ANSWER:,}")
    text, sentences = answer_sentences(answer, split, bing=bing)
    claims = []
    for sentence in sentences:
        if is_void(sentence) or len(sentence) <= MIN_LENGTH or sentence.endswith("?"):
            text = text.replace(sentence.strip(), "")
        else:
            claims.append({"claim_string": sentence, "evidence": cited(sentence, sources)})
    return ClaimedAnswer(text, claims, list(sources))


def answer_sentences(answer: str, split: Splitter | None = None, *, bing: bool = False) -> tuple[str, Sequence[str]]:
    """Return an answer without the marks of Bing Chat, and its sentences; see ``split_claims``."""
    text = "".join(outside for outside, _ in _parts(answer, "[^", "^]")).strip()
    if bing:
        text = BING_QUESTION.sub("]. \n\n", text).replace(BING_EMOJI, "")
    split = split or sentence_splitter()[1]
    return text, split(text.replace("\n", " ")) if text else []


def cited(text: str, sources: Sequence[str]) -> list[str]:
    """Return the sources that the marks of a text refer to, in the order of the marks, with repetitions.

    [0] refers to the last source, as in the authors' script.
    """
    if not sources:
        return []
    positions = [int(mark) - 1 for _, mark in _parts(text, "[", "]") if mark.isdecimal()]
    return [sources[position] for position in positions if position < len(sources)]


def cite_afterward(claims: Sequence[str], find: Callable[[str], tuple[str, str] | None]) -> ClaimedAnswer:
    """Find evidence for each claim, and make the answer that consists of the claims (post-hoc systems).

    Claims of 5 characters or fewer are left out. The others lose their marks; with evidence they get a new one before
    their last character. ``find`` returns the (address, text) of the best passage for a claim with its marks, or None.
    """
    cited_claims: list[dict[str, Any]] = []
    attribution: list[str] = []
    for claim in claims:
        text = NUMBER_MARK.sub("", claim)
        if not text.strip() or len(text) <= MIN_LENGTH:
            continue
        evidence = []
        if passage := find(claim):
            number = f"[{len(attribution) + 1}]"
            attribution.append(f"{number} {passage[0]}")
            evidence = [f"{number} {passage[0]}\n\n{passage[1]}"]
            text = text[:-1] + number + text[-1]
        cited_claims.append({"claim_string": text, "evidence": evidence})
    return ClaimedAnswer(" ".join(claim["claim_string"] for claim in cited_claims), cited_claims, attribution)


def passage_sources(passages: Sequence[tuple[str, str]]) -> list[str]:
    """Return the sources of an answer's marks, from the (address, text) of the passages that it is based on."""
    return [f"[{n}] {url}\n\n{PASSAGE_NUMBER.sub('', text)}" for n, (url, text) in enumerate(passages, start=1)]


def cut_sources(reply: str) -> tuple[str, list[str]]:
    """Cut a reply at the first line that begins with "[1]" into the answer and its sources, one per line.

    As in the authors' script, blank lines count as sources: with a blank line between sources, [2] refers to it, and
    the claim has empty evidence. ``prompts.split_answer`` numbers the sources as the reply does.
    """
    answer, first, rest = reply.partition("\n[1]")
    return answer.strip(), ("[1]" + rest).split("\n") if first else []


def without_marks(text: str) -> str:
    """Return the text without its marks such as [2]."""
    return prompts.MARK.sub("", text).strip()


def sentence_splitter() -> tuple[str, Splitter]:
    """Return the name and function of spaCy's rule-based sentencizer on a blank English pipeline, as upstream.

    Without spaCy (extra ``spacy``) the function is ``sentences`` and its name "qabench".
    """
    if find_spec("spacy") is None:
        return "qabench", sentences
    return f"spacy-{metadata.version('spacy')}", _by_sentencizer


def splitter_of(name: str) -> Splitter:
    """Return the sentence splitter "punkt" (NLTK's, as upstream) or "spacy". Raises InputError for another name."""
    if name not in ("punkt", "spacy"):
        raise InputError(f"unknown sentences {name!r}; allowed: punkt, spacy")
    return punkt if name == "punkt" else sentence_splitter()[1]


def sentences(text: str) -> list[str]:
    """Split a text into sentences, without spaCy. Marks after a full stop belong to the sentence before them."""
    parts = []
    start = _skip_space(text, 0)
    for stop in STOP.finditer(text):
        if not (text[stop.start()] == "." and _ends_abbreviated(text, start, stop.start())):
            parts.append(text[start : stop.end()])
            start = _skip_space(text, stop.end())
    parts.append(text[start:])
    return [sentence.strip() for sentence in parts if sentence.strip()]


def _ends_abbreviated(text: str, start: int, end: int) -> bool:
    """Tell whether ``text[start:end]`` ends with an abbreviation. Reads only its end, to avoid quadratic time."""
    window = max(start, end - LONGEST_ABBREVIATION)
    before = "x" if window > start else ""  # a bare number counts only at the beginning of a sentence
    return ABBREVIATION.search(before + text[window:end]) is not None


def _skip_space(text: str, start: int) -> int:
    while text[start : start + 1].isspace():
        start += 1
    return start


def _parts(text: str, opening: str, closing: str) -> Iterator[tuple[str, str]]:
    """Yield (text before, text between) for each ``opening`` and the next ``closing`` on its line; ("rest", "") last.

    The same as the matches of a pattern such as ``\\[(.*?)\\]``, in linear time.
    """
    end = line_start = 0
    for line in text.split("\n"):
        line_end = line_start + len(line)
        place = line_start
        while (first := text.find(opening, place, line_end)) >= 0:
            last = text.find(closing, first + len(opening), line_end)
            if last < 0:
                break
            yield text[end:first], text[first + len(opening) : last]
            place = end = last + len(closing)
        line_start = line_end + 1
    yield text[end:], ""


def _by_sentencizer(text: str) -> list[str]:
    # spaCy cannot read lone surrogates.
    parsed = _sentencizer()(SURROGATE.sub("\ufffd", text))
    return [text[sentence.start_char : sentence.end_char] for sentence in parsed.sents]


@cache
def _sentencizer() -> Any:
    import spacy

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 10**9  # of characters; the rules need little memory
    return pipeline


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """An answer of a file with its sources, and its place for error messages; ``text`` is None if unanswered."""

    id: str
    text: str | None
    sources: list[str]
    bing: bool
    where: str


def read_answers(predictions: Predictions, *, bing: bool = False) -> list[CitedAnswer]:
    """Return the answers of a file; ``bing``: Bing Chat wrote all of them, not only those of the system bing_chat.

    A line has "answer", and "attribution" if it cites sources: a list of strings, or of {"url", "text"} for passages
    that the answer was written from. Raises InputError for another type; the message names the line.
    """
    answers = []
    for row in predictions.rows:
        where = f"{predictions.path}, line {row.line}"
        text = row.fields.get("answer")
        if text is not None and not isinstance(text, str):
            raise InputError(f"{where}: the answer is {text!r:.40}; allowed: a string or null")
        sources = _sources(row.fields.get("attribution"), where)
        answers.append(CitedAnswer(row.id, text, sources, bing or row.fields.get("system") == "bing_chat", where))
    return answers


def annotated_answers(questions: Questions, *, bing: bool = False) -> list[CitedAnswer]:
    """Return the annotated answers of a config. Raises InputError for a config without them."""
    if not questions.annotated:
        raise InputError("give a FILE with answers, or --config with annotated answers, such as random")
    pairs = [(question, answer) for question in questions.rows for answer in question.answers[:1]]
    return [
        CitedAnswer(
            question.id,
            answer["answer_string"],
            list(answer["attribution"] or ()),
            bing or answer["system"] == "bing_chat",
            f"{questions.config} {questions.split}, {question.id}",
        )
        for question, answer in pairs
    ]


def split_answers(answers: Sequence[CitedAnswer]) -> Iterator[Item]:
    """Yield the lines of a file of claims, which are sentences. Raises InputError for an answer that is too long."""
    for answer in answers:
        try:
            split = split_claims(answer.text or "", answer.sources, bing=answer.bing)
        except InputError as error:
            raise InputError(f"{answer.where}: {error}") from None
        claims = [{"claim": claim["claim_string"], "evidence": claim["evidence"]} for claim in split.claims]
        yield {"id": answer.id, "answer": answer.text and split.answer, "claims": claims}


def split_requests(
    answers: Sequence[CitedAnswer], model: str
) -> tuple[list[tuple[CitedAnswer, str, list[str]]], list[ChatRequest]]:
    """Return each answer with its text (without Bing's marks) and sentences, and a request for each sentence.

    The authors sent the same text as a plain completion. Raises SourceError if their prompt is not available.
    """
    split = []
    for answer in answers:
        text, sentences = answer_sentences(answer.text or "", bing=answer.bing)
        split.append((answer, text, [sentence for sentence in sentences if sentence.strip()]))
    texts = [prompts.claims_prompt().messages(sentence=sentence) for *_, own in split for sentence in own]
    return split, [ChatRequest(model, messages, SPLIT_BY_MODEL) for messages in texts]


def split_by_model(
    answers: Sequence[CitedAnswer], caller: Caller, progress: Progress | None = None
) -> tuple[list[Item], list[str]]:
    """Return the lines of a file of claims that a model finds in each sentence, and the problems in sentences.

    Unlike claims by sentence, no sentence is left out. An answer is left out if a call for one of its sentences failed.
    Replies are cached: the same call continues an interrupted one.
    """
    split, requests = split_requests(answers, caller.model)
    outcomes = iter(run_sync(caller.client().complete(requests, progress)) if requests else [])
    name = f"{caller.model}/{prompts.claims_prompt().label}"
    items: list[Item] = []
    problems: list[str] = []
    for answer, text, own in split:
        replies = [answered(next(outcomes)) for _ in own]
        if reason := next((reply.reason for reply in replies if reply.text is None), None):
            problems.append(f"{answer.id} is left out: {reason}")
            continue
        claims = [
            {"claim": claim, "evidence": cited(sentence, answer.sources)}
            for sentence, reply in zip(own, replies, strict=True)
            for claim in map(str.strip, (reply.text or "").split("- "))  # as upstream
            if claim
        ]
        items.append({"id": answer.id, "answer": answer.text and text, "claims": claims, "claims_by": name})
    return items, problems


def read_items(file: str | None, questions: Questions | None) -> list[Item]:
    """Return the lines of a file of claims, or the annotated claims of a config.

    Raises InputError: neither is given, the file cannot be read, or a line has another format; the message names it.
    """
    if file is None:
        if questions is None or not questions.annotated:
            raise InputError("nothing to label: use a FILE with claims, or --config with annotated answers (random)")
        return [_annotated(question) for question in questions.rows if question.answers]
    predictions = read_predictions(file, ("claims",))
    if predictions.bad_lines:
        first = predictions.bad_lines[0]
        raise InputError(f"{predictions.path}, line {first.line}: {first.reason}")
    return [_checked(dict(row.fields), f"{predictions.path}, line {row.line}") for row in predictions.rows]


def write_items(path: Path, items: Sequence[Item]) -> None:
    """Write lines as JSONL."""
    write_text(path, "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items))


def _annotated(question: Question) -> Item:
    answer = question.answers[0]
    fields = ("atomic_claims", "atomic_evidences")
    claims = [
        {"claim": claim["claim_string"], "evidence": claim["evidence"] or []}
        | {name: claim[name] for name in fields if claim.get(name) is not None}
        for claim in answer["claims"] or ()
    ]
    return {"id": question.id, "answer": answer["answer_string"], "claims": claims}


def _checked(item: Item, where: str) -> Item:
    claims = item["claims"]
    if not isinstance(claims, list) or not all(isinstance(claim, Mapping) for claim in claims):
        raise InputError(f"{where}: claims is {claims!r:.40}; allowed: a list of objects with claim and evidence")
    for number, claim in enumerate(claims, start=1):
        if not isinstance(claim.get("claim"), str) or not is_texts(claim.get("evidence") or []):
            raise InputError(f"{where}, claim {number}: claim (a string) and evidence (a list of strings) are required")
    return item | {"claims": [{**claim, "evidence": claim.get("evidence") or []} for claim in claims]}


def _sources(value: Any, where: str) -> list[str]:
    if value is None:
        return []
    if is_texts(value):
        return list(value)
    if isinstance(value, list) and all(isinstance(source, Mapping) for source in value):
        pairs = [(source.get("url"), source.get("text")) for source in value]
        if all(is_texts(list(pair)) for pair in pairs):
            return passage_sources(pairs)
    raise InputError(f"{where}: attribution is {value!r:.40}; allowed: strings, or objects with url and text")


def claims_of(answer: Any, reference: str) -> list[dict[str, Any]]:
    """Return {"claim", "evidence"} for each claim of an answer; the evidence is the reference answer."""
    split = split_claims(answer, []).claims if isinstance(answer, str) else []
    return [_against(claim["claim_string"], reference) for claim in split]


def faithfulness_labels(
    answers: Sequence[str | None], references: Sequence[str], model: Entailment, split: Splitter
) -> list[list[dict[str, Any]]]:
    """Return {"claim", "label"} for each claim of each answer, in order, labeled by the reference answer.

    An answer of None has no claims. See ``qabench.models.entailment.label_claims`` for model and split.
    """
    claims = [claims_of(answer, reference) for answer, reference in zip(answers, references, strict=True)]
    pairs = [(claim["claim"], claim["evidence"]) for own in claims for claim in own]
    labels = iter(label_claims(pairs, model, split))
    return [[{"claim": claim["claim"], "label": next(labels)} for claim in own] for own in claims]


def claims_to_check(predictions: Predictions, questions: Questions) -> list[Item]:
    """Return the claims of answers with the reference answer as their evidence, of questions that have one."""
    references = {question.id: question.reference for question in questions.rows if question.reference}
    answers = {row.id: row.fields.get("answer") for row in predictions.rows if row.id in references}
    return [{"id": id, "answer": answer, "claims": claims_of(answer, references[id])} for id, answer in answers.items()]


def annotated_to_check(questions: Questions) -> list[Item]:
    """Return the annotated claims with the revised answer as their evidence, and with ``correctness``."""
    if not questions.annotated:
        raise InputError("give a FILE with answers, or --config with annotated answers, such as random")
    return [
        {
            "id": question.id,
            "answer": question.answers[0]["answer_string"],
            "claims": [
                _against(claim["claim_string"], question.reference) | {"correctness": claim["correctness"]}
                for claim in question.answers[0]["claims"] or ()
            ],
        }
        for question in questions.rows
        if question.answers and question.reference
    ]


def _against(claim: str, reference: str) -> dict[str, Any]:
    return {"claim": without_marks(claim), "evidence": [reference] if reference else []}
