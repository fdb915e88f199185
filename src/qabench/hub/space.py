"""The page of a metric on a Space: reads predictions and references, scores them, shows the result.

The page makes no requests to other servers. Input is scored in memory; uploaded files are deleted
within two hours. Everything that comes from outside is escaped. Visitors set only harmless options:
booleans, numbers, and strings with documented choices; servers, keys, models and files are the
host's. (The widget of ``evaluate`` does not run on current versions of gradio.)
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from qabench import metrics
from qabench.data.predictions import Prediction, Predictions, join, read_bytes, some
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.io.limits import json_of, numbered_lines, why_not_json
from qabench.io.tables import Table, flattened, markdown_text
from qabench.loading import load_metric

UPLOAD_SECONDS = 3600  # uploaded files are deleted after one to two times this
# Options that a page always sets, to limit the costs of its host.
FIXED_OPTIONS: Mapping[str, Any] = {"judge": {"max_calls": 100}}
MAX_BYTES = 5 * 1024 * 1024
SIDES = ("predictions", "references")
ID_FIELDS = ("id", "question_id", "example_id")
PREDICTION_FIELDS = ("prediction", "answer")
MAX_ROWS = 200
MAX_CHARACTERS = 400
PER_QUESTION = ("per_question", "raw")
NOT_SCORES = ("signature", "deviations", "absent", *PER_QUESTION)
HOW = """Paste a JSON list, or JSONL with one item per line, or upload such a file. An item is

- a value, such as `"Paris"`, or `null` for an unanswered question;
- or an object with the value: `{"id": "q1", "prediction": "Paris"}`, `{"id": "q1", "reference": "Paris"}`, an object
  with both, a line of a file of answers, `{"id": "q1", "answer": "Paris"}`, or a row of the dataset.

If both sides have ids, predictions and references are matched by id, otherwise by position."""


# --- the page


def page(metric: str) -> Any:
    """Return a gradio page with inputs for predictions and references (initially ``example.json``) and the card.

    Its API has one endpoint, ``score``, whose parameters have the names of the inputs and default
    to None.
    """
    try:
        import gradio
    except ImportError:
        raise MissingExtra(
            "the page of a metric needs gradio: pip install 'qabench[space]'"
        ) from None

    folder = metrics.metric_folder(metric)
    _, front, card = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    about = yaml.safe_load(front)
    example = json.loads((folder / "example.json").read_text(encoding="utf-8"))
    parameters = metric_parameters(load_metric(metric))
    with gradio.Blocks(
        title=about["title"], analytics_enabled=False, delete_cache=(UPLOAD_SECONDS, UPLOAD_SECONDS)
    ) as blocks:
        gradio.Markdown(
            f"# {about['title']}\n\n{about['description']}\n\n{example.get('note', '')}"
        )
        with gradio.Tab("Score"), gradio.Row():
            with gradio.Column():
                inputs = _inputs(gradio, parameters, example)
                button = gradio.Button("Score", variant="primary")
            with gradio.Column():
                report = gradio.Markdown("Press Score to compute the scores.", latex_delimiters=[])
                result = gradio.Code(
                    label="Exact result", language="json", interactive=False, max_lines=24
                )
        with gradio.Tab("Metric card"):
            gradio.Markdown(card)

        def respond(*values: Any) -> tuple[str, str | None]:
            return answer(metric, dict(zip(inputs, values, strict=True)))

        # gradio reads the names of the API's parameters, and whether they are optional, from the
        # signature.
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        named = [inspect.Parameter(name, kind, default=None) for name in inputs]
        respond.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        button.click(respond, list(inputs.values()), [report, result], api_name="score")
    # gradio's semibold font lacks most letters, and its hints have too little contrast.
    theme = gradio.themes.Default(
        font=["ui-sans-serif", "sans-serif"], font_mono=["ui-monospace", "monospace"]
    ).set(block_info_text_color="*neutral_600", block_info_text_color_dark="*neutral_300")
    # app.py launches without arguments. The server rejects uploads above four times the limit of
    # the page.
    blocks.launch = functools.partial(blocks.launch, theme=theme, max_file_size=4 * MAX_BYTES)
    return blocks


def answer(metric: str, values: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the Markdown for a user's input, and the result as JSON; None if it cannot be scored.

    Args:
        metric: the name of the metric.
        values: by name: texts, paths of files ("references_file", used instead of the text), and
            options. Missing options, and those that are None, have the metric's defaults.
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
        columns, ids, notes = align(
            _read(values, "predictions") or read_items(b"", "predictions"),
            _read(values, "references"),
            parameters.fields,
        )
        named = {"ids": ids} if parameters.takes_ids and ids else {}
        result = loaded.compute(**columns, **named, **options, **parameters.fixed)
    except QabenchError as error:
        return f"**This cannot be scored yet.** {markdown_text(error)}", None
    return result_markdown(result, ids, notes), json.dumps(result, indent=1)


def _inputs(gradio: Any, parameters: Parameters, example: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input components by the names of their values in ``answer``."""
    inputs: dict[str, Any] = {}
    for name in SIDES:
        lines = [f"  {json.dumps(value, ensure_ascii=False)}" for value in example[name]]
        text = "[\n" + ",\n".join(lines) + "\n]"
        about = parameters.about[name]
        inputs[name] = gradio.Textbox(
            text, label=name.capitalize(), info=about, lines=6, max_lines=20
        )
    with gradio.Accordion("Input format and file upload", open=False):
        gradio.Markdown(HOW)
        for name in SIDES:
            label = f"{name.capitalize()}: a file of up to {MAX_BYTES // 1024**2} MB, used instead of the text"
            inputs[f"{name}_file"] = gradio.File(
                label=label, file_types=[".jsonl", ".json"], height=140
            )
    with gradio.Accordion("Options", open=False):
        for option in parameters.options:
            texts = {"label": option.name, "info": option.about}
            if isinstance(option.default, bool):
                # Users of the page want scores by question.
                control = gradio.Checkbox(option.default or option.name == "per_question", **texts)
            elif option.choices:
                control = gradio.Dropdown(list(option.choices), value=option.default, **texts)
            else:
                control = gradio.Textbox(str(option.default), max_lines=1, **texts)
            inputs[option.name] = control
    return inputs


