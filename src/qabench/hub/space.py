"""A metric's page on a Space: a form that is filled with the metric's ``example.json``.

Input is scored in memory, with the metric's default options. Servers, keys and models are the
host's. (The widget of ``evaluate`` does not run on current versions of gradio.)
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from huggingface_hub import RepoCard

from qabench.data.rows import Json
from qabench.errors import InputError, MissingExtra, QabenchError, some
from qabench.io.limits import json_of
from qabench.metrics import metric_folder
from qabench.metrics.load import load_metric

# A public Space may get any input, and must stay responsive.
MAX_CHARACTERS = 5_000_000
# The maximum number of calls for one request. The host of the Space pays for them.
MAX_JUDGE_CALLS = 100
HOW = "Paste JSON lists of the same length. `null` is an unanswered question."


def page(metric: str) -> Any:
    """Return a metric's page. Its API endpoint ``score`` takes the same columns as the example."""
    try:
        import gradio
    except ImportError:
        raise MissingExtra(
            "the page of a metric needs gradio: pip install 'qabench[space]'"
        ) from None
    folder = metric_folder(metric)
    card = RepoCard.load(folder / "README.md")
    columns = json.loads((folder / "example.json").read_text(encoding="utf-8"))
    note = columns.pop("note", "")
    inputs = []
    for name, values in columns.items():
        lines = ",\n".join(f"  {json.dumps(value, ensure_ascii=False)}" for value in values)
        box = gradio.Textbox(f"[\n{lines}\n]", label=name.capitalize(), lines=6, max_lines=20)
        inputs.append(box)

    def respond(*texts: str | None) -> Json:
        return answer(metric, dict(zip(columns, texts, strict=True)))

    # gradio reads the names of the API's parameters from the signature.
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in columns]
    respond.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]

    return gradio.Interface(
        respond,
        inputs,
        gradio.JSON(label="Result"),
        title=card.data.title,
        description="\n\n".join(filter(None, [card.data.description, note, HOW])),
        article=card.text,
        flagging_mode="never",
        submit_btn="Score",
        clear_btn=None,
        analytics_enabled=False,
        api_name="score",
        # Visitors can upload files, although the form has no use for them.
        delete_cache=(3600, 3600),
    )


def answer(metric: str, texts: Mapping[str, str | None]) -> Json:
    """Return the result for the text of each column, or the error under "error"."""
    try:
        columns = {name: read_values(text or "", name) for name, text in texts.items()}
        # The metric keeps its data in memory, so that users' input is not stored on the disk.
        loaded: Any = load_metric(metric, keep_in_memory=True)
        options: Json = {}
        if "judge" in loaded.options():
            options["judge"] = {"max_calls": MAX_JUDGE_CALLS}
        return dict(loaded.compute(**columns, **options))
    except QabenchError as error:
        return {"error": str(error)}


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
        raise InputError(f"{name}: not JSON ({error}); strings need double quotes") from None
    if not isinstance(values, list):
        raise InputError(f"{name} is {values!r:.60}; paste a JSON list")
    with_id = [item["id"] for item in values if isinstance(item, dict) and "id" in item]
    if with_id:
        raise InputError(
            f"{name}: items have ids ({some(map(str, with_id))}), but this page scores values by their position. "
            "Give the values only, or use `qabench score`, which joins predictions by id"
        )
    return values
