"""FanOutQA closed-book in lm-evaluation-harness: the functions named in ``_fanoutqa.yaml``."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from qabench.answers import UNANSWERED, loads, text_of
from qabench.benchmarks.fanoutqa.evaluate import Scorers, Scores, score_answers
from qabench.benchmarks.fanoutqa.official import DECLARATIONS
from qabench.benchmarks.fanoutqa.prompts import closed_book
from qabench.lm_eval.task import QabenchTask
from qabench.tasks.prompts import AUTO, Prompt
from qabench.text.lemmatizers import MODEL_VARIABLE
from qabench.text.normalize import shared_normalizer


class FanOutQATask(QabenchTask):
    """The questions of a config, each asked alone.

    ``fanoutqa_prompt`` in the metadata is "auto", "official" or "qabench"; see the task
    ``fanoutqa_closed_book``.
    """

    DECLARATIONS = DECLARATIONS

    def signatures(self) -> dict[str, str]:
        """Return the signatures of accuracy and ROUGE."""
        fields = (
            self.data_fields()
            | {"prompt": self.asking.label, "protocol": "qabench"}
            | self.generation_fields()
        )
        return _scores(self.eval_docs[0], "", fields).signatures

    def doc_to_text(self, doc: Mapping[str, Any], doc_to_text: Any = None) -> str:
        """Return the user message, the same as in the Inspect AI task."""
        return self.asking.filled(question=doc["question"])

    @functools.cached_property
    def asking(self) -> Prompt:
        """Return the prompt."""
        return closed_book(self.config.metadata.get("fanoutqa_prompt", AUTO))


def target(doc: Mapping[str, Any]) -> str:
    """Return the reference as a string, for the log."""
    return text_of(loads(doc["answer"]))


def process_results(doc: Mapping[str, Any], results: Sequence[str | None]) -> dict[str, float]:
    """Return a question's scores, as fractions: acc.loose, acc.strict, rouge1.fscore and so on; 0 without a reply.

    ``empty`` is 1 for an empty or missing reply.
    """
    answer = results[0]
    scores = _scores(doc, UNANSWERED if answer is None else answer, {}).rows[0]
    shown = {
        name: value
        for name, value in scores.items()
        if name.startswith("acc.") or name.endswith(".fscore")
    }
    return shown | {"empty": int(not (answer or "").strip())}


def _scores(doc: Mapping[str, Any], prediction: Any, fields: Mapping[str, Any]) -> Scores:
    scorers = _scorers(os.environ.get(MODEL_VARIABLE))
    return score_answers(
        [doc.get("question", "")], [loads(doc["answer"])], [prediction], scorers, fields
    )


@functools.cache
def _scorers(model: str | None) -> Scorers:
    # "auto" finds the model in the environment variable, or an installed one.
    return Scorers(shared_normalizer("auto"))
