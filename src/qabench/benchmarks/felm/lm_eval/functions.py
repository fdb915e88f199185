"""FELM in lm-evaluation-harness: which segments of a response are wrong? The functions that ``_felm.yaml`` names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from functools import cached_property
from typing import Any

from qabench.benchmarks.felm.claims import as_reply
from qabench.benchmarks.felm.method import FelmMethod, felm_method
from qabench.errors import SourceUnavailable
from qabench.lm_eval.task import QabenchTask
from qabench.loading_scripts import open_path
from qabench.scoring.felm import Confusion, felm_scores
from qabench.signature import signature

Counts = Sequence[int]
"""A response's tp, tn, fp and fn; see ``qabench.scoring.felm.Confusion``."""

OF_SEGMENTS = ("f1", "precision", "recall", "balanced_accuracy")
OF_RESPONSES = ("responses_f1", "responses_balanced_accuracy")


class FelmTask(QabenchTask):
    """The responses of a config; metadata ``felm_method`` ("raw", "cot") and ``felm_prompt`` say how a model is asked.

    ``felm_prompt``: "official", the authors' files; "own", this project's words; or a file, see
    ``qabench.benchmarks.felm.prompts.felm_prompts``. ``lm_eval --metadata felm_prompt=own`` changes it.
    """

    def signatures(self) -> dict[str, str]:
        """That of all figures; a reply without a verdict counts as upstream has it: all segments are true."""
        # How replies are generated stands beside it in the configs: --gen_kwargs can still change that.
        asked = {name: value for name, value in self.asking.fields().items() if name not in self.asking.parameters}
        return {"felm": signature("felm_factuality", **self.data_fields(), unparsed="correct", **asked)}

    def doc_to_text(self, doc: Mapping[str, Any], doc_to_text: Any = None) -> str:
        """What the model is asked."""
        return self._message(doc, "user")

    def fewshot_context(self, doc: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        """The whole context, with the system message: in a chat one of its own, else before the prompt."""
        # Without a template, the harness puts nothing between the two. The YAML's description is this field.
        end = "" if options.get("apply_chat_template") else "\n\n"
        return super().fewshot_context({**doc, "system_message": self._message(doc, "system") + end}, *args, **options)

    def _message(self, doc: Mapping[str, Any], role: str) -> str:
        return dict(self.asking.messages(doc, None))[role]

    @cached_property
    def asking(self) -> FelmMethod:
        """How a model is asked."""
        about = self.config.metadata
        return felm_method(about["felm_method"], prompt=about["felm_prompt"], official_text=_official_text)


def target(doc: Mapping[str, Any]) -> str:
    """The right reply, for the log."""
    return as_reply(doc["labels"])


def process_results(doc: Mapping[str, Any], results: Sequence[str | None]) -> dict[str, Any]:
    """For each figure the response's counts, which the aggregations below add up; and whether the reply was
    ``unparsed`` (no verdict could be read from it) or ``unanswered`` (there was none).
    """
    (score,) = felm_scores([doc["labels"]], [results[0]]).per_question
    return {
        **{figure: list(astuple(score.segments)) for figure in OF_SEGMENTS},
        **{figure: list(astuple(score.response)) for figure in OF_RESPONSES},
        "unparsed": score.unparsed,
        "unanswered": score.unanswered,
    }


def f1(items: Sequence[Counts]) -> float | None:
    """F1 of errors; this and the following are None where they are undefined, as in ``felm_scores``."""
    return _total(items).f1


def precision(items: Sequence[Counts]) -> float | None:
    """The share of predicted errors that are errors."""
    return _total(items).precision


def recall(items: Sequence[Counts]) -> float | None:
    """The share of errors that were found."""
    return _total(items).recall


def balanced_accuracy(items: Sequence[Counts]) -> float | None:
    """The mean of the recalls of true ones and of errors."""
    return _total(items).balanced_accuracy


def _total(items: Sequence[Counts]) -> Confusion:
    return Confusion.total(Confusion(*counts) for counts in items)


def _official_text(path: str) -> str:
    try:
        return open_path("felm", f"eval/prompt/{path}").read_text(encoding="utf-8")
    except SourceUnavailable as error:
        raise SourceUnavailable(
            f"a prompt of FELM's authors cannot be had. {error}\nOr ask in this project's words, which is no official "
            "run: lm_eval --metadata felm_prompt=own"
        ) from error
