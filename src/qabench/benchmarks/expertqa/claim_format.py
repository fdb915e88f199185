"""Read and check the claims of a line {"id", "answer", "claims"}, in any known form.

A claim is {"claim", "evidence", "label", "fact_score", ...}. Files of claims and files of
predictions have such claims.
"""

from __future__ import annotations

from typing import Any

from qabench.benchmarks.expertqa.fields import LABELS, label_of, listed, sources_of
from qabench.data.answers import is_list_of
from qabench.data.rows import Json
from qabench.errors import InputError


def read_claims(claims: Any) -> list[Json]:
    """Return claims with "evidence" as a list of strings and "label" as "Y", "N" or None.

    Other names of evidence and other forms of labels are read, too (see ``fields``). The text in a
    cell of a CSV file is read as a JSON list of claims.

    Raises:
        InputError: the claims have another format.
    """
    claims = listed(claims)
    if not is_list_of(claims, dict):
        raise InputError(
            f"claims is {claims!r:.40}; allowed: a list of objects with claim, evidence, label"
        )
    read = []
    for number, claim in enumerate(claims, start=1):
        try:
            evidence = _evidence_of(claim)
        except InputError as error:
            raise InputError(f"claim {number}: {error}") from None
        own = {**claim, "evidence": evidence}
        if "label" in claim:
            own["label"] = label_of(claim["label"])
        read.append(own)
    for number, claim in enumerate(read, start=1):
        _check(claim, number)
    return read


def without_unreadable_labels(claims: Any) -> tuple[Any, str | None]:
    """Remove unreadable labels from claims. Also return a sentence about these labels, or None.

    A label that is neither "Y" nor "N" must not make the whole answer unusable, so its claim counts
    as unlabeled. Values that are not a list of objects are returned as they are, and ``read_claims``
    raises the error for them.
    """
    claims = listed(claims)
    if not is_list_of(claims, dict):
        return claims, None
    readable = []
    unreadable: dict[str, None] = {}
    for claim in claims:
        label = claim.get("label")
        if label_of(label) in ("Y", "N", None):
            readable.append(claim)
        else:
            readable.append({**claim, "label": None})
            unreadable[f"{label!r:.40}"] = None
    if not unreadable:
        return readable, None
    problem = f"a claim has the label {' or '.join(unreadable)}, which counts as no label; allowed: {LABELS}"
    return readable, problem


def _evidence_of(claim: Json) -> list[str]:
    """Return the evidence of a claim, or [] if it has none.

    A list of strings in "evidence" is returned even if it is empty and another field has a list: an
    empty list means that the claim cites nothing.

    Raises:
        InputError: the evidence is not a list of strings or of objects with text.
    """
    evidence = claim.get("evidence")
    if isinstance(evidence, list) and is_list_of(evidence, str):
        return evidence
    # In an answer, "attribution" has the sources of the whole answer. If a claim has such a field,
    # it is ignored, because these are not the sources that the claim cites.
    return sources_of({**claim, "attribution": None}).texts


def _check(claim: Json, number: int) -> None:
    """Raise InputError if a field of a claim (except evidence) has a value that is not allowed."""
    allowed = {
        "claim": (isinstance(claim.get("claim"), str), "a string"),
        "label": (label_of(claim.get("label")) in ("Y", "N", None), LABELS),
    }
    for name in ("fact_score", "fact_score_readable"):
        score: Any = claim.get(name)
        # The type is compared because bool is a subclass of int.
        is_fraction = type(score) in (int, float) and 0 <= score <= 1
        allowed[name] = (score is None or is_fraction, "a number from 0 to 1, or null")
    for name, (is_valid, what) in allowed.items():
        if not is_valid:
            raise InputError(
                f"claim {number}: its {name} is {claim.get(name)!r:.40}; allowed: {what}"
            )
