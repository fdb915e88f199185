"""Answers split into claims with the evidence that they cite, as ExpertQA's authors did before annotation.

A claim is a sentence. Source: Malaviya et al., ExpertQA, NAACL 2024
(https://arxiv.org/abs/2309.07852), and ``split_ans_to_claims.py`` below
``modeling/response_collection`` of its repository. Tests execute it for comparison.

Lines of files of claims are {"id", "answer", "claims": [{"claim", "evidence", "label",
"fact_score", ...}]}: the input and output of ``qabench expertqa`` commands, and input of ``qabench
score expertqa``.

AutoAIS of any answers is the share of claims that their evidence entails, without ExpertQA's
questions. The authors count only the claims that experts found fully supported and worth a
citation. There, no expert has judged the claims, so all of them count, and the score is never
official.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from qabench.answers import is_list_of
from qabench.benchmarks.expertqa.factscore import is_void
from qabench.benchmarks.expertqa.prompts import MARK
from qabench.benchmarks.expertqa.questions import annotated_claims, is_judged
from qabench.data.predictions import Predictions, read_predictions
from qabench.data.rows import Json, Row
from qabench.errors import InputError
from qabench.evaluation.scoring import Questions
from qabench.io.files import write_text
from qabench.models.entailment import Entailment, Splitter, label_claims
from qabench.stats import bootstrap, bootstrap_mean

LONGEST_ANSWER = 200_000  # characters. Sentences are removed from an answer in quadratic time
MIN_LENGTH = 5  # a claim has more characters than this
MAX_DIGITS = 9  # of a mark: Python does not read integers of thousands of digits
NUMBER_MARK = re.compile(r"\[\d+\]")
PASSAGE_NUMBER = re.compile(r"Passage (?:Number|ID) \d+:?")
# Bing's follow-up questions do not have a full stop before them.
BING_QUESTION = re.compile(r"\]\n\n(?=Are|What|Which|How|Does)")
BING_EMOJI = "\N{SMILING FACE WITH SMILING EYES}"
# The end of a sentence with closing quotes and citations, for machines without spaCy: not after an
# abbreviation.
END = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:Dr|Mr|Ms|No|St|vs|cf|al))(?<!\b(?:Mrs|Fig|e\.g|i\.e))(?<!\bProf)"
    r"""[.!?]["'”’)]*+(?:\s*\[\d{1,4}\])*+(?=\s+[^\sa-z])"""
)
SURROGATE = re.compile("[\ud800-\udfff]")

Item = dict[str, Any]
"""A line of a file of claims."""
Source = str | tuple[str, str]
"""A source as the answer has it, or the address and the text of a passage that the answer was written from."""


@dataclass(frozen=True, slots=True)
class ClaimedAnswer:
    """An answer without the sentences that are not claims, its claims, and the sources of the whole answer.

    A claim is {"claim", "evidence"}. Evidence is a list of strings.
    """

    answer: str
    claims: list[Json]
    attribution: list[str]


def split_claims(answer: str, sources: Sequence[Source], *, bing: bool = False) -> ClaimedAnswer:
    """Split an answer with citation marks such as [2] into claims.

    Sentences of 5 characters or fewer, questions, and void sentences (see ``is_void``) are removed,
    from the answer, too. A mark [2] refers to the second one of ``sources``. Marks without a source
    are ignored. With ``bing``, the special rules for answers by Bing Chat apply. Raises InputError
    for more than ``LONGEST_ANSWER`` characters.
    """
    if len(answer) > LONGEST_ANSWER:
        raise InputError(f"the answer has {len(answer):,} characters; allowed: {LONGEST_ANSWER:,}")
    text = _without_bing_marks(answer).strip()
    if bing:
        text = BING_QUESTION.sub("]. \n\n", text).replace(BING_EMOJI, "")
    if not answer.strip():
        text = answer  # as it is in the authors' script
    claims = []
    for sentence in sentence_splitter()[1](text.replace("\n", " ")) if text.strip() else []:
        if is_void(sentence) or len(sentence) <= MIN_LENGTH or sentence.endswith("?"):
            text = text.replace(sentence.strip(), "")
        else:
            # again, because a line break in a mark has become a space
            claim = _without_bing_marks(sentence)
            claims.append({"claim": claim, "evidence": cited(claim, sources)})
    attribution = [_evidence(str(n), source) for n, source in enumerate(sources, start=1)]
    return ClaimedAnswer(text, claims, attribution)


