"""FELM in lm-evaluation-harness: the functions named in ``_felm.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any

from qabench.benchmarks.felm.evaluate import reference
from qabench.benchmarks.felm.formulas import FUNCTIONS
from qabench.benchmarks.felm.method import FelmMethod
from qabench.benchmarks.felm.official import DECLARATIONS, signatures
from qabench.benchmarks.felm.scores import Confusion, response_score
from qabench.lm_eval.task import QabenchTask

Counts = Mapping[str, int]
"""The tp, tn, fp and fn of a response; see ``Confusion``."""


class FelmTask(QabenchTask):
    """The responses of a config; ``felm_method`` ("raw", "cot") and ``felm_prompt`` in the metadata select the prompt.

    ``felm_prompt``: "official", "qabench" or a file; see ``qabench.benchmarks.felm.method.FelmMethod``.
    ``lm_eval --metadata felm_prompt=qabench`` changes it.
    """

    DECLARATIONS = DECLARATIONS

    def signatures(self) -> dict[str, str]:
        """Return the signature of the official scores."""
        fields = {name: value for name, value in self.data_fields().items() if name != "benchmark"}
        return {"felm": signatures(fields | self.asking.fields() | self.generation_fields())["felm"]}

    def doc_to_text(self, doc: Mapping[str, Any], doc_to_text: Any = None) -> str:
        """Return the user message."""
        return dict(self.asking.messages(doc))["user"]

    def fewshot_context(self, doc: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        """Return the whole context with the system message: as a message in a chat, else before the prompt."""
        # Without a chat template, the harness joins both without a separator. The YAML's description is this field.
        end = "" if options.get("apply_chat_template") else "\n\n"
        system = dict(self.asking.messages(doc)).get("system", "") + end
        return super().fewshot_context({**doc, "system_message": system}, *args, **options)

    @cached_property
    def asking(self) -> FelmMethod:
        """Return how a model is prompted."""
        about = self.config.metadata
        return FelmMethod(about["felm_method"], prompt=about["felm_prompt"])


target = reference  # for the log: the reply that states the labels


def process_results(doc: Mapping[str, Any], results: Sequence[str | None]) -> dict[str, Any]:
    """Return the counts of a response, for each score that the aggregations below compute from their sums.

    Also whether the reply is ``unparsed`` (without a verdict) or ``unanswered`` (missing).
    """
    score = response_score(doc["labels"], results[0])
    segments, response = asdict(score.segments), asdict(score.response)
    return {
        **dict.fromkeys(FUNCTIONS, segments),
        "responses_f1": response,
        "responses_balanced_accuracy": response,
        "unparsed": score.unparsed,
        "unanswered": score.unanswered,
    }


def _aggregated(name: str, items: Sequence[Counts]) -> float | None:
    return Confusion.total(Confusion(**counts) for counts in items).scores()[name]


# Each is a score of the summed counts, or None if it is undefined; see ``qabench.benchmarks.felm.scores``.
f1, precision, recall, balanced_accuracy = (
    partial(_aggregated, name) for name in ("f1", "precision", "recall", "balanced_accuracy")
)
