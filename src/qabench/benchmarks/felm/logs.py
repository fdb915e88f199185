"""Logs of FELM's runs: how their replies are scored again, and what the model was asked."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.declared import Setting
from qabench.benchmarks.logs import Logs, Renderer
from qabench.data.rows import Json, Row
from qabench.evaluation.scoring import Messages

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation, Record

# The arguments of the task that change what is asked.
OF_PROMPT = ("method", "claims", "num_cons", "official_quirks", "reply_format")


class FelmLogs(Logs):
    """The logs of FELM's runs."""

    kinds = MappingProxyType(
        {
            "detail": {
                "segments": ([{"label": bool, "type": str | None}], None),
                "replies": ([str | None], None),
                "claims": (list, None),
            },
            "arguments": {"num_cons": int | None},
        }
    )
    generation_fields = MappingProxyType({"sampling_temperature": "temperature"})

    def prediction(self, record: Record) -> Json:
        """Return the reply or the sampled replies, and the claims if claims were judged."""
        from qabench.evaluation import EMPTY

        replies = list(record.detail.get("replies") or [record.answer])
        if record.status == EMPTY:
            # The model has replied, even if the task recorded no text.
            replies = [reply or "" for reply in replies]
        fields: Json = {"reply": replies}
        if len(replies) == 1:
            fields["reply"] = replies[0]
        if claims := record.detail.get("claims"):
            fields["claims"] = list(claims)
        return fields

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the options for the evaluator, and for the format in which replies are read."""
        reply_format = "answer"
        # Vicuna's replies to cot-cons are read after "Answer: ", like all others.
        if (
            run.arguments.get("reply_format") == "vicuna"
            and run.arguments.get("method") != "cot-cons"
        ):
            reply_format = "vicuna"
        return {"reply_format": reply_format, "evaluator": run.model}

    def first_messages(
        self, setting: Setting, arguments: Mapping[str, Any], prompt: str | None
    ) -> Renderer:
        """Return a function that renders the first messages, which ask for verdicts or claims."""
        from qabench.benchmarks.felm.method import FelmMethod
        from qabench.prompts.prompt import check_label, origin_of

        options = {**setting.arguments, "prompt": origin_of(prompt, arguments)}
        for name in OF_PROMPT:
            if arguments.get(name) is not None:
                options[name] = arguments[name]
        with warnings.catch_warnings(action="ignore"):
            # Warnings about the prompts are suppressed, because the run has shown them already.
            asking = FelmMethod(**options)
        check_label(prompt, [asking.prompts.label])

        def render(row: Row, record: Record) -> Sequence[Messages]:
            if asking.by_claims(row):
                return [asking.extraction_messages(row)]
            return [asking.messages(row)]

        return render

    def scored_replies(self, record: Record) -> list[str]:
        """Return the replies. With cot-cons, there are several."""
        return [reply for reply in record.detail.get("replies") or () if reply is not None]