def _without_bing_marks(text: str) -> str:
    return "".join(outside for outside, _ in _parts(text, "[^", "^]"))


def cited(text: str, sources: Sequence[Source]) -> list[str]:
    """Return the sources that the marks of a text refer to, in the order of the marks, with repetitions.

    As in the authors' script, [0] refers to the last source, and a passage gets the number as the
    mark has it.
    """
    numbers = [
        mark for _, mark in _parts(text, "[", "]") if mark.isdecimal() and len(mark) <= MAX_DIGITS
    ]
    return [
        _evidence(number, sources[int(number) - 1])
        for number in numbers
        if sources and int(number) <= len(sources)
    ]


def _evidence(number: str, source: Source) -> str:
    if isinstance(source, str):
        return source
    url, text = source
    return f"[{number}] {url}\n\n{PASSAGE_NUMBER.sub('', text)}"


def cite_afterward(
    claims: Sequence[str], find: Callable[[str], tuple[str, str] | None]
) -> ClaimedAnswer:
    """Find evidence for each claim, and make the answer that consists of the claims (post-hoc systems).

    Claims of 5 characters or fewer are left out. The others lose their marks. With evidence they
    get a new one before their last character. ``find`` returns the (address, text) of the best
    passage for a claim with its marks, or None.
    """
    cited_claims: list[Json] = []
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
        cited_claims.append({"claim": text, "evidence": evidence})
    answer = " ".join(claim["claim"] for claim in cited_claims)
    return ClaimedAnswer(answer, cited_claims, attribution)


def cut_sources(reply: str) -> tuple[str, list[str]]:
    """Cut a reply at the first line that begins with "[1]" into the answer and its sources, one per line.

    As in the authors' script, blank lines count as sources: with a blank line between sources, [2]
    refers to it, and the claim has empty evidence. ``prompts.split_answer`` numbers the sources as
    the reply does.
    """
    answer, first, rest = reply.partition("\n[1]")
    return answer.strip(), ("[1]" + rest).split("\n") if first else []


def sentence_splitter() -> tuple[str, Splitter]:
    """Return the name and function of spaCy's rule-based sentencizer on a blank English pipeline, as upstream.

    Without spaCy (extra ``spacy``) the function is ``sentences`` and its name "qabench".
    """
    if find_spec("spacy") is None:
        return "qabench", sentences
    return f"spacy-{metadata.version('spacy')}", _by_sentencizer


def sentences(text: str) -> list[str]:
    """Split a text into sentences, without spaCy.

    Marks after a full stop belong to the sentence before them.
    """
    ends = [0, *(match.end() for match in END.finditer(text)), len(text)]
    return [sentence for start, end in pairwise(ends) if (sentence := text[start:end].strip())]


def _by_sentencizer(text: str) -> list[str]:
    # spaCy cannot read lone surrogates.
    parsed = _sentencizer()(SURROGATE.sub("\ufffd", text))
    return [text[sentence.start_char : sentence.end_char] for sentence in parsed.sents]


@cache
def _sentencizer() -> Any:
    import spacy

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 10**9  # of characters. The rules need little memory
    return pipeline


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


def split_predictions(predictions: Predictions) -> list[Item]:
    """Split the answers of a file into claims.

    A line has "answer", perhaps "system" (the authors have special rules for "bing_chat"), and
    "attribution" if it cites sources: a list of strings, or of {"url", "text"} for passages that
    the answer was written from. Raises InputError for another type. The message names the line.
    """
    items = []
    for row in predictions.rows:
        answer = row.fields.get("answer")
        try:
            if answer is not None and not isinstance(answer, str):
                raise InputError(f"the answer is {answer!r:.40}; allowed: a string or null")
            sources = _sources(row.fields.get("attribution"))
            split = split_claims(
                answer or "", sources, bing=row.fields.get("system") == "bing_chat"
            )
        except InputError as error:
            raise InputError(f"{predictions.path}, line {row.line}: {error}") from None
        items.append({"id": row.id, "answer": answer and split.answer, "claims": split.claims})
    return items


