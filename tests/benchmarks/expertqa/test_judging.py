"""Judges of claims get the annotated claims, and each reply belongs to its claim."""

from pathlib import Path

import pytest

import qabench
from qabench.benchmarks.expertqa.questions import annotated_claims
from qabench.llm.caller import caller_for
from qabench.llm.exchange import Answered

pytestmark = pytest.mark.quick


def test_claims_that_were_not_asked_have_no_verdict(mirror: Path) -> None:
    """Replies to a part of the calls, such as after a limit."""
    scorer = qabench.benchmark("expertqa")
    questions = scorer.load("sample").rows
    calls = scorer.judging().calls(questions, caller_for("m", "http://localhost:1/v1", None), None, "auto")
    part = calls[::2]
    assert 0 < len(part) < len(calls)
    rows = scorer.judging().predictions(questions, part, [Answered("True")] * len(part))
    claims = [claim for row in rows for claim in row["claims"]]
    assert len(claims) == len(calls)
    assert [claim.get("call_failed") for claim in claims[:2]] == [None, "not asked"]
    evaluation = qabench.evaluate_predictions("expertqa", "sample", rows)
    judged = [item for score in scorer.judging().scores(evaluation) for item in score.items if score.name == "correct"]
    assert 0 < len(judged) <= len(part)


def test_verdicts_on_other_claims_are_not_compared(mirror: Path) -> None:
    """Experts have judged the claims of the annotated answer, not those of another one."""
    scorer = qabench.benchmark("expertqa")
    own, other = [], []
    for question in scorer.load("sample").rows:
        for rows, prefix in ((own, ""), (other, "Another one: ")):
            claims = []
            for claim in annotated_claims(question.row):
                text = prefix + claim["claim_string"]
                claims.append({"claim": text, "evidence": claim["evidence"], "label": "Y", "fact_score": 1.0})
            rows.append({"id": question.id, "claims": claims})
    names = []
    for rows in (own, other):
        scores = scorer.judging().scores(qabench.evaluate_predictions("expertqa", "sample", rows))
        names.append({score.name for score in scores} & {"supported", "correct"})
    assert names == [{"supported", "correct"}, set()]
