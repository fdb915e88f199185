"""AutoAIS of any answers: the share of claims that their evidence entails, without ExpertQA's questions.

The authors count only the claims that experts found fully supported and worth a citation. Here no
expert has judged the claims, so all of them count, and the score is never official.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabench.benchmarks.expertqa.claims import (
    Item,
    cited,
    is_texts,
    sentence_splitter,
    split_claims,
)
from qabench.data.rows import Json, Row
from qabench.errors import InputError
from qabench.stats import Interval, bootstrap, bootstrap_mean


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
        evidence = row.get("evidence") or []
        if not is_texts(evidence):
            raise InputError(f"evidence is {evidence!r:.40}; allowed: a list of strings")
        answer, claims = row.get("answer"), row.get("claims")
        if claims is not None:
            found = _given(claims, evidence)
        elif isinstance(answer, str):
            found = _split(answer, evidence)
        else:
            raise InputError(f"answer is {answer!r:.40}; allowed: a string, or a list of claims")
    except InputError as error:
        raise InputError(f"row {number}: {error}") from None
    return {"id": str(row.get("id", number)), "answer": answer, "claims": found}


def _given(claims: Any, evidence: list[str]) -> list[Item]:
    if not isinstance(claims, list):
        raise InputError(f"claims is {claims!r:.40}; allowed: a list")
    objects = [{"claim": claim} if isinstance(claim, str) else claim for claim in claims]
    for claim in objects:
        texts = claim.get("evidence") if isinstance(claim, Mapping) else None
        if not isinstance(claim, Mapping) or not isinstance(claim.get("claim"), str):
            raise InputError(
                f"a claim is {claim!r:.40}; allowed: a string, or an object with claim"
            )
        if texts is not None and not is_texts(texts):
            raise InputError(f"a claim's evidence is {texts!r:.40}; allowed: a list of strings")
    return [
        {"claim": claim["claim"], "evidence": evidence if own is None else own}
        for claim in objects
        for own in [claim.get("evidence")]
    ]


def _split(answer: str, evidence: list[str]) -> list[Item]:
    claims = split_claims(answer, evidence).claims
    with_marks = bool(cited(answer, evidence))
    return [
        {
            "claim": claim["claim_string"],
            "evidence": claim["evidence"] if with_marks else evidence,
        }
        for claim in claims
    ]


def claim_fields(rows: Sequence[Row]) -> dict[str, str]:
    """Return the fields of signatures for claims: given, or the splitter, and that all count."""
    given = all(row.get("claims") is not None for row in rows)
    claims = "given" if given else sentence_splitter()[0]
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
        "macro_interval": _bounds(macro),
        "micro_interval": _bounds(micro),
        "answers": len(items),
        "answers_without_claims": len(items) - len(counts),
        "claims": len(claims),
        "claims_without_evidence": sum(not claim["evidence"] for claim in claims),
    }


def _bounds(interval: Interval) -> list[float | None]:
    return [interval.low, interval.high]
