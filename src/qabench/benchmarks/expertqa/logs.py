"""Logs of ExpertQA's runs: how their answers are scored again, and what the model was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.declared import Setting
from qabench.benchmarks.logs import UNKNOWN_TEXT, Logs, Renderer
from qabench.data.rows import Json, Row
from qabench.evaluation.scoring import Messages

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation, Record


class ExpertQALogs(Logs):
    """The logs of ExpertQA's runs."""

    kinds = MappingProxyType(
        {
            "detail": {
                "claims": ([{"text": str, "evidence": [str], "label": str | None}], None),
                "attribution": ([str], None),
            }
        }
    )
    model_fields = ("labels",)

    def prediction(self, record: Record) -> Json:
        """Return the answer, its claims with evidence and labels, and the sources of its marks."""
        fields: dict[str, Any] = {"answer": record.answer}
        claims = []
        for claim in record.detail.get("claims") or ():
            label = claim.get("label")
            claims.append({"claim": claim["text"], "evidence": claim["evidence"], "label": label})
        if claims:
            fields["claims"] = claims
        if attribution := record.detail.get("attribution"):
            fields["attribution"] = list(attribution)
        return fields

    def rescored_prediction(self, record: Record) -> Json:
        """Return the prediction of a record of a run, where answers have been split into claims."""
        fields: Json = {}
        if record.answer is not None:
            # Without this field, the answer would be split again. An empty list means that it has
            # no claims.
            fields["claims"] = []
        return fields | self.prediction(record)

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the run's split, and the option that leaves out claims without a label."""
        return {"split": run.arguments.get("split"), "unlabeled": "exclude"}

    def first_messages(
        self, setting: Setting, arguments: Mapping[str, Any], prompt: str | None
    ) -> Renderer:
        """Return a function that renders the first message, with ``UNKNOWN_TEXT`` for passages."""
        from qabench.benchmarks.expertqa.answers import prompt_text
        from qabench.prompts.prompt import check_label, origin_of

        template = prompt_text(setting.name, origin_of(prompt, arguments))
        check_label(prompt, [template.label])

        def render(row: Row, record: Record) -> Sequence[Messages]:
            values = {"question": row["question"], "field": row["field"] or ""}
            values |= {"context": UNKNOWN_TEXT, "passages": UNKNOWN_TEXT}
            needed = {name: values[name] for name in template.fields()}
            return [template.messages(**needed)]

        return render
