"""The page that shows a metric on a Space. (``evaluate``'s own widget does not run on current gradio.)

It asks no other server for anything. What is given is scored in memory; uploaded files are deleted within two hours.
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
EMPTY = '<p class="empty">Press Score to see the figures of what stands here.</p>'
HOW = """Paste a JSON list, or JSONL with one a line; or upload such a file. Each is

- the value itself, such as `"Paris"`, or `null` for an unanswered question;
- or an object that carries it: `{"id": "q1", "prediction": "Paris"}`, `{"id": "q1", "reference": "Paris"}`, both in
  one, a line of a file of answers, `{"id": "q1", "answer": "Paris"}`, or a row of the dataset.

Where both sides have ids they are put together by id, otherwise in the order given."""


def page(metric: str) -> Any:
    """A gradio page: predictions and references in (at first those of ``example.json``), scores out, the card beside.

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
    # app.py launches without arguments. Beyond four times what a page takes, the server does not even receive it.
    blocks.launch = functools.partial(blocks.launch, theme=_theme(gradio), css=STYLE, max_file_size=4 * MAX_BYTES)
    return blocks


def answer(metric: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """What the page shows for what a person gave, and the result; None where it cannot be scored.

    Args:
        metric: its name.
        values: by name: texts, paths of files ("references_file", used in place of the text), and options; what is not
            there is not given, or as the metric has it.
    """
    try:
        result, given = _scored(metric, values)
    except QabenchError as error:
        return error_html(str(error)), None
    except Exception as error:
        logging.getLogger(__name__).exception("the page of %s failed", metric)
        return error_html(
            f"Something went wrong in the page itself ({type(error).__name__}). It has been logged."
        ), None
    return result_html(result, given.ids, given.notes), result


def score(metric: str, predictions: str, references: str) -> dict[str, Any]:
    """The result for two texts with the metric's defaults, or {"error": what to mend}."""
    try:
        return _scored(metric, {"predictions": predictions, "references": references})[0]
    except QabenchError as error:
        return {"error": str(error)}


def _scored(metric: str, values: Mapping[str, Any]) -> tuple[dict[str, Any], Given]:
    # In memory: what strangers give does not stay on the disk.
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
    # gradio's own semibold font lacks most letters, and its hints are too pale to read.
    fonts = {"font": ["ui-sans-serif", "system-ui", "sans-serif"], "font_mono": ["ui-monospace", "monospace"]}
    return gradio.themes.Default(**fonts).set(
        block_info_text_color="*neutral_600", block_info_text_color_dark="*neutral_300"
    )


def _inputs(gradio: Any, takes: Interface, example: Mapping[str, Any]) -> dict[str, Any]:
    """The components that a person fills in, by the name under which ``answer`` gets their values."""
    inputs: dict[str, Any] = {}
    for name in ("predictions", "references", *takes.columns):
        inputs[name] = gradio.Textbox(
            _listed(example[name]) if name in example else "",
            label=name.capitalize(),
            info=_in_json(takes.about[name]),
            lines=2 if name in takes.columns else 6,
            max_lines=20,
        )
    with gradio.Accordion("How to give them, and files", open=False):
        gradio.Markdown(HOW)
        for name in ("predictions", "references", *takes.columns):
            label = f"{name.capitalize()}: a file of up to {MAX_BYTES // 1024**2} MB, used in place of the text"
            inputs[f"{name}_file"] = gradio.File(label=label, file_types=[".jsonl", ".json"], height=140)
    with gradio.Accordion("Options", open=False):
        for option in takes.options:
            inputs[option.name] = _control(gradio, option)
        if takes.left_out:
            gradio.Markdown(
                f"Set where this page runs, not in it: {', '.join(f'`{name}`' for name in takes.left_out)}."
            )
    return inputs


def _control(gradio: Any, option: Option) -> Any:
    label, about = option.name, _in_json(option.about)
    if option.kind == "bool":
        # Questions one by one are what a person comes for.
        return gradio.Checkbox(option.default or option.name == "per_question", label=label, info=about)
    if option.kind == "choice":
        return gradio.Dropdown(list(option.choices), value=option.default, label=label, info=about)
    return gradio.Textbox(str(option.default), label=label, info=about, max_lines=1)


def _in_json(about: str) -> str:
    """What a docstring says, with the names that values have in JSON."""
    for python, json_name in {"None": "null", "True": "true", "False": "false", "`": ""}.items():
        about = about.replace(python, json_name)
    return about[:1].upper() + about[1:]


def _listed(values: list[Any]) -> str:
    """A JSON list with an item a line."""
    return "[\n" + ",\n".join(f"  {json.dumps(value, ensure_ascii=False)}" for value in values) + "\n]"
