"""Compute AutoAIS of any claims: the share that an NLI model labels Y.

In contrast to the module ``agreement``, all claims count, because no expert has judged them.
"""

from __future__ import annotations

from collections.abc import Sequence

from qabench.benchmarks.expertqa.agreement import AnswerAutoAIS
from qabench.benchmarks.expertqa.claim_lines import ClaimsLine
from qabench.benchmarks.expertqa.scores import SCORES
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.evaluation.records import scores_of
from qabench.evaluation.scoring import Outcome, records_of
from qabench.models.entailment import Entailment, label_claims


def with_labels(lines: Sequence[ClaimsLine], model: Entailment) -> list[ClaimsLine]:
    """Return lines whose claims have the label Y if their evidence entails them, else N."""
    pairs = []
    for line in lines:
        for claim in line["claims"]:
            pairs.append((claim["claim"], claim["evidence"]))
    labels = iter(label_claims(pairs, model))
    labeled = []
    for line in lines:
        claims = [{**claim, "label": next(labels)} for claim in line["claims"]]
        labeled.append({**line, "claims": claims})
    return labeled


def supported_outcomes(lines: Sequence[ClaimsLine]) -> list[Outcome]:
    """Return the columns of AutoAIS for answers with labeled claims, all of which count."""
    outcomes = []
    for line in lines:
        values = tuple(int(claim["label"] == "Y") for claim in line["claims"])
        score = AnswerAutoAIS("model", False, values, len(values), 0, 0)
        columns: dict[str, float] = {}
        if values:
            # An answer without claims gets no columns, so no mean includes it.
            columns = score.columns()
        outcomes.append(Outcome(columns, result=score))
    return outcomes


def share_supported(outcomes: Sequence[Outcome]) -> Json:
    """Return the share of claims with the label Y, from the outcomes of ``supported_outcomes``.

    ``macro`` is the mean over answers, and ``micro`` the share of all claims. Answers without
    claims are left out. Both 95% intervals treat answers as the units, because the claims of an
    answer are not independent.

    Raises:
        InputError: there are no claims.
    """

    values = scores_of(SCORES, records_of(outcomes))
    if "autoais_micro" not in values:
        raise InputError("nothing to score: no answer has a claim")
    macro, micro = values["autoais_macro"], values["autoais_micro"]
    return {
        "macro": macro.value,
        "micro": micro.value,
        "macro_interval": [macro.low, macro.high],
        "micro_interval": [micro.low, micro.high],
        "answers": macro.n,
        "answers_without_claims": macro.left_out,
        "claims": micro.n,
    }
