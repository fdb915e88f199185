"""Logs of fastbook's runs: how their answers are scored again, and what the model was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.declared import Setting
from qabench.benchmarks.logs import Logs, Renderer
from qabench.data.rows import Json, Row
from qabench.evaluation.records import MISSING
from qabench.evaluation.scoring import Messages

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation, Record


class FastbookLogs(Logs):
    """The logs of fastbook's runs."""

    kinds = MappingProxyType(
        {
            "detail": {
                "passages": ([{"text": str}], None),
                "components": ([{"rank": int | None}], None),
                "k": int | None,
            },
            "arguments": {"k": int | None},
        }
    )
    groups_without_model = ("retrieval",)

    def prediction(self, record: Record) -> Json:
        """Return the model's answer and the texts of the retrieved passages, best first."""
        fields: Json = {"answer": record.answer}
        # An empty list means that nothing was retrieved, which scores 0. A missing list means that
        # the retrieval is not scored.
        if "passages" in record.detail and record.status_of("retrieval") != MISSING:
            fields["passages"] = _passages(record)
        return fields

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the options for the run's groups of scores and its cutoff."""
        return super().rescoring_options(run) | {"k": run.arguments.get("k", 10)}

    def first_messages(
        self, setting: Setting, arguments: Mapping[str, Any], prompt: str | None
    ) -> Renderer:
        """Return a function that renders the message, with the passages that the record has."""
        from qabench.benchmarks.fastbook.prompt import messages

        def render(row: Row, record: Record) -> Sequence[Messages]:
            texts = _passages(record)[: arguments.get("k") or None]
            return [messages(texts, row["question_text"])]

        return render

    def scored_replies(self, record: Record) -> list[str]:
        """Return the answer, if there is one."""
        if record.answer is None:
            return []
        return [record.answer]


def _passages(record: Record) -> list[str]:
    return [passage["text"] for passage in record.detail.get("passages") or ()]