def _sources(value: Any) -> Sequence[Source]:
    if value is None:
        return []
    if is_list_of(value, str):
        return list(value)
    if isinstance(value, list) and all(isinstance(source, Mapping) for source in value):
        pairs = [(source.get("url"), source.get("text")) for source in value]
        if all(is_list_of(pair, str) for pair in pairs):
            return pairs
    raise InputError(
        f"attribution is {value!r:.40}; allowed: strings, or objects with url and text"
    )


def read_items(file: str | None, questions: Questions | None) -> list[Item]:
    """Return the lines of a file of claims, or the annotated claims of a config.

    Raises InputError: neither is given, the file cannot be read, or a line has another format. The
    message names it.
    """
    if file is None:
        rows = [question.row for question in questions.rows] if questions else []
        if not any(is_judged(annotated_claims(row)) for row in rows):
            raise InputError(
                "nothing to label: use a FILE with claims, or --config with annotated answers (random)"
            )
        return [
            {
                "id": row["id"],
                "answer": answer["answer_string"],
                "claims": list(map(_annotated, answer["claims"] or ())),
            }
            for row in rows
            for answer in row["answers"][:1]
        ]
    predictions = read_predictions(file, ("claims",))
    for bad in predictions.bad_lines:
        raise InputError(f"{predictions.path}, line {bad.line}: {bad.reason}")
    items = []
    for row in predictions.rows:
        claims = row.fields["claims"]
        if problem := problem_of(claims, with_text=True):
            raise InputError(f"{predictions.path}, line {row.line}: {problem}")
        claims = [{**claim, "evidence": claim.get("evidence") or []} for claim in claims]
        items.append({**row.fields, "claims": claims})
    return items


def _annotated(claim: Row) -> Json:
    atomic = {
        name: claim[name]
        for name in ("atomic_claims", "atomic_evidences")
        if claim.get(name) is not None
    }
    return {"claim": claim["claim_string"], "evidence": claim["evidence"] or []} | atomic


