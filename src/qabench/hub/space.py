"""The page of a metric on a Space: reads predictions and references, scores them, shows the result.

The page makes no requests to other servers. Input is scored in memory; uploaded files are deleted within two hours.
Everything that comes from outside is escaped. Visitors set only harmless options: booleans, numbers, and strings with
documented choices; servers, keys, models and files are the host's. (The widget of ``evaluate`` does not run on current
versions of gradio.)
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from qabench import metrics
from qabench.data.predictions import some
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.io.limits import json_of, numbered_lines, why_not_json
from qabench.io.tables import flattened
from qabench.loading import load_metric

UPLOAD_SECONDS = 3600  # uploaded files are deleted after one to two times this
# Options that a page always sets, to limit the costs of its host.
FIXED_OPTIONS: Mapping[str, Any] = {"judge": {"max_calls": 100}}
MAX_BYTES = 5 * 1024 * 1024
ID_FIELDS = ("id", "question_id", "example_id")
PREDICTION_FIELDS = ("prediction", "answer")
MAX_ROWS = 200
MAX_CHARACTERS = 400
MAIN_SCORES = 2  # scores in large type
PER_QUESTION = ("per_question", "raw")
NOT_SCORES = ("signature", "deviations", "absent", *PER_QUESTION)
EMPTY = '<p class="empty">Press Score to compute the scores.</p>'
HOW = """Paste a JSON list, or JSONL with one item per line, or upload such a file. An item is

- a value, such as `"Paris"`, or `null` for an unanswered question;
- or an object with the value: `{"id": "q1", "prediction": "Paris"}`, `{"id": "q1", "reference": "Paris"}`, an object
  with both, a line of a file of answers, `{"id": "q1", "answer": "Paris"}`, or a row of the dataset.