@dataclass(frozen=True, slots=True)
class Option:
    """An option that a page offers: a bool, one of ``choices``, or an integer or a list of them in JSON."""

    name: str
    default: Any
    about: str
    choices: Sequence[str] = ()

    def parse(self, value: Any) -> Any:
        """Return the metric's value for a user's input, or raise InputError if it is not a value of the option."""
        if isinstance(self.default, bool):
            return bool(value)
        if self.choices and value not in self.choices:
            raise InputError(f"{self.name} is {value!r}; allowed: {', '.join(self.choices)}")
        try:
            return value if self.choices else json_of(str(value))
        except ValueError:
            raise InputError(
                f"{self.name} is {value!r}; it must be an integer, or a list such as [1, 10]"
            ) from None


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a metric.

    Attributes:
        about: the documentation of each parameter.
        fields: the field of a dataset's row for "references" and each further column, such as
            {"domains": "domain"}.
        takes_ids: whether the metric has a parameter for ids.
        options: the options that a page offers.
        fixed: the options that a page sets.
    """

    about: Mapping[str, str]
    fields: Mapping[str, str]
    takes_ids: bool
    options: tuple[Option, ...]
    fixed: Mapping[str, Any]


def metric_parameters(metric: Any) -> Parameters:
    """Return the parameters of an ``evaluate`` metric of this package, from its ``score`` and its documentation."""
    arguments = metric.inputs_description.partition("Args:\n")[2].partition("\nReturns:")[0]
    paragraphs = re.findall(r"^ {4}(\w+): (.*(?:\n {5}.*)*)", arguments, re.MULTILINE)
    about = {name: " ".join(text.split()) for name, text in paragraphs}
    fields = {
        name: match[1]
        for name, text in about.items()
        if (match := re.search(r"`(\w+)` column", text))
    }
    signature = {
        **inspect.signature(metric.score).parameters,
        **inspect.signature(metric._compute).parameters,
    }
    own = [name for name in signature if name not in (*SIDES, "ids", *fields)]
    options = [_option(signature[name], about.get(name, "")) for name in own]
    return Parameters(
        about,
        fields,
        takes_ids="ids" in signature,
        options=tuple(filter(None, options)),
        fixed={name: value for name, value in FIXED_OPTIONS.items() if name in signature},
    )


def _option(parameter: inspect.Parameter, about: str) -> Option | None:
    name, default = parameter.name, parameter.default
    if isinstance(default, int):  # also bool
        return Option(name, default, about)
    choices = tuple(dict.fromkeys([default, *re.findall(r'"([\w.-]+)"', about)]))
    return (
        Option(name, default, about, choices)
        if isinstance(default, str) and len(choices) > 1
        else None
    )


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
        rows = [value for value in self.values if isinstance(value, dict)]
        fields = [
            next((name for name in ID_FIELDS if isinstance(row.get(name), str | int)), None)
            for row in rows
        ]
        ids = [str(row[field]) for row, field in zip(rows, fields, strict=True) if field]
        return ids if len(ids) == len(self.items) else []

    def column(self, *names: str) -> list[Any] | None:
        """Return the first of these fields that the items have; None if they are values instead of rows.

        A field other than the first can also be a part of a value, so it counts only if all items
        have it, or ids.
        """
        for name in names:
            without = [
                place
                for place, value in self.items.items()
                if not isinstance(value, dict) or name not in value
            ]
            if not without:
                return [value[name] for value in self.values]
            if len(without) < len(self.items) and (name == names[0] or self.ids):
                raise InputError(f"{self.name}: {without[0]} has no {name!r}, but others have it")
        return None


def _read(values: Mapping[str, Any], name: str) -> Items | None:
    """Return the items of a file or a pasted text; None if there is neither."""
    if path := values.get(f"{name}_file"):
        return read_items(read_bytes(path), f"{name} ({Path(path).name})")
    text = values.get(name) or ""
    return read_items(text.encode("utf-8", "surrogatepass"), name) if text.strip() else None


def read_items(data: bytes, name: str) -> Items:
    """Return the items of a JSON list or of JSONL in UTF-8, or raise InputError."""
    if len(data) > MAX_BYTES:
        raise InputError(
            f"{name}: {len(data) / 1024**2:.1f} MB; the limit of this page is {MAX_BYTES // 1024**2} MB. Score larger "
            "files on your own machine: install qabench, then use qabench score or qabench.load_metric"
        )
    lines = {f"line {number}": _parsed(line) for number, line in numbered_lines(data)}
    if not lines:
        raise InputError(
            f"{name}: empty; paste a JSON list, or JSONL with one item per line, or choose a file"
        )
    # In JSONL, the first line is JSON by itself, and can also be a list.
    whole = (
        _parsed(data)
        if len(lines) == 1 or isinstance(next(iter(lines.values())), ValueError)
        else None
    )
    if isinstance(whole, list):
        return Items(name, {f"item {number}": value for number, value in enumerate(whole, 1)})
    if isinstance(whole, ValueError) and data.lstrip().startswith(b"["):
        raise InputError(f"{name}: {why_not_json(whole)}")
    if problems := [
        f"{place}: {why_not_json(v)}" for place, v in lines.items() if isinstance(v, ValueError)
    ]:
        raise InputError(
            f"{name}: {some(problems)}. Use a JSON list, or JSONL with one item per line; strings need double "
            'quotes: "Paris"'
        )
    return Items(name, lines)


def _parsed(data: bytes) -> Any:
    """Return the value of a JSON text, or the error."""
    try:
        return json_of(data)
    except ValueError as error:
        return error


def align(
    predictions: Items, references: Items | None, fields: Mapping[str, str]
) -> tuple[dict[str, list[Any]], list[str], list[str]]:
    """Align predictions and references: by id if both have ids, else by position.

    Args:
        predictions: the predictions; rows may contain their references and further columns.
        references: the references; None if the predictions contain them.
        fields: the field of a row for "references" and each further column, such as {"domains":
            "domain"}.

    Returns:
        The metric's columns, the questions' ids in order (or []), and notes for the user.
        Unanswered questions have None as the prediction; of several predictions with the same id,
        the last counts.
    """
    answers = predictions.column(*PREDICTION_FIELDS) or predictions.values
    names = ["reference", *filter(None, [fields.get("references")])]
    order: list[int | None] = list(range(len(answers)))
    notes: list[str] = []
    if references is None:
        # With a prediction in the row, an answer is the reference.
        correct = predictions.column(*names if predictions.column("prediction") else names[:1])
        ids = predictions.ids
        if correct is None:
            raise InputError(
                "references: empty; paste them, choose a file, or add a reference to each prediction"
            )
    else:
        correct = references.column(*names) or references.values
        ids = references.ids or predictions.ids
        if references.ids and predictions.ids:
            rows = [Prediction(line, id, {}) for line, id in enumerate(predictions.ids, 1)]
            joined = join(references.ids, Predictions(predictions.name, tuple(rows)))
            order, notes = [row.line - 1 if row else None for row in joined.rows], joined.problems()
        elif ids:
            notes = ["One side has no ids: predictions and references are matched by position."]
    columns = {
        "predictions": [None if i is None else answers[i] for i in order],
        "references": correct,
    }
    for name, field in fields.items():
        if name != "references" and references and (column := references.column(field)):
            columns[name] = column
        elif name != "references" and (column := predictions.column(field)) and None not in order:
            columns[name] = [column[i] for i in order if i is not None]
    return columns, ids, notes


# --- the result


def result_markdown(
    result: Mapping[str, Any], ids: Sequence[str] = (), notes: Sequence[str] = ()
) -> str:
    """Return the Markdown of a metric's result; without ids, the questions are numbered from 1."""
    absent = [f"{name}: {reason}" for name, reason in result.get("absent", {}).items()]
    remarks = {
        "Unofficial scores: do not compare them with published scores": result.get("deviations"),
        "Not scored": absent,
        "About the input": notes,
    }
    parts = [
        f"**{title}.** {markdown_text('; '.join(lines))}"
        for title, lines in remarks.items()
        if lines
    ]
    scores = flattened(
        {name: value for name, value in result.items() if name not in NOT_SCORES}, ": "
    )
    rows = [[name, _text(value)] for name, value in scores]
    parts.append(Table("Scores", ["score", "value"], rows).formatted("markdown"))
    if per_question := next((result[name] for name in PER_QUESTION if result.get(name)), None):
        names = ids or [str(number) for number in range(1, len(per_question) + 1)]
        parts.append(_questions(list(_records(names, per_question))).formatted("markdown"))
    return "\n\n".join([*parts, f"**Signature** {markdown_text(result['signature'])}"])


