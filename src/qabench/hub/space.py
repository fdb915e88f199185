"""The page of a metric on a Space: a form over the metric's ``example.json``.

Input is scored in memory. Visitors set only harmless options: booleans, integers, and strings with
documented choices. Servers, keys, models and files are the host's. (The widget of ``evaluate`` does
not run on current versions of gradio.)
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from typing import Any

from qabench.data.predictions import some
from qabench.data.rows import Json
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.io.limits import json_of, why_not_json
from qabench.io.tables import Table, flattened, markdown_text
from qabench.loading import load_metric
from qabench.metrics import metric_folder

MAX_CHARACTERS = 5_000_000
MAX_JUDGE_CALLS = 100  # to limit the costs of the host
NOT_SHOWN = ("signature", "deviations", "absent", "per_question", "raw")
HOW = "Paste JSON lists of the same length. `null` is an unanswered question."


def page(metric: str) -> Any:
    """Return the page of a metric.

    Its API has one endpoint, ``score``, with the names of the inputs.
    """
    try:
        import gradio
    except ImportError:
        raise MissingExtra(
            "the page of a metric needs gradio: pip install 'qabench[space]'"
        ) from None
    import yaml

    readme = (metric_folder(metric) / "README.md").read_text(encoding="utf-8")
    _, front, card = readme.split("---\n", 2)
    about = yaml.safe_load(front)
    example = _example(metric)
    inputs: Json = {}
    for name, text in example["columns"].items():
        inputs[name] = gradio.Textbox(text, label=name.capitalize(), lines=6, max_lines=20)
    for option in options_of(load_metric(metric)).values():
        inputs[option["label"]] = _control(gradio, **option)

    def respond(*values: Any) -> tuple[str, str | None]:
        return answer(metric, dict(zip(inputs, values, strict=True)))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named = [inspect.Parameter(name, kind, default=None) for name in inputs]
    respond.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return gradio.Interface(
        respond,
        list(inputs.values()),
        [
            gradio.Markdown(latex_delimiters=[]),
            gradio.Code(label="Exact result", language="json", interactive=False, max_lines=24),
        ],
        title=about["title"],
        description="\n\n".join(filter(None, [about["description"], example["note"], HOW])),
        article=card,
        flagging_mode="never",
        submit_btn="Score",
        clear_btn=None,
        analytics_enabled=False,
        api_name="score",
        delete_cache=(
            3600,
            3600,
        ),  # visitors can upload files, although the form has no use for them
    )


def _example(metric: str) -> Json:
    """Return the note of a metric's example, and the text of each column."""
    columns = json.loads((metric_folder(metric) / "example.json").read_text(encoding="utf-8"))
    note = columns.pop("note", "")
    texts = {}
    for name, values in columns.items():
        lines = ",\n".join(f"  {json.dumps(value, ensure_ascii=False)}" for value in values)
        texts[name] = f"[\n{lines}\n]"
    return {"note": note, "columns": texts}


def _parameters(metric: Any) -> Mapping[str, inspect.Parameter]:
    return {
        **inspect.signature(metric.score).parameters,
        **inspect.signature(metric._compute).parameters,
    }


def options_of(metric: Any) -> dict[str, dict[str, Any]]:
    """Return the options that a page offers, by name: label, info, default and choices."""
    arguments = metric.inputs_description.partition("Args:\n")[2].partition("\nReturns:")[0]
    paragraphs = re.findall(r"^ {4}(\w+): (.*(?:\n {5}.*)*)", arguments, re.MULTILINE)
    about = {name: " ".join(text.split()) for name, text in paragraphs}
    options = {}
    for name, parameter in _parameters(metric).items():
        default, info = parameter.default, about.get(name, "")
        quoted = re.findall(r'"([\w.-]+)"', info) if isinstance(default, str) else []
        choices = list(dict.fromkeys([default, *quoted]))
        if isinstance(default, int) or len(choices) > 1:
            options[name] = {"label": name, "info": info, "default": default, "choices": choices}
    return options


def _control(gradio: Any, label: str, info: str, default: Any, choices: list[Any]) -> Any:
    if isinstance(default, bool):  # users of the page want scores by question
        return gradio.Checkbox(default or label == "per_question", label=label, info=info)
    if isinstance(default, int):
        return gradio.Number(default, precision=0, label=label, info=info)
    return gradio.Dropdown(choices, value=default, label=label, info=info)


def answer(metric: str, values: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the Markdown for a user's input, and the result as JSON, or None if it cannot be scored.

    Args:
        metric: the name of the metric.
        values: by name: texts and options. Missing options, and those that are None, have the
            metric's defaults.
    """
    try:
        # In memory, so that users' input is not stored on the disk.
        loaded = load_metric(metric, keep_in_memory=True)
        options = {}
        for name, option in options_of(loaded).items():
            if values.get(name) is not None:
                options[name] = values[name]
                if isinstance(option["default"], str) and values[name] not in option["choices"]:
                    allowed = ", ".join(option["choices"])
                    raise InputError(f"{name} is {values[name]!r}; allowed: {allowed}")
        if "judge" in _parameters(loaded):
            options["judge"] = {"max_calls": MAX_JUDGE_CALLS}
        columns = {
            name: read_values(str(values.get(name) or ""), name)
            for name in _example(metric)["columns"]
        }
        result = loaded.compute(**columns, **options)
    except QabenchError as error:
        return f"**This cannot be scored yet.** {markdown_text(error)}", None
    return result_markdown(result), json.dumps(result, indent=1)


def read_values(text: str, name: str) -> list[Any]:
    """Return the values of a JSON list, or raise InputError."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            f"{name}: {len(text) / 1e6:.1f} million characters; the limit of this page is "
            f"{MAX_CHARACTERS / 1e6:.0f} million. Score larger files on your own machine: install qabench, then use "
            "qabench score or qabench.load_metric"
        )
    if not text.strip():
        raise InputError(f"{name}: empty; paste a JSON list")
    try:
        values = json_of(text)
    except ValueError as error:
        raise InputError(f"{name}: {why_not_json(error)}; strings need double quotes") from None
    if not isinstance(values, list):
        raise InputError(f"{name} is {values!r:.60}; paste a JSON list")
    with_id = [item["id"] for item in values if isinstance(item, dict) and "id" in item]
    if with_id:
        raise InputError(
            f"{name}: items have ids ({some(list(map(str, with_id)))}), but this page scores values by their position. "
            "Give the values only, or use `qabench score`, which joins predictions by id"
        )
    return values


def result_markdown(result: Mapping[str, Any]) -> str:
    """Return the Markdown of a metric's result."""
    absent = [f"{name}: {reason}" for name, reason in result.get("absent", {}).items()]
    unofficial = "Unofficial scores: do not compare them with published scores"
    parts = [
        f"**{title}.** {markdown_text('; '.join(lines))}"
        for title, lines in ((unofficial, result.get("deviations")), ("Not scored", absent))
        if lines
    ]
    scores = {name: value for name, value in result.items() if name not in NOT_SHOWN}
    rows = [
        [name, f"{value:.4f}" if isinstance(value, float) else str(value)]
        for name, value in flattened(scores, ": ")
    ]
    parts.append(Table("Scores", ["score", "value"], rows).formatted("markdown"))
    return "\n\n".join([*parts, f"**Signature** {markdown_text(result['signature'])}"])
