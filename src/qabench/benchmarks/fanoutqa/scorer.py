"""FanOutQA's scores of a sample: the same functions, normaliser and figures as ``qabench score``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import anyio
from inspect_ai.scorer import Score, Scorer, Target, scorer, stderr
from inspect_ai.solver import TaskState

from qabench.answers import UNANSWERED, loads
from qabench.benchmarks.fanoutqa.normalizing import run_normalizer
from qabench.benchmarks.fanoutqa.predictions import METRICS
from qabench.errors import InputError
from qabench.scoring.accuracy import accuracy, found_strings
from qabench.scoring.rouge import rouge
from qabench.signature import signature
from qabench.tasks.common import answer_of, texts
from qabench.tasks.metrics import mean
from qabench.text import Normalizer


@scorer(name="fanoutqa", metrics={"*": [mean(), stderr()]})
def fanoutqa_scorer(
    metrics: str = "acc,rouge", lemmatizer: str = "auto", signed: Mapping[str, Any] | None = None
) -> Scorer:
    """Loose and strict accuracy and ROUGE F-scores of a reply, as fractions; what was found and what was missed.

    A sample without an answer (an error, a refusal, no reply) scores 0 in all, as the official scorer has it; an empty
    reply is an empty answer.

    Args:
        metrics: of "acc" and "rouge", with commas.
        lemmatizer: for "acc"; see ``qabench.text.resolve_lemmatizer``. Only spaCy's ``en_core_web_sm`` is official.
        signed: what the signatures say of the data: config, data, references. The task fills it.

    Raises:
        InputError: an unknown metric. MissingExtra: the lemmatizer is not installed.
    """
    wanted = _wanted(metrics)
    scoring = _Scoring(wanted, lemmatizer, dict(signed or {}))

    async def score(state: TaskState, target: Target) -> Score:
        answer = answer_of(state)
        reference = loads(state.metadata["answer"])
        return await anyio.to_thread.run_sync(scoring.score, reference, answer)

    return score


def _wanted(metrics: str) -> list[str]:
    wanted = texts(metrics)
    if not wanted or set(wanted) - set(METRICS):
        raise InputError(f"metrics are {metrics!r}; allowed: {', '.join(METRICS)}, with commas")
    return wanted


@dataclass
class _Scoring:
    metrics: list[str]
    lemmatizer: str
    signed: dict[str, Any]

    @cached_property
    def normalizer(self) -> Normalizer:
        return run_normalizer(self.lemmatizer)

    def score(self, reference: Any, answer: str | None) -> Score:
        prediction = UNANSWERED if answer is None else answer
        values: dict[str, float] = {}
        detail: dict[str, list[str]] = {}
        signatures: dict[str, str] = {}
        unofficial = None
        data = {"benchmark": "fanoutqa", **self.signed, "only_score_answered": False}
        if "acc" in self.metrics:
            forms: dict[str, str] = {}

            def normalize(strings: Iterable[Any]) -> Mapping[str, str]:
                forms.update(self.normalizer.batch(strings))
                return forms

            (acc,) = accuracy([reference], [prediction], normalize).per_question
            values |= {"acc.loose": float(acc.loose), "acc.strict": float(acc.strict)}
            detail = {"found": found_strings(reference, forms, acc.missing), "missing": list(acc.missing)}
            signatures["acc"] = signature("fanout_acc", **data, **self.normalizer.signature())
            unofficial = None if self.normalizer.lemmatizer.official else self.normalizer.lemmatizer.name
        if "rouge" in self.metrics:
            rouges = rouge([reference], [prediction])
            values |= {f"{kind}.fscore": float(prf.fscore) for kind, prf in rouges.per_question[0].items()}
            signatures["rouge"] = signature("fanout_rouge", **data, rouge=rouges.backend, stemmer="porter")
        about = {"detail": detail, "signatures": signatures, "unofficial": unofficial}
        return Score(value=values, answer=answer, metadata=about)
