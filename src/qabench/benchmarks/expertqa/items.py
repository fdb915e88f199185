"""Files of claims: the input and output of ``qabench expertqa`` commands, and input of ``qabench score expertqa``.

A line is {"id", "answer", "claims": [{"claim", "evidence", "label", "fact_score", ...}]}; see ``predictions``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from qabench.benchmarks.expertqa.claims import ClaimedAnswer, passage_sources, split_claims
from qabench.benchmarks.expertqa.questions import Questions
from qabench.data.predictions import Predictions, read_predictions
from qabench.errors import InputError
from qabench.io.files import write_text

Item = dict[str, Any]


def read_items(file: str | None, questions: Questions | None) -> list[Item]:
    """The lines of a file with claims, or the annotated claims of a config.

    Raises:
        InputError: neither is given, the file cannot be read, or a line has another format; the message names the line.
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


def split_predictions(predictions: Predictions, *, bing: bool = False) -> Iterator[Item]:
    """The lines of a file of answers with their claims.

    A line has "answer", and "attribution" if it cites sources: a list of strings, or of {"url", "text"} for passages
    that the answer was written from.

    Raises:
        InputError: a field has another type; the message names the line.
    """
    for id_, answer, sources, by_bing in answers_of(predictions):
        found = (
            split_claims(answer, sources, bing=bing or by_bing) if answer else ClaimedAnswer(answer or "", [], sources)
        )
        claims = [{"claim": one["claim_string"], "evidence": one["evidence"]} for one in found.claims]
        yield {"id": id_, "answer": None if answer is None else found.answer, "claims": claims}


def answers_of(predictions: Predictions) -> Iterator[tuple[str, str | None, list[str], bool]]:
    """(id, answer, sources, whether "system" is bing_chat) of each line; see ``split_predictions`` for the fields."""
    for row in predictions.rows:
        where = f"{predictions.path}, line {row.line}"
        answer = row.fields.get("answer")
        if answer is not None and not isinstance(answer, str):
            raise InputError(f"{where}: the answer is {answer!r:.40}; allowed: a string or null")
        sources = _sources(row.fields.get("attribution"), where)
        yield row.id, answer, sources, row.fields.get("system") == "bing_chat"


def as_row(item: Item, field: str) -> dict[str, Any]:
    """A line as a row of the dataset, for ``qabench.benchmarks.expertqa.facts``."""
    claims = [
        {"claim_string": claim["claim"], **{name: value for name, value in claim.items() if name != "claim"}}
        for claim in item["claims"]
    ]
    answer = {"system": "model", "answer_string": item.get("answer") or "", "claims": claims}
    return {"metadata": {"field": field}, "answers": [answer]}


def write_items(path: Path, items: Sequence[Item]) -> None:
    """Writes lines as JSONL."""
    write_text(path, "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items))


def _annotated(question: Any) -> Item:
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
        evidence = claim.get("evidence") or []
        if not isinstance(claim.get("claim"), str) or not _are_strings(evidence):
            raise InputError(f"{where}, claim {number}: claim (a string) and evidence (a list of strings) are required")
    return item | {"claims": [{**claim, "evidence": claim.get("evidence") or []} for claim in claims]}


def _sources(value: Any, where: str) -> list[str]:
    if value is None:
        return []
    if _are_strings(value):
        return list(value)
    if isinstance(value, list) and all(isinstance(one, Mapping) and _are_strings([*_pair(one)]) for one in value):
        return passage_sources([_pair(one) for one in value])
    raise InputError(f"{where}: attribution is {value!r:.40}; allowed: strings, or objects with url and text")


def _pair(source: Mapping[str, Any]) -> tuple[Any, Any]:
    return source.get("url"), source.get("text")


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
