"""Answers split into claims with the evidence that they cite, as ExpertQA's authors did before annotation.

A claim is a sentence. Source: Malaviya et al., ExpertQA, NAACL 2024
(https://arxiv.org/abs/2309.07852), and ``split_ans_to_claims.py`` below
``modeling/response_collection`` of its repository. Tests execute it for comparison.

Lines of files of claims are {"id", "answer", "claims": [{"claim", "evidence", "label",
"fact_score", ...}]}: the input and output of ``qabench expertqa`` commands, and input of ``qabench
score expertqa``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from itertools import pairwise
from operator import truediv
from pathlib import Path
from typing import Any

from qabench.answers import is_list_of
from qabench.benchmarks.expertqa.factscore import is_void
from qabench.benchmarks.expertqa.fields import (
    EVIDENCE_FIELDS,
    LABELS,
    Sources,
    answer_of,
    label_of,
    listed,
    sources_of,
    unresolved_marks,
    with_plain_marks,
)
from qabench.benchmarks.expertqa.questions import annotated_claims, is_judged
from qabench.data.predictions import Predictions, read_predictions
from qabench.data.rows import Json, Row, without_none
from qabench.errors import InputError
from qabench.evaluation.scoring import Questions
from qabench.io.files import write_text
from qabench.models.entailment import Entailment, Splitter, label_claims
from qabench.stats import mean_interval, score_interval
from qabench.text.tokenizer import with_linear_tokenizer

LONGEST_ANSWER = 200_000  # characters
# The authors search the whole answer for each sentence that they remove, which takes quadratic time.
# The annotated answers have at most 9 such sentences.
MAX_SEARCHED = 1_000
MIN_LENGTH = 5  # a claim has more characters than this
MAX_DIGITS = 9  # of a mark: Python does not read integers of thousands of digits
# Both also match up to the end of the line where a mark is not closed. Otherwise, each of many
# opening brackets would be searched to the end.
BRACKETS = re.compile(r"\[([^\]\n]*)(\]?)")
BING_MARK = re.compile(r"\[\^.*?(\^\]|$)", re.MULTILINE)
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
# Fields of a line that describe its claims
OF_CLAIMS = ("claims", "labels_by", "labels_of", "fact_scores_by", "atomic_claims_by")

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
    from the answer, too: wherever they occur, or beyond ``MAX_SEARCHED`` of them only where they are
    sentences. A mark [2] refers to the second one of ``sources``. Marks without a source
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
    on_one_line = text.replace("\n", " ")
    claims = []
    removed = []
    end = 0
    for sentence in sentence_splitter()[1](on_one_line) if text.strip() else []:
        start = on_one_line.index(sentence, end)
        end = start + len(sentence)
        if is_void(sentence) or len(sentence) <= MIN_LENGTH or sentence.endswith("?"):
            removed.append((start, sentence))
        else:
            # again, because a line break in a mark has become a space
            claim = _without_bing_marks(sentence)
            claims.append({"claim": claim, "evidence": cited(claim, sources)})
    text = _without_sentences(text, removed)
    attribution = [_evidence(str(n), source) for n, source in enumerate(sources, start=1)]
    return ClaimedAnswer(text, claims, attribution)


def _without_sentences(text: str, sentences: Sequence[tuple[int, str]]) -> str:
    """Remove sentences from a text.

    As in the authors' script, a sentence with a line break stays, because its line break has become a space.

    Args:
        text: the text.
        sentences: the start of each sentence in the text, and the sentence without line breaks, in the order of
            the text.
    """
    if len(sentences) <= MAX_SEARCHED:
        for _, sentence in sentences:
            text = text.replace(sentence.strip(), "")
        return text
    kept = []
    end = 0
    for start, sentence in sentences:
        stripped = sentence.strip()
        first = start + sentence.index(stripped)
        if text.startswith(stripped, first):
            kept.append(text[end:first])
            end = first + len(stripped)
    return "".join(kept) + text[end:]


def _without_bing_marks(text: str) -> str:
    return BING_MARK.sub(lambda mark: "" if mark[1] else mark[0], text)


def cited(text: str, sources: Sequence[Source]) -> list[str]:
    """Return the sources that the marks of a text refer to, in the order of the marks, with repetitions.

    As in the authors' script, [0] refers to the last source, and a passage gets the number as the
    mark has it.
    """
    numbers = [mark for mark, end in BRACKETS.findall(text) if end and mark.isdecimal()]
    return [
        _evidence(number, sources[int(number) - 1])
        for number in numbers
        if sources and len(number) <= MAX_DIGITS and int(number) <= len(sources)
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
    return with_linear_tokenizer(pipeline)


@dataclass(frozen=True, slots=True)
class SplitAnswers:
    """The answers of a file split into claims, and what a user should know.

    Attributes:
        items: the lines with claims.
        skipped: answers that cannot be split, with line, id and reason.
        read: the fields that sources were read from.
        ignored: fields with lists that were not read.
        unresolved: marks that cite nothing or the wrong sentence, with their ids.
        unmarked: ids of answers that have sources and cite none.
    """

    items: list[Item]
    skipped: list[str]
    read: list[str]
    ignored: list[str]
    unresolved: list[str]
    unmarked: list[str]


def split_predictions(predictions: Predictions, *, plain_marks: bool = False) -> SplitAnswers:
    """Split the answers of a file into claims.

    A line has "answer", perhaps "system" (the authors have special rules for "bing_chat"), and
    "attribution" if it cites sources: a list of strings. See ``fields`` for other names. All other
    fields are passed on. With ``plain_marks``, citations are also read where the authors' splitter
    ignores or misplaces them, such as [1, 2] or marks after a full stop. Raises InputError if no
    answer can be split. The message names the first one.
    """
    split_answers = SplitAnswers([], [], [], [], [], [])
    read: dict[str, None] = {}
    ignored: dict[str, None] = {}
    for row in predictions.rows:
        try:
            item, sources = _split_row(row.fields, row.id, split_answers, plain_marks)
        except InputError as error:
            split_answers.skipped.append(f"line {row.line} (id {row.id:.80}): {error}")
            continue
        split_answers.items.append(item)
        if sources.field:
            read[sources.field] = None
        ignored |= dict.fromkeys(sources.ignored)
    if not split_answers.items:
        raise InputError(f"{predictions.path}, {split_answers.skipped[0]}")
    split_answers.read.extend(read)
    split_answers.ignored.extend(name for name in ignored if name not in read)
    return split_answers


def _split_row(
    fields: Mapping[str, Any], id: str, notes: SplitAnswers, plain_marks: bool
) -> tuple[Item, Sources]:
    answer, _ = answer_of(fields)
    if not isinstance(answer, str | None):
        raise InputError(f"the answer is {answer!r:.40}; allowed: a string or null")
    sources = sources_of(fields)
    text = with_plain_marks(answer or "") if plain_marks else answer or ""
    split = split_claims(text, sources.texts, bing=fields.get("system") == "bing_chat")
    marks = unresolved_marks(text, len(sources.texts))
    if marks:
        notes.unresolved.append(f"{', '.join(marks[:3])} of {id:.80}")
    if sources.texts and answer and not any(claim["evidence"] for claim in split.claims):
        notes.unmarked.append(id)
    # Labels and scores of claims that the line had before are not those of the new claims.
    passed_on = {name: value for name, value in fields.items() if name not in OF_CLAIMS}
    own: Item = {"id": id, "answer": answer and split.answer, "claims": split.claims}
    if plain_marks:
        own["citations"] = "plain marks"
    return {**passed_on, **own}, sources


def read_items(file: str) -> list[Item]:
    """Return the lines of a file of claims.

    Raises InputError: the file cannot be read, or a line has another format. The message names it.
    """
    predictions = read_predictions(file, ("claims",))
    for bad in predictions.bad_lines:
        raise InputError(f"{predictions.path}, line {bad.line}: {bad.reason}")
    items = []
    for row in predictions.rows:
        try:
            claims = read_claims(row.fields["claims"])
        except InputError as error:
            raise InputError(f"{predictions.path}, line {row.line} (id {row.id:.80}): {error}") from None
        items.append({**row.fields, "id": row.id, "claims": claims})
    return items


def read_claims(claims: Any) -> list[Json]:
    """Return the claims of a line with "evidence", a list of strings, and labels "Y", "N" or None.

    Other names of evidence, and labels of other judges, are read too (see ``fields``). A string is a
    claim without evidence. A cell of a CSV file has the claims as JSON. Raises InputError.
    """
    claims = listed(claims)
    if not is_list_of(claims, dict):
        raise InputError(problem_of(claims) or "")
    read = []
    for number, claim in enumerate(claims, start=1):
        if isinstance(claim.get("evidence"), list) or not any(map(claim.get, EVIDENCE_FIELDS)):
            evidence = claim.get("evidence") or []
        else:
            evidence = None
        if evidence is None or not is_list_of(evidence, str):
            try:
                evidence = sources_of({**claim, "attribution": None}).texts
            except InputError as error:
                raise InputError(f"claim {number}: {error}") from None
        own = {**claim, "evidence": evidence}
        if "label" in claim:
            own["label"] = label_of(claim["label"])
        read.append(own)
    if problem := problem_of(read):
        raise InputError(problem)
    return read


def annotated_items(questions: Questions) -> list[Item]:
    """Return the annotated claims of a config as lines of a file of claims.

    Raises InputError if it has none.
    """
    rows = [question.row for question in questions.rows]
    if not any(is_judged(annotated_claims(row)) for row in rows):
        raise InputError(
            f"the config {questions.config} has no annotated claims: use a FILE with claims, or --config random"
        )
    items = []
    for row in rows:
        for answer in row["answers"][:1]:
            item = {"id": row["id"], "answer": answer["answer_string"], "system": answer["system"]}
            items.append(item | {"field": row["field"], "claims": _annotated(answer)})
    return items


def _annotated(answer: Row) -> list[Json]:
    names = ("atomic_claims", "atomic_evidences")
    return [
        {"claim": claim["claim_string"], "evidence": claim["evidence"] or []}
        | without_none({name: claim.get(name) for name in names})
        for claim in answer["claims"] or ()
    ]


def problem_of(claims: Any) -> str | None:
    """Return what is wrong with the claims of a line, or None."""
    if not is_list_of(claims, dict):
        return f"claims is {claims!r:.40}; allowed: a list of objects with claim, evidence, label"
    for number, claim in enumerate(claims, start=1):
        evidence = claim.get("evidence")
        allowed = {
            "claim": (isinstance(claim.get("claim"), str), "a string"),
            "evidence": (evidence is None or is_list_of(evidence, str), "a list of strings"),
            "label": (label_of(claim.get("label")) in ("Y", "N", None), LABELS),
        }
        for name in ("fact_score", "fact_score_readable"):
            score = claim.get(name)
            is_fraction = type(score) in (int, float) and 0 <= score <= 1
            allowed[name] = (score is None or is_fraction, "a number from 0 to 1, or null")
        for name, (is_valid, what) in allowed.items():
            if not is_valid:
                return f"claim {number}: its {name} is {claim.get(name)!r:.40}; allowed: {what}"
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


def claimed_items(rows: Sequence[Any]) -> list[Item]:
    """Return rows {"answer" or "claims", "evidence"} of any system as lines of a file of claims.

    Claims are strings, or {"claim", "evidence", "label"} with evidence and a label of their own. An
    answer is split into claims. If its marks refer to the evidence, a claim has what it cites.
    Otherwise each claim has all evidence of the row. See ``fields`` for other names. Raises
    InputError for a row in another format.
    """
    items: list[Item] = []
    for number, row in enumerate(rows):
        try:
            items.append({"claims": _claims_of_row(row)})
        except InputError as error:
            raise InputError(f"predictions[{number}]{error}") from None
    return items


def _claims_of_row(row: Any) -> list[Json]:
    allowed = "allowed: answer, a string, or claims, a list, and evidence, a list of strings"
    if not isinstance(row, Mapping):
        raise InputError(f" is {row!r:.80}; {allowed}")
    answer: Any = answer_of(row)[0]
    claims: Any = row.get("claims")
    if not (is_list_of(claims, object) or isinstance(answer, str)):
        raise InputError(f" is {row!r:.80}; {allowed}")
    try:
        evidence = sources_of(row).texts
    except InputError as error:
        raise InputError(f" is {row!r:.80}; {allowed} ({error})") from None
    if not is_list_of(claims, object):
        split = split_claims(answer, evidence).claims
        claims = split if cited(answer, evidence) else [claim["claim"] for claim in split]
    own = []
    for claim in claims:
        if not isinstance(claim, dict):
            own.append({"evidence": evidence, "claim": claim})
        elif any(name in claim for name in EVIDENCE_FIELDS):
            own.append(claim)
        else:
            own.append({"evidence": evidence, **claim})
    try:
        return read_claims(own)
    except InputError as error:
        raise InputError(f": {error}") from None


def share_supported(items: Sequence[Item]) -> Json:
    """Return the share of claims with the label Y: ``macro``, a mean over answers, and ``micro``, of all claims.

    Answers without claims are left out. Both 95% intervals are over answers: claims of one answer
    are not independent.

    Raises:
        InputError: there are no claims.
    """
    labels = [[claim["label"] for claim in item["claims"]] for item in items if item["claims"]]
    if not labels:
        raise InputError("nothing to score: no answer has a claim")
    counts = [(own.count("Y"), len(own)) for own in labels]
    macro = mean_interval([supported / n for supported, n in counts])
    micro = score_interval(counts, truediv)
    return {
        "macro": macro.mean,
        "micro": micro.mean,
        "macro_interval": [macro.low, macro.high],
        "micro_interval": [micro.low, micro.high],
        "answers": len(counts),
        "answers_without_claims": len(items) - len(counts),
        "claims": sum(n for _, n in counts),
    }