If both sides have ids, predictions and references are matched by id, otherwise by position."""
STYLE = """
.box { border: 1px solid; border-left-width: 6px; border-radius: 6px; padding: 8px 14px; margin-bottom: 12px; }
.box p { margin: 4px 0; color: inherit; overflow-wrap: break-word; }
.box.error { color: #7f1d1d; background: #fef2f2; border-color: #dc2626; }
.box.warning { color: #713f12; background: #fefce8; border-color: #ca8a04; }
.box.note { color: #1e3a5f; background: #eff6ff; border-color: #3b82f6; }
.dark .box.error { color: #fecaca; background: #3b1212; }
.dark .box.warning { color: #fef08a; background: #33280a; }
.dark .box.note { color: #bfdbfe; background: #13233d; }
.main { display: flex; flex-wrap: wrap; gap: 8px 48px; margin: 0 0 16px; }
.main dt { font-size: 14px; color: var(--body-text-color-subdued); }
.main dd { margin: 0; font-size: 40px; line-height: 1.2; font-weight: 600; font-variant-numeric: tabular-nums; }
.scroll { overflow: auto; max-height: 640px; margin-bottom: 14px; }
.scroll :is(table, thead, tbody, tr) { border: 0 !important; }
.scroll table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
.scroll caption { text-align: left; font-weight: 600; padding: 4px 0; }
.scroll table th, .scroll table td { text-align: left; padding: 4px 10px; border: 0 solid var(--border-color-primary); }
.scroll table :is(th, td) { border-bottom-width: 1px; }
.scroll thead th { font-weight: 600; white-space: nowrap; }
.scroll tbody th { font-weight: 400; }
.signature code { word-break: normal; overflow-wrap: anywhere; }
.empty { color: var(--body-text-color-subdued); padding: 24px 4px; }
"""


# --- the page


def page(metric: str) -> Any:
    """Return a gradio page with inputs for predictions and references (initially ``example.json``) and the card.

    Its API has one endpoint, ``score``, whose parameters have the names of the inputs and default to None.
    """
    try:
        import gradio
    except ImportError:
        raise MissingExtra("the page of a metric needs gradio: pip install 'qabench[space]'") from None
    folder = Path(metrics.__file__).parent / metric
    title, description, card = _card(folder / "README.md")
    example = json.loads((folder / "example.json").read_text(encoding="utf-8"))
    parameters = metric_parameters(load_metric(metric))
    options = {option.name for option in parameters.options}
    with gradio.Blocks(title=title, analytics_enabled=False, delete_cache=(UPLOAD_SECONDS, UPLOAD_SECONDS)) as blocks:
        gradio.Markdown("\n\n".join(filter(None, (f"# {title}", description, example.get("note")))))
        with gradio.Tab("Score"), gradio.Row():
            with gradio.Column():
                inputs = _inputs(gradio, parameters, example)
                with gradio.Row():
                    cleared = [part for name, part in inputs.items() if name not in options]
                    gradio.ClearButton(cleared, value="Clear all")
                    button = gradio.Button("Score", variant="primary")
            with gradio.Column():
                report = gradio.HTML(EMPTY)
                code = {"language": "json", "interactive": False, "max_lines": 24, "wrap_lines": True}
                result = gradio.Code(label="Exact result", visible=False, **code)
        with gradio.Tab("Metric card"):
            gradio.Markdown(card)

        def respond(*values: Any) -> tuple[str, Any]:
            html, scores = answer(metric, dict(zip(inputs, values, strict=True)))
            exact = json.dumps(scores, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
            return html, gradio.update(value=scores and exact, visible=scores is not None)

        # gradio reads the names of the API's parameters, and whether they are optional, from the signature.
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        named = [inspect.Parameter(name, kind, default=None) for name in inputs]
        respond.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        button.click(respond, list(inputs.values()), [report, result], api_name="score")
    # app.py launches without arguments. The server rejects uploads above four times the limit of the page.
    blocks.launch = functools.partial(blocks.launch, theme=_theme(gradio), css=STYLE, max_file_size=4 * MAX_BYTES)
    return blocks


def answer(metric: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Return the HTML for a user's input, and the result; None if it cannot be scored.

    Args:
        metric: the name of the metric.
        values: by name: texts, paths of files ("references_file", used instead of the text), and options. Missing
            options, and those that are None, have the metric's defaults.
    """
    try:
        # In memory, so that users' input is not stored on the disk.
        loaded = load_metric(metric, keep_in_memory=True)
        parameters = metric_parameters(loaded)
        options = {
            option.name: option.parse(values[option.name])
            for option in parameters.options
            if values.get(option.name) is not None
        }
        references = _read(values, "references")
        predictions = _read(values, "predictions") or read_text("", "predictions")
        extra = {name: _read(values, name) for name in parameters.columns}
        aligned = align(predictions, references, extra, parameters.fields)
        ids = {"ids": list(aligned.ids)} if parameters.takes_ids and aligned.ids else {}
        result = loaded.compute(**aligned.columns, **ids, **options, **parameters.fixed)
    except QabenchError as error:
        return error_html(str(error)), None
    except Exception as error:
        logging.getLogger(__name__).exception("the page of %s failed", metric)
        return error_html(f"An internal error occurred ({type(error).__name__}). It has been logged."), None
    return result_html(result, aligned.ids, aligned.notes), result


def _read(values: Mapping[str, Any], name: str) -> Items | None:
    if path := values.get(f"{name}_file"):
        return read_file(path, name)
    text = values.get(name) or ""
    return read_text(text, name) if text.strip() else None


def _card(path: Path) -> tuple[str, str, str]:
    """Return the title, the description and the body of a card."""
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


def _inputs(gradio: Any, parameters: Parameters, example: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input components by the names of their values in ``answer``."""
    inputs: dict[str, Any] = {}
    names = ("predictions", "references", *parameters.columns)
    for name in names:
        lines = [f"  {json.dumps(value, ensure_ascii=False)}" for value in example.get(name, ())]
        text = "[\n" + ",\n".join(lines) + "\n]" if lines else ""
        height = {"lines": 2 if name in parameters.columns else 6, "max_lines": 20}
        inputs[name] = gradio.Textbox(text, label=name.capitalize(), info=_in_json(parameters.about[name]), **height)
    with gradio.Accordion("Input format and file upload", open=False):
        gradio.Markdown(HOW)
        for name in names:
            label = f"{name.capitalize()}: a file of up to {MAX_BYTES // 1024**2} MB, used instead of the text"
            inputs[f"{name}_file"] = gradio.File(label=label, file_types=[".jsonl", ".json"], height=140)
    with gradio.Accordion("Options", open=False):
        for option in parameters.options:
            texts = {"label": option.name, "info": _in_json(option.about)}
            if isinstance(option.default, bool):
                # Users of the page want scores by question.
                control = gradio.Checkbox(option.default or option.name == "per_question", **texts)
            elif option.choices:
                control = gradio.Dropdown(list(option.choices), value=option.default, **texts)
            else:
                control = gradio.Textbox(str(option.default), max_lines=1, **texts)
            inputs[option.name] = control
        if parameters.host_options:
            gradio.Markdown(f"Set by the host of this page: {', '.join(f'`{n}`' for n in parameters.host_options)}.")
    return inputs


def _in_json(about: str) -> str:
    """Return a text from a docstring with the JSON names of values."""
    for python, json_name in {"None": "null", "True": "true", "False": "false", "`": ""}.items():
        about = about.replace(python, json_name)
    return about[:1].upper() + about[1:]


@dataclass(frozen=True, slots=True)
class Option:
    """An option that a page offers: a bool, one of ``choices``, or an integer (or, if ``several``, a list of them)."""

    name: str
    default: Any
    about: str
    choices: tuple[str, ...] = ()
    several: bool = False

    def parse(self, value: Any) -> Any:
        """Return the metric's value for a user's input, or raise InputError if it is not a value of the option."""
        if isinstance(self.default, bool):
            return bool(value)
        if self.choices:
            if value not in self.choices:
                raise InputError(f"{self.name} is {value!r}; allowed: {', '.join(self.choices)}")
            return value
        try:
            numbers = [int(part) for part in str(value).split(",")] if self.several else [int(value)]
        except (TypeError, ValueError):
            kind = "an integer, or several separated by commas" if self.several else "an integer"
            raise InputError(f"{self.name} is {value!r}; it must be {kind}") from None
        return numbers if len(numbers) > 1 else numbers[0]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a metric.

    Attributes:
        about: the documentation of each parameter.
        fields: the field of a dataset's row for "references" and each further column, such as {"domains": "domain"}.
        columns: the further columns.
        takes_ids: whether the metric has a parameter for ids.
        options: the options that a page offers.
        host_options: the options that only the host sets.
        fixed: the options that a page sets.
    """

    about: Mapping[str, str]
    fields: Mapping[str, str]
    columns: tuple[str, ...]
    takes_ids: bool
    options: tuple[Option, ...]
    host_options: tuple[str, ...]
    fixed: Mapping[str, Any]


def metric_parameters(metric: Any) -> Parameters:
    """Return the parameters of an ``evaluate`` metric of this package, from its ``_compute`` and its documentation."""
    arguments = metric.inputs_description.partition("Args:\n")[2].partition("\nReturns:")[0]
    paragraphs = re.findall(r"^ {4}(\w+): (.*(?:\n {5}.*)*)", arguments, re.MULTILINE)
    about = {name: " ".join(text.split()) for name, text in paragraphs}
    fields = {name: match[1] for name, text in about.items() if (match := re.search(r"`(\w+)` column", text))}
    signature = inspect.signature(metric._compute).parameters
    own = [name for name in signature if name not in ("predictions", "references", "ids")]
    options = {name: _option(signature[name], about.get(name, "")) for name in own if name not in fields}
    return Parameters(
        about,
        fields,
        columns=tuple(name for name in own if name in fields),
        takes_ids="ids" in signature,
        options=tuple(option for option in options.values() if option),
        host_options=tuple(name for name, option in options.items() if not option),
        fixed={name: value for name, value in FIXED_OPTIONS.items() if name in signature},
    )


def _option(parameter: inspect.Parameter, about: str) -> Option | None:
    name, default = parameter.name, parameter.default
    if isinstance(default, int):  # also bool
        return Option(name, default, about, several="list" in str(parameter.annotation))
    choices = tuple(dict.fromkeys([default, *re.findall(r'"([\w.-]+)"', about)]))
    return Option(name, default, about, choices) if isinstance(default, str) and len(choices) > 1 else None


# --- the input


@dataclass(frozen=True, slots=True)
class Items:
    """The items of one text: its name in messages, and the parsed items by place, such as "line 3"."""

    name: str
    items: Mapping[str, Any]

    @property
    def values(self) -> list[Any]:
        return list(self.items.values())

    @property
    def ids(self) -> list[str]:
        """Return the ids of the items; [] if not all have one."""
        ids = [
            next((str(value[name]) for name in ID_FIELDS if isinstance(value.get(name), str | int)), None)
            if isinstance(value, dict)
            else None
            for value in self.values
        ]
        return [id for id in ids if id is not None] if None not in ids else []

    def column(self, *names: str) -> list[Any] | None:
        """Return the first of these fields that the items have; None if they are values instead of rows.

        A field other than the first can also be a part of a value, so it counts only if all items have it, or ids.
        """
        for name in names:
            without = [place for place, value in self.items.items() if not isinstance(value, dict) or name not in value]
            if not without:
                return [value[name] for value in self.values]
            if len(without) < len(self.items) and (name == names[0] or self.ids):
                raise InputError(f"{self.name}: {without[0]} has no {name!r}, but others have it")
        return None


class Aligned(NamedTuple):
    """The input of a metric: aligned columns, the questions' ids in order (or ()), and notes for the user."""

    columns: dict[str, list[Any]]
    ids: Sequence[str] = ()
    notes: Sequence[str] = ()


def read_text(text: str, name: str) -> Items:
    """Return the items of a pasted text, a JSON list or JSONL, or raise InputError."""
    _check_size(len(text.encode("utf-8", "surrogatepass")), name)
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InputError(f"{name}: empty; paste a JSON list, or JSONL with one item per line, or choose a file")
    values = _parsed(text)
    if isinstance(values, list):
        return Items(name, {f"item {number}": value for number, value in enumerate(values, 1)})
    # In JSONL, the first line is JSON by itself, and can also be a list.
    first = text.strip().partition("\n")[0]
    if isinstance(values, ValueError) and first.startswith("[") and isinstance(_parsed(first), ValueError):
        raise InputError(f"{name}: {why_not_json(values)}")
    return _read_lines(text, name)


def read_file(path: str | Path, name: str) -> Items:
    """Return the items of a file, JSON or JSONL in UTF-8; see ``read_text``."""
    path = Path(path)
    name = f"{name} ({path.name})"
    _check_size(path.stat().st_size, name)
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}: line {line} is not UTF-8 text; save the file as UTF-8") from None
    # By its extension, a JSONL file with one line has one item, even if that is a list.
    return _read_lines(text, name) if path.suffix == ".jsonl" and text.strip() else read_text(text, name)


def _read_lines(text: str, name: str) -> Items:
    values = {f"line {number}": _parsed(line) for number, line in numbered_lines(text)}
    if problems := [f"{place}: {why_not_json(v)}" for place, v in values.items() if isinstance(v, ValueError)]:
        raise InputError(
            f"{name}: {some(problems)}. Use a JSON list, or JSONL with one item per line; strings need double "
            'quotes: "Paris"'
        )
    return Items(name, values)


def _check_size(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise InputError(
            f"{name}: {size / 1024**2:.1f} MB; the limit of this page is {MAX_BYTES // 1024**2} MB. Score larger files "
            "on your own machine: install qabench, then use qabench score or qabench.load_metric"
        )


def _parsed(text: str) -> Any:
    """Return the value of a JSON text, or the error."""
    try:
        return json_of(text)
    except ValueError as error:
        return error


def align(
    predictions: Items, references: Items | None, extra: Mapping[str, Items | None], fields: Mapping[str, str]
) -> Aligned:
    """Align predictions and references: by id if both have ids, else by position.

    Args:
        predictions: the predictions; rows may contain their references and further columns.
        references: the references; None if the predictions contain them.
        extra: further columns that were entered separately, in the order of the references, or None.
        fields: the field of a row for "references" and each further column, such as {"domains": "domain"}.

    Returns:
        Unanswered questions have None as the prediction; of several predictions with the same id, the last counts.
    """
    answers = predictions.column(*PREDICTION_FIELDS) or predictions.values
    own_references = ["reference"]
    if predictions.column("prediction"):  # so an answer in the row is the reference
        own_references += [fields["references"]] if "references" in fields else []
    order: list[int | None] = list(range(len(answers)))
    if references is None:
        correct = predictions.column(*own_references)
        if correct is None:
            raise InputError("references: empty; paste them, choose a file, or add a reference to each prediction")
        ids, notes = predictions.ids, []
    else:
        correct = references.column("reference", *filter(None, [fields.get("references")])) or references.values
        ids = references.ids or predictions.ids
        notes = ["One side has no ids: predictions and references are matched by position."] if ids else []
        if references.ids and predictions.ids:
            order, notes = _order_by_id(predictions, references)
    columns = {"predictions": [None if i is None else answers[i] for i in order], "references": correct}
    for name, items in extra.items():
        if items is not None:
            columns[name] = items.column(fields[name]) or items.values
        elif references and (column := references.column(fields[name])):
            columns[name] = column
        elif (column := predictions.column(fields[name])) and None not in order:
            columns[name] = [column[i] for i in order if i is not None]
    return Aligned(columns, ids, notes)


def _order_by_id(predictions: Items, references: Items) -> tuple[list[int | None], list[str]]:
    """Return the position of each reference's prediction, None if there is none, and notes for the user."""
    if repeated := [id for id, count in Counter(references.ids).items() if count > 1]:
        raise InputError(f"{references.name}: repeated ids: {some(repeated)}")
    positions = {id: position for position, id in enumerate(predictions.ids)}
    if not positions.keys() & set(references.ids):
        raise InputError(
            f"predictions and references have no id in common: the predictions begin with {predictions.ids[0]!r}, "
            f"the references with {references.ids[0]!r}; are they for the same questions?"
        )
    notes = {
        "Questions without a prediction, scored as unanswered": [id for id in references.ids if id not in positions],
        "Predictions for unknown ids, left out": [id for id in positions if id not in references.ids],
    }
    texts = [f"{text}: {len(items)} ({some(items)})" for text, items in notes.items() if items]
    return [positions.get(id) for id in references.ids], texts


# --- the result


def result_html(result: Mapping[str, Any], ids: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """Return the HTML of a metric's result; without ids, the questions are numbered from 1."""
    parts = []
    if deviations := result.get("deviations"):
        parts.append(_box("warning", "Unofficial scores: do not compare them with published scores", *deviations))
    if absent := result.get("absent"):
        parts.append(_box("warning", "Not scored", *(f"{name}: {reason}" for name, reason in absent.items())))
    if notes:
        parts.append(_box("note", "About the input", *notes))
    rest = {name: value for name, value in result.items() if name not in NOT_SCORES}
    # Scores by group, such as by system, are dicts of dicts.
    groups = {
        n: v for n, v in rest.items() if v and isinstance(v, dict) and all(isinstance(p, dict) for p in v.values())
    }
    if scores := _flat({name: value for name, value in rest.items() if name not in groups}):
        main = [(name, value) for name, value in scores.items() if isinstance(value, float)][:MAIN_SCORES]
        large = "".join(f"<div><dt>{escape(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in main)
        parts += [f'<dl class="main">{large}</dl>'] if large else []
        parts.append(_table("Scores", ["score", "value"], [[name, _text(value)] for name, value in scores.items()]))
    parts += [_records(name, "", group.items()) for name, group in groups.items()]
    parts += [_records(name, "#", enumerate(rows, 1)) for name, rows in rest.items() if _is_records(rows)]
    per_question = next((result[name] for name in PER_QUESTION if result.get(name)), None)
    if per_question is not None:
        names = ids or [str(number) for number in range(1, len(per_question) + 1)]
        first = "question, part" if any(isinstance(question, list) for question in per_question) else "question"
        parts.append(_records("By question", first, _questions(names, per_question)))
    parts.append(f'<p class="signature"><b>Signature</b> <code>{escape(str(result["signature"]))}</code></p>')
    return "\n".join(parts)


def error_html(message: str) -> str:
    """Return the HTML if there is no result, with a message that says what to change."""
    return _box("error", "This cannot be scored yet", message)


def _box(kind: str, title: str, *paragraphs: str) -> str:
    role = "alert" if kind == "error" else "status"
    body = "".join(f"<p>{escape(text)}</p>" for text in paragraphs)
    return f'<div class="box {kind}" role="{role}"><p><b>{escape(title)}</b></p>{body}</div>'


def _text(value: Any) -> str:
    """Return a value as text: fractions with four decimals."""
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "\u2013"
    text = "\u2013" if value is None else ("no", "yes")[value] if isinstance(value, bool) else str(value)
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "\u2026"


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, dict) for part in value)


def _flat(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the single values; those of nested dicts are named "outer: inner"."""
    return {name: part for name, part in flattened(value, ": ") if not _is_records(part)}


def _questions(names: Sequence[str], per_question: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield one record per question, or one per part (claim, answer) of a question."""
    for name, question in zip(names, per_question, strict=True):
        if isinstance(question, list):
            yield from ((f"{name}, {part}", record) for part, record in enumerate(question, 1))
        else:
            record = question if isinstance(question, dict) else {"score": question}
            yield name, {field: value for field, value in record.items() if field != "question_id"}


def _records(caption: str, first: str, records: Iterable[tuple[Any, Mapping[str, Any]]]) -> str:
    """Return a table with one row per record and a column for each value that any record has."""
    flat = [(str(name), _flat(record)) for name, record in records]
    columns = list(dict.fromkeys(column for _, record in flat for column in record))
    if len(flat) > MAX_ROWS:
        caption += f" (the first {MAX_ROWS} of {len(flat)}; all are in the exact result)"
    # In a column with fractions, integers are shown as fractions as well.
    fractions = {column for _, record in flat for column, value in record.items() if isinstance(value, float)}
    rows = [[name] for name, _ in flat[:MAX_ROWS]]
    for row, (_, record) in zip(rows, flat, strict=False):
        for column in columns:
            value = record.get(column, "")
            row.append(_text(float(value) if column in fractions and type(value) is int else value))
    return _table(caption, [first, *columns], rows)


def _table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    # Focusable, so that a wide table can be scrolled with the keyboard.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