def is_fraction(value: Any) -> bool:
    """Tell whether a value is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def problem_of(claims: Any, *, with_text: bool = False) -> str | None:
    """Return what is wrong with the claims of a line, or None.

    ``with_text``: a claim must have its text.
    """
    if not isinstance(claims, list):
        return f"claims is a {type(claims).__name__}; allowed: a list of objects"
    for number, claim in enumerate(claims, start=1):
        if problem := _problem_of_claim(claim, with_text):
            return f"claim {number}: {problem}"
    return None


def _problem_of_claim(claim: Any, with_text: bool) -> str | None:
    if not isinstance(claim, Mapping):
        return f"a JSON {type(claim).__name__}; allowed: an object with claim, evidence, label"
    text, evidence, score = claim.get("claim"), claim.get("evidence"), claim.get("fact_score")
    if not isinstance(text, str) and (with_text or text is not None):
        return f"its claim is {text!r:.40}; allowed: a string"
    if evidence is not None and not is_list_of(evidence, str):
        return f"its evidence is {evidence!r:.40}; allowed: a list of strings"
    if claim.get("label") not in ("Y", "N", None):
        return f'its label is {claim["label"]!r:.40}; allowed: "Y", "N" or null'
    if score is not None and not is_fraction(score):
        return f"its fact_score is {score!r:.40}; allowed: a number from 0 to 1, or null"
    return None


def write_items(path: Path, items: Sequence[Item]) -> None:
    """Write lines as JSONL."""
    write_text(path, "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items))


def with_labels(items: Sequence[Item], model: Entailment) -> list[Item]:
    """Return items whose claims have the label Y if their evidence entails them, else N."""
    pairs = [(claim["claim"], claim["evidence"]) for item in items for claim in item["claims"]]
    labels = iter(label_claims(pairs, model))
    return [
        {**item, "claims": [{**claim, "label": next(labels)} for claim in item["claims"]]}
        for item in items
    ]


def faithfulness_labels(
    answers: Sequence[str | None], references: Sequence[str], model: Entailment
) -> list[list[Json]]:
    """Return {"claim", "label"} for each claim of each answer, in order: Y if the reference answer entails it, else N.

    An answer of None has no claims.
    """
    claims = [
        [MARK.sub("", claim["claim"]).strip() for claim in split_claims(answer or "", []).claims]
        for answer in answers
    ]
    pairs = [
        (claim, [reference] if reference else [])
        for own, reference in zip(claims, references, strict=True)
        for claim in own
    ]
    labels = iter(label_claims(pairs, model))
    return [[{"claim": claim, "label": next(labels)} for claim in own] for own in claims]


def claimed_items(rows: Sequence[Any]) -> list[Item]:
    """Return rows as lines of a file of claims, each claim with its evidence.

    A row is {"answer" or "claims", "evidence"}, perhaps with an "id". Claims are strings, or
    {"claim", "evidence"} with evidence of their own. An answer is split into sentences by
    ``split_claims``. If marks such as [2] in an answer refer to the evidence, a claim has the
    evidence that it cites. Otherwise each claim has all evidence of the row.

    Raises:
        InputError: a row has another format.
    """
    return [_item(row, number) for number, row in enumerate(rows, start=1)]


def _item(row: Any, number: int) -> Item:
    try:
        if not isinstance(row, Mapping):
            raise InputError(f"a {type(row).__name__}; allowed: an object with answer or claims")
        answer, claims, evidence = row.get("answer"), row.get("claims"), row.get("evidence") or []
        if not is_list_of(evidence, str):
            raise InputError(f"evidence is {evidence!r:.40}; allowed: a list of strings")
        own = claims
        if isinstance(claims, list):
            own = [_with_evidence(claim, evidence) for claim in claims]
        elif claims is None and isinstance(answer, str):
            own = _split_by_evidence(answer, evidence)
        elif claims is None:
            raise InputError(f"answer is {answer!r:.40}; allowed: a string, or a list of claims")
        if problem := problem_of(own, with_text=True):
            raise InputError(problem)
    except InputError as error:
        raise InputError(f"row {number}: {error}") from None
    return {"id": str(row.get("id", number)), "answer": answer, "claims": own}


def _with_evidence(claim: Any, evidence: list[str]) -> Any:
    if isinstance(claim, str):
        return {"claim": claim, "evidence": evidence}
    if not isinstance(claim, Mapping):
        return claim
    own = claim.get("evidence")
    return {"claim": claim.get("claim"), "evidence": evidence if own is None else own}


def _split_by_evidence(answer: str, evidence: list[str]) -> list[Item]:
    claims = split_claims(answer, evidence).claims
    if cited(answer, evidence):
        return claims
    return [{**claim, "evidence": evidence} for claim in claims]


def claim_fields(rows: Sequence[Row]) -> dict[str, str]:
    """Return the fields of signatures for claims: given, or the splitter, and that all count."""
    all_given = all(row.get("claims") is not None for row in rows)
    claims = "given" if all_given else sentence_splitter()[0]
    return {"unlabeled": "N", "claims": claims, "counted": "all claims"}


def share_supported(items: Sequence[Item]) -> Json:
    """Return the shares of claims with the label Y, with their 95% intervals, and counts.

    ``macro`` is the mean over the answers with claims, ``micro`` the share of all claims. Both
    intervals are over answers: claims of one answer are not independent.

    Raises:
        InputError: there are no claims.
    """
    counts = [
        (sum(claim["label"] == "Y" for claim in item["claims"]), len(item["claims"]))
        for item in items
        if item["claims"]
    ]
    if not counts:
        raise InputError("nothing to score: no answer has a claim")
    macro = bootstrap_mean([supported / n for supported, n in counts])
    micro = bootstrap(counts, lambda supported, n: supported / n)
    claims = [claim for item in items for claim in item["claims"]]
    return {
        "macro": macro.mean,
        "micro": micro.mean,
        "macro_interval": [macro.low, macro.high],
        "micro_interval": [micro.low, micro.high],
        "answers": len(items),
        "answers_without_claims": len(items) - len(counts),
        "claims": len(claims),
        "claims_without_evidence": sum(not claim["evidence"] for claim in claims),
    }
