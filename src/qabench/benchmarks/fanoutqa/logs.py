"""Logs of FanOutQA's runs: how their answers are scored again, and what the model was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.declared import Setting
from qabench.benchmarks.logs import UNKNOWN_TEXT, Logs, Renderer
from qabench.data.answers import UNANSWERED
from qabench.data.rows import Json, Row
from qabench.evaluation.scoring import Messages

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation, Record

# Cached replies of the judge depend on these options.
JUDGE_OPTIONS = ("model", "base_url", "parameters", "llm_cache_key")


def pages_read(searches: object) -> object:
    """Return title, URL and id of each page if the model was shown a fragment of it.

    Anything but a list of objects is returned unchanged, and the scorer then reports the error.
    """
    if not isinstance(searches, list):
        return searches
    pages: list[object] = []
    for entry in searches:
        if not isinstance(entry, dict):
            pages.append(entry)
        # A user's solver may not record the number of fragments. Then all its pages count as shown.
        elif entry.get("fragments", 1):
            page = {}
            for name in ("title", "url", "pageid"):
                # Pages of a Kiwix server or a ZIM file have no id.
                if entry.get(name):
                    page[name] = entry[name]
            pages.append(page)
    return pages


class FanOutQALogs(Logs):
    """The logs of FanOutQA's runs."""

    kinds = MappingProxyType(
        {"detail": {"evidence_read": (list, None)}, "arguments": {"judge": (dict, None)}}
    )
    resume_hints = MappingProxyType(
        {
            "tokenizer": "-T tokenizer=FILE with the tokenizer of the log, or make the same one "
            "available",
            "retriever": "-T lemmatizer=, or the same spaCy model (QABENCH_SPACY_MODEL)",
            "wikipedia": "-T wiki=FILE, or the same Wikipedia in the environment",
            "markdownify": "the same version of markdownify",
        }
    )
    model_fields = ("judge", "judge_endpoint", "judge_prompt", "judge_cache_key", "bleurt")
    generation_fields = MappingProxyType({"claude_max_tokens": "max_tokens"})

    def prediction(self, record: Record) -> Json:
        """Return the record's answer, and the pages that were read for it."""
        fields: Json = {"answer": record.answer}
        pages = record.detail.get("evidence_read")
        if pages is not None:
            fields["pages"] = pages
        return fields

    def fields_of_solver(self, metadata: Mapping[str, Any]) -> Json:
        """Return the pages that a user's solver read, if it lists its searches."""
        if "searches" not in metadata:
            return {}
        return {"pages": pages_read(metadata["searches"])}

    def rescored_prediction(self, record: Record) -> Json:
        """Return the prediction of a record. A missing answer is ``UNANSWERED`` instead of None."""
        # As in the official scorer, the answer None would be scored as the string "None".
        answer = UNANSWERED if record.answer is None else record.answer
        return self.prediction(record) | {"answer": answer}

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the options for the run's lemmatizer and judge. The judge makes no calls."""
        options = super().rescoring_options(run)
        if "bleurt" in options["groups"]:
            # BLEURT needs a model that may not be installed here.
            options["groups"].remove("bleurt")
        lemmatizer = run.arguments.get("lemmatizer")
        if lemmatizer in ("auto", "spacy", "simplemma"):
            options["lemmatizer"] = lemmatizer
        if "judge" in options["groups"]:
            judge = run.arguments.get("judge") or {}
            judge_options: Json = {}
            for name in JUDGE_OPTIONS:
                if name in judge:
                    judge_options[name] = judge[name]
            # Only replies in the cache are used: scoring a log again must not cost money.
            judge_options["max_calls"] = 0
            options["judge"] = judge_options
            # A log must not make qabench read a file, so only names of prompts are accepted.
            options["judge_prompt"] = "auto"
            if judge.get("prompt") == "qabench":
                options["judge_prompt"] = "qabench"
        return options

    def first_messages(
        self, setting: Setting, arguments: Mapping[str, Any], prompt: str | None
    ) -> Renderer:
        """Return a function that renders the first message, with ``UNKNOWN_TEXT`` for the pages."""
        from qabench.benchmarks.fanoutqa import prompts
        from qabench.prompts.prompt import check_label, origin_of

        origin = origin_of(prompt, arguments)
        if setting.name == "closed-book":
            candidates = [prompts.closed_book(origin)]
        elif setting.name == "open-book":
            strings = prompts.open_book(origin)
            candidates = [strings.tools, strings.tools_gpt_35, strings.text]
        else:
            candidates = [prompts.evidence_provided(origin)[0]]
        labels = [candidate.label for candidate in candidates]
        check_label(prompt, labels)
        if prompt:
            candidates = [candidate for candidate in candidates if candidate.label == prompt]

        def render(row: Row, record: Record) -> Sequence[Messages]:
            values = {"question": row["question"], "documents": UNKNOWN_TEXT}
            messages = []
            for candidate in candidates:
                needed = {name: values[name] for name in candidate.fields()}
                messages.append(candidate.messages(**needed))
            return messages

        return render

    def scored_replies(self, record: Record) -> list[str]:
        """Return the answer, if there is one."""
        if record.answer is None:
            return []
        return [record.answer]

    def conditions_of_model(
        self, setting: Setting, arguments: Mapping[str, Any], model: Any
    ) -> Mapping[str, str]:
        """Return the signature field for the token counter, in settings with pages."""
        if setting.name == "closed-book":
            return {}
        from qabench.benchmarks.fanoutqa.window import counter_of
        from qabench.io.workers import run_sync

        return {"tokenizer": run_sync(counter_of(model, arguments.get("tokenizer"))).name}
