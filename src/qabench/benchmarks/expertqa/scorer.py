"""ExpertQA's scores in Inspect AI: shares of claims with evidence and of attributed claims, and ROUGE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isnan, nan
from typing import Any

import anyio
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from qabench.benchmarks.expertqa.answers import STORE
from qabench.benchmarks.expertqa.claims import MARK
from qabench.benchmarks.expertqa.labels import attributor as attributor_of
from qabench.neural.nli import MODEL
from qabench.scoring.autoais import AnswerAutoAIS, AutoAIS, autoais
from qabench.scoring.lfqa import LFQA_ROUGE_TYPES, lfqa_rouge
from qabench.signature import signature
from qabench.tasks.common import note_problem

SHARES = ("macro", "micro", "macro_without_abstentions", "micro_without_abstentions")
OF_LABELS = ("autoais", "claims_labelled", "claims_supported")
OF_CLAIMS = ("evidence", "claims", "claims_with_evidence", "abstains")
UNOFFICIAL = "AutoAIS counts every claim with evidence: no expert has said which are supported and worth a citation"
BY_MODEL = "attribution labels come from a language model, not from AutoAIS's entailment model"


@metric(scores="unreduced")
def expertqa_figures() -> Metric:
    """Over all answers and epochs: the share of claims with evidence, AutoAIS, and means of the other scores.

    ``evidence`` is a share of all claims; AutoAIS is as ``qabench.scoring.autoais`` has it; what is undefined for an
    answer is in no mean of it.
    """

    def value(scores: list[SampleScore]) -> Value:
        rows = [one.score.as_dict() for one in scores]
        answers = [_as_autoais(row) for row in rows if _has(row, "claims")]
        claims = sum(answer.claims for answer in answers)
        without = sum(answer.claims_without_evidence for answer in answers)
        found: dict[str, Any] = {"evidence": (claims - without) / claims if claims else None}
        if any("autoais" in row for row in rows):
            shares = asdict(AutoAIS.of(answers))
            found |= {f"autoais_{name}": shares[name] for name in SHARES}
        for name in ("claims", "abstains", *LFQA_ROUGE_TYPES):
            values = [float(row[name] or 0) for row in rows if _has(row, name)]
            found[name] = sum(values) / len(values) if values else None
        return found

    return value


@scorer(name="expertqa", metrics=[expertqa_figures()])
def expertqa_scorer(
    attributor: str = "none", nli_model: str = MODEL, signed: Mapping[str, Any] | None = None
) -> Scorer:
    """What share of an answer's claims has evidence, what share its evidence supports, and ROUGE F-measures.

    ROUGE is that of ``qabench.scoring.lfqa`` against the experts' revised answer, without marks and sources; there is
    none where the config has no such answer. A sample without an answer (an error, a refusal) has no claims; its ROUGE
    is 0, as of any unanswered question there. Claims are labelled by ``attributor``, see ``expertqa_labels``.

    Args:
        signed: what signatures say of data and answers. The task fills it.
    """
    labels_of = attributor_of(attributor, nli_model)

    async def score(state: TaskState, target: Target) -> Score:
        found = state.store.get(STORE) or {"answer": None, "claims": [], "passages": []}
        claims = [(claim["claim_string"], claim["evidence"]) for claim in found["claims"]]
        labels, labelled_by = await labels_of(claims)
        unread = sum(label is None for label in labels) if attributor != "none" else 0
        if unread:
            note_problem(
                state, f"{unread} of {len(labels)} claims have no label: {labelled_by} said neither yes nor no"
            )
        value = _of_claims(found["answer"], claims, labels, attributor != "none")
        of_answer, backend = await anyio.to_thread.run_sync(_rouge, state.metadata.get("expected"), found["answer"])
        fields = {"benchmark": "expertqa", **(signed or {}), "model": str(state.model)}
        signatures = {"expertqa": signature("expertqa_attribution", **fields, attributor=labelled_by)}
        if backend:
            signatures["rouge"] = signature("expertqa_lfqa", **fields, rouge=backend, aggregate="mean")
        detail = {
            "claims": [
                {"text": text, "evidence": list(evidence), "label": label}
                for (text, evidence), label in zip(claims, labels, strict=True)
            ],
            "passages": found["passages"],
        }
        about = {"detail": detail, "signatures": signatures, "unofficial": _unofficial(attributor)}
        return Score(value=value | of_answer, answer=found["answer"], metadata=about)

    return score


def _of_claims(
    answer: str | None, claims: Sequence[tuple[str, Sequence[str]]], labels: Sequence[str | None], labelled: bool
) -> dict[str, Any]:
    names = OF_CLAIMS + OF_LABELS * labelled
    if answer is None:
        return dict.fromkeys(names, nan)
    # In the place of the experts' judgement: every claim is supported and worth it, so that each with evidence counts.
    judged = [
        {"claim_string": text, "evidence": list(evidence), "support": "Complete", "worthiness": "Yes"}
        for text, evidence in claims
    ]
    row = {"answers": [{"system": "model", "answer_string": answer, "claims": judged}]}
    some = any(labels)
    verdicts = list(labels) if some else ["N"] * len(claims)
    ((found,),) = autoais([row], [verdicts], on_unlabelled="exclude").per_question
    counted = found.values if some else ()
    with_evidence = found.claims - found.claims_without_evidence
    values = {
        "evidence": with_evidence / found.claims if found.claims else nan,
        "claims": found.claims,
        "claims_with_evidence": with_evidence,
        "abstains": int(found.abstains),
        "autoais": found.mean if counted and found.mean is not None else nan,
        "claims_labelled": len(counted),
        "claims_supported": sum(counted),
    }
    return {name: values[name] for name in names}


def _as_autoais(row: Mapping[str, Any]) -> AnswerAutoAIS:
    """An answer as its score says it; its claims' order is lost, which no figure needs."""
    supported, labelled = int(row.get("claims_supported", 0)), int(row.get("claims_labelled", 0))
    values = (1,) * supported + (0,) * (labelled - supported)
    without = int(row["claims"]) - int(row["claims_with_evidence"])
    return AnswerAutoAIS("model", bool(row["abstains"]), values, int(row["claims"]), without, 0)


def _rouge(expected: str | None, answer: str | None) -> tuple[dict[str, float], str | None]:
    if expected is None:
        return dict.fromkeys(LFQA_ROUGE_TYPES, nan), None
    found = lfqa_rouge([expected], [None if answer is None else plain(answer)])
    return dict(found.per_question[0]), found.backend


def plain(text: str) -> str:
    """A text as the benchmark's reference answers stand: without marks, on one line."""
    return MARK.sub("", text).replace("\n", " ")


def _has(row: Mapping[str, Any], name: str) -> bool:
    value = row.get(name)
    return value is not None and not isnan(float(value))


def _unofficial(attributor: str) -> str | None:
    if attributor == "none":
        return None
    return f"{UNOFFICIAL}; {BY_MODEL}" if attributor == "model" else UNOFFICIAL
