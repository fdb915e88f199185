"""The page of a metric on a Space. (The widget of ``evaluate`` does not run on current versions of gradio.)

It makes no requests to other servers. Input is scored in memory; uploaded files are deleted within two hours.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qabench import metrics
from qabench.errors import MissingExtra, QabenchError
from qabench.loading import load_metric
from qabench.space.inputs import MAX_BYTES, Items, read_file, read_text
from qabench.space.join import Given, put_together
from qabench.space.options import Interface, Option, interface
from qabench.space.result import STYLE, error_html, exact, result_html

SECONDS_KEPT = 3600
EMPTY = '<p class="empty">Press Score to compute the scores.</p>'
HOW = """Paste a JSON list, or JSONL with one item per line, or upload such a file. An item is

- a value, such as `"Paris"`, or `null` for an unanswered question;
- or an object with the value: `{"id": "q1", "prediction": "Paris"}`, `{"id": "q1", "reference": "Paris"}`, an object
  with both, a line of a file of answers, `{"id": "q1", "answer": "Paris"}`, or a row of the dataset.

If both sides have ids, predictions and references are matched by id, otherwise by position."""


def page(metric: str) -> Any:
    """A gradio page with inputs for predictions and references (initially ``example.json``), the scores, and the card.

    Raises:
        MissingExtra: gradio is not installed.
    """
    try:
        import gradio
    except ImportError:
        raise MissingExtra("the page of a metric needs gradio: pip install 'qabench[space]'") from None
    folder = Path(metrics.__file__).parent / metric
    title, description, card = _card(folder / "README.md")
    example = json.loads((folder / "example.json").read_text(encoding="utf-8"))
    takes = interface(load_metric(metric))
    chosen = {option.name for option in takes.options}
    with gradio.Blocks(title=title, analytics_enabled=False, delete_cache=(SECONDS_KEPT, SECONDS_KEPT)) as blocks:
        gradio.Markdown("\n\n".join(filter(None, (f"# {title}", description, example.get("note")))))
        with gradio.Tab("Score"), gradio.Row():
            with gradio.Column():
                inputs = _inputs(gradio, takes, example)
                with gradio.Row():
                    gradio.ClearButton([part for name, part in inputs.items() if name not in chosen], value="Clear all")
                    button = gradio.Button("Score", variant="primary")
            with gradio.Column():
                report = gradio.HTML(EMPTY)
                result = gradio.Code(
                    language="json",
                    label="Exact result",
                    interactive=False,
                    visible=False,
                    max_lines=24,
                    wrap_lines=True,
                )
        with gradio.Tab("Metric card"):
            gradio.Markdown(card)

        def respond(*values: Any) -> tuple[str, Any]:
            html, found = answer(metric, dict(zip(inputs, values, strict=True)))
            return html, gradio.update(value=found and exact(found), visible=found is not None)

        button.click(respond, list(inputs.values()), [report, result], api_name="score")
    # app.py launches without arguments. The server rejects uploads above four times the limit of the page.
    blocks.launch = functools.partial(blocks.launch, theme=_theme(gradio), css=STYLE, max_file_size=4 * MAX_BYTES)
    return blocks


def answer(metric: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """The HTML for a user's input, and the result; None if it cannot be scored.

    Args:
        metric: the name of the metric.
        values: by name: texts, paths of files ("references_file", used instead of the text), and options. Missing
            options have the metric's defaults.
    """
    try:
        result, given = _scored(metric, values)
    except QabenchError as error:
        return error_html(str(error)), None
    except Exception as error:
        logging.getLogger(__name__).exception("the page of %s failed", metric)
        return error_html(f"An internal error occurred ({type(error).__name__}). It has been logged."), None
    return result_html(result, given.ids, given.notes), result


def score(metric: str, predictions: str, references: str) -> dict[str, Any]:
    """The result for two texts with the metric's defaults, or {"error": what to fix}."""
    try:
        return _scored(metric, {"predictions": predictions, "references": references})[0]
    except QabenchError as error:
        return {"error": str(error)}


def _scored(metric: str, values: Mapping[str, Any]) -> tuple[dict[str, Any], Given]:
    # In memory, so that users' input is not stored on the disk.
    loaded = load_metric(metric, keep_in_memory=True)
    takes = interface(loaded)
    options = {option.name: option.value(values[option.name]) for option in takes.options if option.name in values}
    references = _read(values, "references")
    predictions = _read(values, "predictions") or read_text("", "predictions")
    extra = {name: _read(values, name) for name in takes.columns}
    given = put_together(predictions, references, extra, takes.fields)
    named = {"ids": list(given.ids)} if takes.takes_ids and given.ids else {}
    return loaded.compute(**given.columns, **named, **options, **takes.fixed), given


def _read(values: Mapping[str, Any], name: str) -> Items | None:
    if path := values.get(f"{name}_file"):
        return read_file(path, name)
    text = values.get(name) or ""
    return read_text(text, name) if text.strip() else None


def _card(path: Path) -> tuple[str, str, str]:
    """The title, the description and the body of a card."""
    import yaml

    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    about = yaml.safe_load(front)
    return about["title"], about["description"], body


def _theme(gradio: Any) -> Any:
    # gradio's semibold font lacks most letters, and its hints have too little contrast.
    fonts = {"font": ["ui-sans-serif", "system-ui", "sans-serif"], "font_mono": ["ui-monospace", "monospace"]}
    return gradio.themes.Default(**fonts).set(
        block_info_text_color="*neutral_600", block_info_text_color_dark="*neutral_300"
    )


def _inputs(gradio: Any, takes: Interface, example: Mapping[str, Any]) -> dict[str, Any]:
    """The input components, by the names of their values in ``answer``."""
    inputs: dict[str, Any] = {}
    for name in ("predictions", "references", *takes.columns):
        inputs[name] = gradio.Textbox(
            _listed(example[name]) if name in example else "",
            label=name.capitalize(),
            info=_in_json(takes.about[name]),
            lines=2 if name in takes.columns else 6,
            max_lines=20,
        )
    with gradio.Accordion("Input format and file upload", open=False):
        gradio.Markdown(HOW)
        for name in ("predictions", "references", *takes.columns):
            label = f"{name.capitalize()}: a file of up to {MAX_BYTES // 1024**2} MB, used instead of the text"
            inputs[f"{name}_file"] = gradio.File(label=label, file_types=[".jsonl", ".json"], height=140)
    with gradio.Accordion("Options", open=False):
        for option in takes.options:
            inputs[option.name] = _control(gradio, option)
        if takes.left_out:
            gradio.Markdown(f"Set by the host of this page: {', '.join(f'`{name}`' for name in takes.left_out)}.")
    return inputs


def _control(gradio: Any, option: Option) -> Any:
    label, about = option.name, _in_json(option.about)
    if option.kind == "bool":
        # Users of the page want scores by question.
        return gradio.Checkbox(option.default or option.name == "per_question", label=label, info=about)
    if option.kind == "choice":
        return gradio.Dropdown(list(option.choices), value=option.default, label=label, info=about)
    return gradio.Textbox(str(option.default), label=label, info=about, max_lines=1)


def _in_json(about: str) -> str:
    """A text from a docstring, with JSON names of values."""
    for python, json_name in {"None": "null", "True": "true", "False": "false", "`": ""}.items():
        about = about.replace(python, json_name)
    return about[:1].upper() + about[1:]


def _listed(values: list[Any]) -> str:
    """A JSON list with one item per line."""
    return "[\n" + ",\n".join(f"  {json.dumps(value, ensure_ascii=False)}" for value in values) + "\n]"
