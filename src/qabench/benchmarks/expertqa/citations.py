"""Scores of citations and atomic facts that other papers report: unofficial for ExpertQA.

Citation recall and precision are those of Gao et al., Enabling Large Language Models to Generate Text
with Citations (ALCE), EMNLP 2023 (https://arxiv.org/abs/2305.14627), section 4.3: a claim is a
statement, its evidence what the statement cites. ALCE's program reads at most three citations of a
statement. Here, all count, as in the paper.

Facts per answer and the response ratio are those of Min et al., FActScore, EMNLP 2023
(https://arxiv.org/abs/2305.14251): ``num_facts_per_response`` and ``respond_ratio`` of its program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qabench.answers import is_list_of
from qabench.data.rows import Json
from qabench.stats import Interval, mean_interval

Pairs = Sequence[tuple[str, Sequence[str]]]
"""Claims, each with pieces of evidence."""
EVIDENCE_LABELS = "evidence_labels"
"""The field of a claim with a label of each piece of evidence.

{"alone": "Y" or "N", "without": "Y", "N" or None}: whether the piece entails the claim, and whether the
other pieces do without it (None: not needed, because the piece does).
"""


def citation_columns(claims: Sequence[Mapping[str, Any]], unlabeled: str) -> dict[str, float]:
    """Return the citation recall and precision of an answer, fractions in [0, 1].

    Recall is the share of claims that have evidence with the label Y. A piece of evidence is precise if its
    claim has the label Y, and it entails the claim alone, or the other pieces do not entail it.
    Precision is the share of precise pieces, and 0 for an answer without evidence, as in ALCE's program.

    Args:
        claims: the claims with evidence, label, and ``EVIDENCE_LABELS``.
        unlabeled: whether a claim with evidence and without a label counts as "N", or is left out
            ("exclude").

    Returns:
        citation_recall and citation_precision. No recall without claims that count. No precision if a
        claim with the label Y and several pieces of evidence lacks their labels.
    """
    counted = [
        claim
        for claim in claims
        if not claim["evidence"] or claim["label"] is not None or unlabeled == "N"
    ]
    if not counted:
        return {}
    supported = [claim for claim in counted if claim["evidence"] and claim["label"] == "Y"]
    columns: dict[str, float] = {"citation_recall": len(supported) / len(counted)}
    precise = 0
    for claim in supported:
        pieces: Any = claim.get(EVIDENCE_LABELS)
        if len(claim["evidence"]) == 1:
            precise += 1
        elif are_evidence_labels(pieces, len(claim["evidence"])):
            precise += sum(piece["alone"] == "Y" or piece["without"] == "N" for piece in pieces)
        else:
            return columns
    n_pieces = sum(len(claim["evidence"] or ()) for claim in counted)
    columns["citation_precision"] = precise / n_pieces if n_pieces else 0.0
    return columns


def citation_shares(items: Sequence[Mapping[str, Any]]) -> list[tuple[str, Interval, int]]:
    """Return name, mean over answers with its interval, and number of answers of citation recall and precision.

    All claims of the lines have a label. Answers without claims are left out.
    """
    answers = [citation_columns(item["claims"], "N") for item in items]
    shares = []
    for name in ("citation_recall", "citation_precision"):
        values = [columns[name] for columns in answers if name in columns]
        if values:
            shares.append((name.replace("_", " "), mean_interval(values), len(values)))
    return shares


def are_evidence_labels(labels: Any, n_pieces: int) -> bool:
    """Tell whether labels are those of this number of pieces of evidence, as in ``EVIDENCE_LABELS``."""
    return (
        is_list_of(labels, dict)
        and len(labels) == n_pieces
        and all(
            label.get("alone") == "Y"
            or (label.get("alone") == "N" and label.get("without") in ("Y", "N"))
            for label in labels
        )
    )


def needs_evidence_labels(claim: Mapping[str, Any]) -> bool:
    """Tell whether the precision of a claim's citations depends on labels of each piece of its evidence."""
    return claim.get("label") == "Y" and len(claim["evidence"]) > 1


def with_evidence_labels(items: Sequence[Json], label: Callable[[Pairs], list[str]]) -> list[Json]:
    """Return lines of claims with the labels of each piece of evidence, where precision depends on them.

    Labels that are there are kept. ``label`` returns the label of each pair of claim and evidence.
    """
    lacking = [
        claim
        for item in items
        for claim in item["claims"]
        if needs_evidence_labels(claim)
        and not are_evidence_labels(claim.get(EVIDENCE_LABELS), len(claim["evidence"]))
    ]
    pieces = [(claim, place) for claim in lacking for place in range(len(claim["evidence"]))]
    alone = label([(claim["claim"], [claim["evidence"][place]]) for claim, place in pieces])
    # The other pieces only matter where a piece does not entail the claim.
    unsure = [piece for piece, own in zip(pieces, alone, strict=True) if own == "N"]
    others = []
    for claim, place in unsure:
        evidence = claim["evidence"]
        others.append((claim["claim"], [*evidence[:place], *evidence[place + 1 :]]))
    without = iter(label(others))
    labels: dict[int, list[Json]] = {id(claim): [] for claim in lacking}
    for (claim, _), own in zip(pieces, alone, strict=True):
        labels[id(claim)].append({"alone": own, "without": next(without) if own == "N" else None})
    labeled = []
    for item in items:
        claims = [
            {**claim, EVIDENCE_LABELS: labels[id(claim)]} if id(claim) in labels else claim
            for claim in item["claims"]
        ]
        labeled.append({**item, "claims": claims})
    return labeled


def fact_columns(claims: Sequence[Mapping[str, Any]], abstains: bool) -> Json:
    """Return the number of atomic facts of an answer, and whether it responds.

    As in FActScore, an answer that abstains or has no atomic facts does not respond, and has no number
    of facts. What abstains is decided by ExpertQA's phrases. Without a claim, an answer does not respond.
    A claim with a fact score and without atomic claims makes both unknown.

    Returns:
        responds (1 or 0) and facts_per_answer, or {} if they are unknown.
    """
    facts = 0
    for claim in claims:
        atomic: Any = claim.get("atomic_claims")
        if atomic is None and claim["fact_score"] is not None:
            return {}
        facts += len(atomic) if is_list_of(atomic, object) else 0
    if abstains or not facts:
        return {"responds": 0}
    return {"responds": 1, "facts_per_answer": facts}