def _text(value: Any) -> str:
    """Return a value as text: fractions with four decimals."""
    if isinstance(value, float):
        return f"{value:.4f}"
    text = (
        ", ".join(map(_text, value))
        if isinstance(value, list | tuple)
        else ""
        if value is None
        else str(value)
    )
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "\u2026"


def _records(
    names: Sequence[str], per_question: Sequence[Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield one record per question, or one per part (claim, answer) of a question."""
    for name, question in zip(names, per_question, strict=True):
        if isinstance(question, list):
            yield from (
                (f"{name}, {part}", dict(flattened(record, ": ")))
                for part, record in enumerate(question, 1)
            )
        else:
            yield (
                name,
                dict(
                    flattened(question if isinstance(question, dict) else {"score": question}, ": ")
                ),
            )


def _questions(records: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    """Return a table with one row per record and a column for each value that any record has."""
    columns = list(
        dict.fromkeys(
            column for _, record in records for column in record if column != "question_id"
        )
    )
    rows = [
        [name, *(_text(record.get(column)) for column in columns)]
        for name, record in records[:MAX_ROWS]
    ]
    omitted = f"the first {MAX_ROWS} of {len(records)}; all are in the exact result"
    return Table(
        "By question", ["question", *columns], rows, [omitted] if len(records) > MAX_ROWS else []
    )
