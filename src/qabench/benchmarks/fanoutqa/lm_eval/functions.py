"""FanOutQA closed-book in lm-evaluation-harness; the functions that ``_fanoutqa.yaml`` names."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from qabench.answers import UNANSWERED, loads, text_of
from qabench.benchmarks.fanoutqa.normalizing import run_normalizer
from qabench.benchmarks.fanoutqa.prompts import closed_book
from qabench.lm_eval.task import QabenchTask
from qabench.prompts.template import Prompt
from qabench.scoring.accuracy import accuracy
from qabench.scoring.rouge import rouge
from qabench.signature import signature
from qabench.text import Normalizer
from qabench.text.spacy_lemmatizer import MODEL_VARIABLE

UNOFFICIAL = ".unofficial"
"""Ends the names of accuracies that no official lemmatizer stands behind, so that none is taken for another."""


class FanOutQATask(QabenchTask):
    """The questions of a config, asked one by one with nothing but the question."""

    def signatures(self) -> dict[str, str]:
        """Those of accuracy and ROUGE."""
        fields = self.data_fields() | {"prompt": Prompt("own", closed_book("{question}")).label}
        row = self.eval_docs[0]
        backend = rouge([loads(row["answer"])], [""]).backend
        return {
            "acc": signature("fanout_acc", **fields, **_normalizer().signature()),
            "rouge": signature("fanout_rouge", **fields, rouge=backend, stemmer="porter"),
        }


def prompt(doc: Mapping[str, Any]) -> str:
    """What the model is asked; the same as in the Inspect AI task."""
    return closed_book(doc["question"])


def target(doc: Mapping[str, Any]) -> str:
    """The reference as one text, for the log."""
    return text_of(loads(doc["answer"]))


def process_results(doc: Mapping[str, Any], results: Sequence[str | None]) -> dict[str, float]:
    """A question's scores, as fractions: acc.loose, acc.strict (see ``UNOFFICIAL``), rouge1.fscore and so on; and
    ``empty``, 1 where the model said nothing. Where there is no reply at all the scores are 0.
    """
    answer = results[0]
    references, predictions = [loads(doc["answer"])], [UNANSWERED if answer is None else answer]
    normalizer = _normalizer()
    (acc,) = accuracy(references, predictions, normalizer.batch).per_question
    (rouges,) = rouge(references, predictions).per_question
    end = "" if normalizer.lemmatizer.official else UNOFFICIAL
    return {
        f"acc.loose{end}": acc.loose,
        f"acc.strict{end}": int(acc.strict),
        **{f"{kind}.fscore": prf.fscore for kind, prf in rouges.items()},
        "empty": int(not (answer or "").strip()),
    }


def _normalizer() -> Normalizer:
    return _normalizer_for(os.environ.get(MODEL_VARIABLE))


@functools.cache
def _normalizer_for(model: str | None) -> Normalizer:
    # "auto" finds the model by the environment variable, or else an installed one.
    return run_normalizer("auto")
