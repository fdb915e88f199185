"""What FELM's evaluators found: verdicts and replies by response, their scores, and what could not be scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from qabench.benchmarks.felm.claims import FelmClaim
from qabench.llm.caller import Usage
from qabench.scoring.felm import FelmScore, felm_scores
from qabench.signature import digest, signature


@dataclass(frozen=True, slots=True)
class FelmResponse:
    """One response and what the model said of it.

    Attributes:
        replies: as they came, one a sample; None: there is none.
        readable: the same as ``felm_scores`` reads them: on segments, also where the model judged claims.
        reasons: why a sample has no verdict, one for each that has none.
        claims: what the model judged in place of segments; None where it judged these.
    """

    index: str
    domain: str
    labels: tuple[bool, ...]
    replies: tuple[str | None, ...]
    readable: tuple[str | None, ...]
    reasons: tuple[str, ...]
    claims: tuple[FelmClaim, ...] | None = None

    @property
    def unscored(self) -> bool:
        """Whether no sample has a verdict."""
        return len(self.reasons) == len(self.replies)


@dataclass(frozen=True)
class FelmRun:
    """The responses of a run in the order of the input; ``about`` is the evaluator's signature."""

    responses: tuple[FelmResponse, ...]
    about: Mapping[str, object]
    usage: Usage
    models: list[str]

    @cached_property
    def score(self) -> FelmScore:
        """The scores, responses without a verdict left out."""
        return self._score("exclude")

    @cached_property
    def official(self) -> FelmScore:
        """The scores with all segments taken for true where there is no verdict, as upstream."""
        return self._score("correct")

    def as_dict(self, **data: object) -> dict[str, Any]:
        """The figures of ``felm_factuality``, with what was not scored, the figures as upstream has them, and about
        the run; as JSON data.

        Args:
            **data: fields of the signature that say which data it was, such as the config.
        """
        unscored = [
            {"index": response.index, "reason": response.reasons[0]} for response in self.responses if response.unscored
        ]
        n, scored = len(self.responses), len(self.responses) - len(unscored)
        result = self.score.as_dict()
        result["official"] = self.official.as_dict() if scored else None
        result["counts"] = {
            "responses": n,
            "scored": scored,
            "unscored": len(unscored),
            "with_fewer_samples": sum(bool(r.reasons) and not r.unscored for r in self.responses),
            "by_claims": sum(response.claims is not None for response in self.responses),
        }
        references = digest([list(response.labels) for response in self.responses])
        domains = digest([response.domain for response in self.responses])
        line = signature(
            "felm_factuality", **data, references=references, domains=domains, unparsed="exclude", **self.about
        )
        about = {name: self.about[name] for name in ("evaluator", "method", "by", "prompt")}
        return (result | {"unscored": unscored} | about | {"models": self.models, "usage": self.usage.as_dict()}) | {
            "signature": line
        }

    def per_response(self) -> list[dict[str, Any]]:
        """For each response index, domain, verdicts (None: unscored), labels, replies, reasons and claims."""
        rows = []
        for response, score in zip(self.responses, self.score.per_question, strict=True):
            claims = response.claims and [{"segment": claim.segment, "text": claim.text} for claim in response.claims]
            verdicts = None if score.verdicts is None else list(score.verdicts)
            row: dict[str, Any] = {"index": response.index, "domain": response.domain, "verdicts": verdicts}
            row |= {"labels": list(response.labels), "replies": list(response.replies)}
            rows.append(row | {"reasons": list(response.reasons), "claims": claims})
        return rows

    def _score(self, on_unparsed: str) -> FelmScore:
        # Among samples that are to count, those without a verdict are passed over or taken for true.
        return felm_scores(
            [list(response.labels) for response in self.responses],
            [list(response.readable) for response in self.responses],
            domains=[response.domain for response in self.responses],
            on_unparsed=on_unparsed,
        )
