"""Scores of citations and atomic facts from other papers, which are unofficial for ExpertQA.

Citation recall and precision are those of Gao et al., Enabling Large Language Models to Generate
Text with Citations (ALCE), EMNLP 2023 (https://arxiv.org/abs/2305.14627), section 4.3. A claim is
what ALCE calls a statement, and its evidence is what the statement cites. ALCE's program reads at
most three citations of a statement. Here, all citations count, as in the paper.

Facts per answer and the response ratio are those of Min et al., FActScore, EMNLP 2023
(https://arxiv.org/abs/2305.14251): ``num_facts_per_response`` and ``respond_ratio`` of its program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qabench.data.answers import is_list_of
from qabench.data.rows import Json
from qabench.stats import Interval, mean_interval

Pairs = Sequence[tuple[str, Sequence[str]]]
"""Claims, each with pieces of evidence."""
EVIDENCE_LABELS = "evidence_labels"
"""The field of a claim that has the labels of its pieces of evidence.

A label is {"alone": "Y" or "N", "without": "Y", "N" or None}: whether the piece alone entails the
claim, and whether all other pieces together do. "without" is None if the piece alone entails it.
"""


def citation_columns(claims: Sequence[Mapping[str, Any]], unlabeled: str) -> dict[str, float]:
    """Return the citation recall and precision of an answer, fractions in [0, 1].

    Recall is the share of claims that have evidence and the label Y. A piece of evidence is precise
    if its claim has the label Y, and either the piece alone entails the claim, or the other pieces
    together do not entail it. Precision is the share of precise pieces. As in ALCE's program, it is
    0 for an answer without evidence.

    Args:
        claims: the claims, with evidence, label, and ``EVIDENCE_LABELS``.
        unlabeled: "N" if a claim that has evidence but no label counts as N, or "exclude" if it is
            left out.

    Returns:
        citation_recall and citation_precision. Both are absent if no claim counts. Precision is
        absent if a claim has the label Y and several pieces of evidence, and these have no labels.
    """
    counted = []
    for claim in claims:
        # A claim without evidence needs no label: nothing entails it.
        if not claim["evidence"] or claim["label"] is not None or unlabeled == "N":
            counted.append(claim)
    if not counted:
        return {}
    supported = [claim for claim in counted if claim["evidence"] and claim["label"] == "Y"]
    recall = len(supported) / len(counted)
    n_precise = 0
    for claim in supported:
        pieces: Any = claim.get(EVIDENCE_LABELS)
        if len(claim["evidence"]) == 1:
            # The label of the claim is also the label of its only piece.
            n_precise += 1
        elif are_evidence_labels(pieces, len(claim["evidence"])):
            for piece in pieces:
                n_precise += piece["alone"] == "Y" or piece["without"] == "N"
        else:
            return {"citation_recall": recall}
    n_pieces = sum(len(claim["evidence"] or ()) for claim in counted)
    precision = 0.0
    if n_pieces:
        precision = n_precise / n_pieces
    return {"citation_recall": recall, "citation_precision": precision}


def citation_shares(lines: Sequence[Mapping[str, Any]]) -> list[tuple[str, Interval, int]]:
    """Return (name, mean over answers, number of answers) of citation recall and precision.

    All claims of the lines must have a label. Answers without claims are left out, because they
    have nothing to cite.
    """
    answers = [citation_columns(line["claims"], "N") for line in lines]
    shares = []
    for name in ("citation_recall", "citation_precision"):
        values = []
        for columns in answers:
            if name in columns:
                values.append(columns[name])
        if values:
            shares.append((name.replace("_", " "), mean_interval(values), len(values)))
    return shares


def are_evidence_labels(labels: Any, n_pieces: int) -> bool:
    """Tell whether ``EVIDENCE_LABELS`` has one valid label for each piece of evidence."""
    if not is_list_of(labels, dict) or len(labels) != n_pieces:
        return False
    for label in labels:
        is_unsure = label.get("alone") == "N" and label.get("without") in ("Y", "N")
        if label.get("alone") != "Y" and not is_unsure:
            return False
    return True


def needs_evidence_labels(claim: Mapping[str, Any]) -> bool:
    """Tell whether the precision of a claim's citations depends on labels of pieces of evidence."""
    return claim.get("label") == "Y" and len(claim["evidence"]) > 1


def with_evidence_labels(lines: Sequence[Json], label: Callable[[Pairs], list[str]]) -> list[Json]:
    """Return lines of claims, with the labels of pieces of evidence that precision depends on.

    ``label`` returns the label of each pair of claim and evidence. Pairs that already have a label
    are not labeled again, because a model takes seconds for each.
    """
    labeled_lines = []
    pieces: list[tuple[Json, str, Sequence[str]]] = []
    for line in lines:
        claims = []
        for claim in line["claims"]:
            evidence = claim["evidence"]
            is_complete = are_evidence_labels(claim.get(EVIDENCE_LABELS), len(evidence or ()))
            if needs_evidence_labels(claim) and not is_complete:
                # The claim is copied, because the labels are added to it below.
                claim = {**claim, EVIDENCE_LABELS: []}
                for position, piece in enumerate(evidence):
                    rest = [*evidence[:position], *evidence[position + 1 :]]
                    pieces.append((claim, piece, rest))
            claims.append(claim)
        labeled_lines.append({**line, "claims": claims})
    labels_alone = label([(claim["claim"], [piece]) for claim, piece, _ in pieces])
    # Whether the other pieces entail the claim only matters if the piece alone does not.
    without_piece = []
    for (claim, _, other_pieces), alone in zip(pieces, labels_alone, strict=True):
        if alone == "N":
            without_piece.append((claim["claim"], other_pieces))
    labels_without = iter(label(without_piece))
    for (claim, _, _), alone in zip(pieces, labels_alone, strict=True):
        without = next(labels_without) if alone == "N" else None
        claim[EVIDENCE_LABELS].append({"alone": alone, "without": without})
    return labeled_lines


def fact_columns(claims: Sequence[Mapping[str, Any]], abstains: bool) -> Json:
    """Return the number of atomic facts of an answer, and whether it responds.

    As in FActScore, an answer that abstains or has no atomic facts does not respond, and its number
    of facts is not counted. An answer abstains if it contains one of ExpertQA's phrases. If a claim
    has a fact score but no list of atomic claims, both values are unknown.

    Returns:
        responds (1 or 0) and facts_per_answer, or {} if they are unknown.
    """
    n_facts = 0
    for claim in claims:
        atomic: Any = claim.get("atomic_claims")
        if atomic is None and claim["fact_score"] is not None:
            return {}
        if is_list_of(atomic, object):
            n_facts += len(atomic)
    if abstains or not n_facts:
        return {"responds": 0}
    return {"responds": 1, "facts_per_answer": n_facts}
