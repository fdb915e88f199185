"""Convert what users pass from Python, such as columns and frames, to lists of plain values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeGuard

from qabench.data.answers import JSON_TEXT, read_written
from qabench.data.rows import Row
from qabench.errors import InputError

FRAMES = {
    "pandas": ("DataFrame",),
    "polars": ("DataFrame", "LazyFrame"),
    "pyarrow": ("Table", "RecordBatch"),
}
FRAMES |= {"datasets": ("Dataset", "IterableDataset")}
COLUMN = "a list with one item per question, or one column, such as {name}=frame[{column!r}]"


def is_iterable(values: object) -> TypeGuard[Iterable[Any]]:
    """Tell whether a value can be iterated, unlike a NumPy array without dimensions."""
    return isinstance(values, Iterable) and getattr(values, "ndim", 1) != 0


def is_frame(values: Any) -> bool:
    """Tell whether a value is a frame: a pandas, polars, Arrow or ``datasets`` table."""
    # Users may have subclasses, such as a GeoDataFrame.
    for kind in type(values).__mro__:
        library = kind.__module__.partition(".")[0]
        if kind.__name__ in FRAMES.get(library, ()):
            return True
    return False


def items_of(values: Any, name: str, column: str = "answer", *, rows: bool = False) -> list[Any]:
    """Return the predictions or references of a metric as a list, with None for a missing item.

    Args:
        values: what the user passed.
        name: the name of the argument for messages, such as "predictions".
        column: the name of a column for the examples in messages.
        rows: whether the items are whole rows of a dataset, so that a frame with several columns is
            the list of its rows.

    Raises:
        InputError: a set, dict, scalar, string, or a frame with several columns.

    Examples:
        >>> items_of((float("nan"), "Rome"), "predictions")
        [None, 'Rome']
    """
    allowed = COLUMN.format(name=name, column=column)
    if is_frame(values):
        columns = _columns(values)
        if rows and (len(columns) > 1 or columns == [column]):
            return list(map(_plain, frame_rows(values)))
        if not columns:
            raise InputError(
                f"{name} is a {type(values).__name__} without known columns, such as after map(); it must be {allowed}"
            )
        if len(columns) != 1:
            shown = ", ".join(map(repr, columns[:8]))
            if len(columns) > 8:
                shown += ", ..."
            # Frames often have the answers at the end, after ids and questions.
            named = column if column in columns else columns[-1]
            raise InputError(
                f"{name} is a {type(values).__name__} with the columns {shown}; it must be a list with one item per "
                f"question, or one of these columns: {name}=...[{named!r}]"
            )
        return [_plain(row[columns[0]]) for row in frame_rows(values)]
    if isinstance(values, str | bytes | bytearray | Mapping | AbstractSet):
        raise InputError(f"{name} is a {type(values).__name__}; it must be {allowed}")
    if not is_iterable(values):
        raise InputError(f"{name} is a {type(values).__name__}; it must be {allowed}")
    if type(values) is list and set(map(type, values)) == {str}:
        return values
    return list(map(_plain, _values(values)))


def is_json_text(values: Any) -> bool:
    """Tell whether a column's ``datasets`` feature says that its strings are JSON text.

    Strings in other columns and in lists are answers as they are: "1998" is a text there, not a
    number.
    """
    if is_frame(values):
        columns = _columns(values)
        return len(columns) == 1 and columns == json_columns(values)
    # A column of a ``Dataset`` or of an ``IterableDataset``, or a field of a struct in a column.
    name = getattr(values, "column_name", None)
    features = getattr(getattr(values, "source", None), "features", None)
    return isinstance(features, Mapping) and _is_json_feature(features.get(name))


def json_columns(frame: Any) -> list[str]:
    """Return the columns of a frame whose features say that their strings are JSON text.

    pandas and polars have no such columns, because their frames do not keep the features of
    ``datasets``.
    """
    if type(frame).__module__.partition(".")[0] == "pyarrow":
        return json_columns_of_schema(getattr(frame, "schema", None))
    features = getattr(frame, "features", None)
    if not isinstance(features, Mapping):
        return []
    return [name for name, feature in features.items() if _is_json_feature(feature)]


def json_columns_of_schema(schema: Any) -> list[str]:
    """Return an Arrow schema's columns of JSON text, according to the metadata of ``datasets``."""
    try:
        metadata = json.loads((schema.metadata or {})[b"huggingface"])
        features = metadata["info"]["features"].items()
    except (KeyError, ValueError, TypeError, AttributeError):
        # The metadata is damaged, or was not written by ``datasets``.
        return []
    names = []
    for name, feature in features:
        if isinstance(feature, dict) and feature.get("id") == JSON_TEXT and name in schema.names:
            names.append(name)
    return names


def _is_json_feature(feature: Any) -> bool:
    return getattr(feature, "id", None) == JSON_TEXT


def frame_rows(frame: Any) -> Iterable[Row]:
    """Return the rows of a frame as dicts by column, without a pandas index."""
    if hasattr(frame, "collect"):
        # A polars LazyFrame.
        frame = frame.collect()
    if hasattr(frame, "to_pylist"):
        rows: Iterable[Row] = frame.to_pylist()
    elif hasattr(frame, "iter_rows"):
        # polars.
        rows = frame.iter_rows(named=True)
    elif hasattr(frame, "to_records"):
        columns = [frame.iloc[:, position].to_numpy() for position in range(len(frame.columns))]
        names = list(frame.columns)
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    else:
        # A ``Dataset`` or an ``IterableDataset``.
        rows = frame
    return rows


def prediction_rows(predictions: Any, fields: Sequence[str]) -> Any:
    """Return the predictions that a user passed to ``evaluate_predictions`` as rows with ids.

    A dict from ids to answers and a frame with the column ``id`` become lists of rows, in which
    missing values are missing predictions. In a list of rows, they are null, as in a file. The
    values of all rows become those that a file has: an array becomes a list, and NaN null. A string,
    such as the path of a file, is returned unchanged.

    Args:
        predictions: what the user passed.
        fields: the benchmark's fields of a prediction. The first one is the answer's.

    Raises:
        InputError: the predictions cannot be matched to questions, such as a frame without ids or
            answers, a set, or a list of answers without ids.
    """
    field = fields[0] if fields else "answer"
    form = f'{{"id": ..., "{field}": ...}}'
    if is_frame(predictions):
        columns = _columns(predictions)
        present = [name for name in fields if name in columns]
        if "id" not in columns or not present:
            needed = "id" if "id" not in columns else " or ".join(fields)
            raise InputError(
                f"the predictions are a {type(predictions).__name__} with the columns {', '.join(map(repr, columns))}; "
                f"it has no column {needed}: rename it, so that each row is {form}"
            )
        for column in ("id", *present):
            if columns.count(column) > 1:
                raise InputError(
                    f"the predictions are a {type(predictions).__name__} with several columns {column!r}; rename or "
                    "remove all but one of them"
                )
        written = set(json_columns(predictions))
        rows = []
        for number, cells in enumerate(frame_rows(predictions)):
            row = {}
            for name, cell in cells.items():
                value = _plain(cell)
                if value is None:
                    continue
                row[name] = value
                if name in written:
                    row[name] = read_cell(value, f"the predictions, row {number}, column {name!r}")
            if any(name in row for name in present):
                rows.append(row)
        return rows
    if isinstance(predictions, Mapping):
        kind = type(predictions).__name__
        frames = [str(name) for name, value in predictions.items() if is_frame(value)]
        if frames:
            raise InputError(
                f"the predictions are a {kind} of {', '.join(frames)}; pass one of them: ...[{frames[0]!r}]"
            )
        if "id" in predictions and not predictions.keys().isdisjoint(fields):
            raise InputError(
                f"the predictions are a {kind} of columns; pass a frame, such as pandas.DataFrame(...), or a list of "
                f"{form}"
            )
        rows = []
        for id, answer in predictions.items():
            value = _plain(answer)
            if value is None:
                continue
            if isinstance(value, Mapping) and not value.keys().isdisjoint(fields):
                rows.append({"id": id, **value})
            else:
                rows.append({"id": id, field: value})
        return rows
    if isinstance(predictions, AbstractSet):
        raise InputError(
            f"the predictions are a {type(predictions).__name__}; pass a list of {form}, or a dict of id to {field}"
        )
    if not isinstance(predictions, str | bytes) and isinstance(predictions, Sequence):
        if predictions and all(isinstance(item, str) for item in predictions):
            raise InputError(
                f"the predictions are a list of strings, without the ids of their questions; pass a list of {form}, or "
                f"a dict of id to {field}, such as dict(zip(rows['id'], answers))"
            )
    elif type(predictions).__name__ == "Series":
        raise InputError(
            f"the predictions are a Series; pass a frame with the columns id and {field}, or a dict of id to {field}"
        )
    elif not isinstance(predictions, Iterable) or isinstance(predictions, bytes):
        raise InputError(
            f"the predictions are {predictions!r:.80}; pass a file, a list of {form}, or a dict of id to {field}"
        )
    if isinstance(predictions, str):
        return predictions
    rows = []
    for item in predictions:
        # Rows of ``DataFrame.to_dict("records")`` have NumPy's values.
        row = item
        if isinstance(item, Mapping):
            row = {name: _plain(value) for name, value in item.items()}
        rows.append(row)
    return rows


def read_column(texts: Sequence[Any], name: str) -> list[Any]:
    """Parse the answers in a column of JSON text. None stays None.

    Raises:
        InputError: a text is not what ``dumps`` writes.
    """
    answers: list[Any] = []
    for i, text in enumerate(texts):
        if text is not None:
            text = read_cell(text, f"{name}[{i}]")
        answers.append(text)
    return answers


def read_cell(text: Any, where: str) -> Any:
    """Parse a cell of a column of JSON text. Raises InputError that says where the cell is."""
    try:
        return read_written(text)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _columns(frame: Any) -> list[str]:
    names = getattr(frame, "column_names", None)
    if names is None and hasattr(frame, "collect_schema"):
        # polars.
        names = frame.collect_schema().names()
    if names is None and hasattr(frame, "columns"):
        names = frame.columns
    return [] if names is None else [str(name) for name in names]


def _values(values: Any) -> Iterable[Any]:
    """Return the values of a column. Short floats are read as they print, such as 1.1."""
    library = type(values).__module__.partition(".")[0]
    if library == "pandas" and hasattr(values, "to_numpy"):
        return values.to_numpy()  # type: ignore[no-any-return]
    kind = str(getattr(values, "dtype" if library == "polars" else "type", ""))
    # The name of a list's type contains the name of its items' type. Arrow calls 64-bit floats
    # "double", so its "float" has 32 bits.
    is_short = "Float32" in kind or "float" in kind
    is_long = "Float64" in kind or "double" in kind
    if library in ("polars", "pyarrow") and is_short and not is_long:
        # Imported here because commands that read no values start without NumPy.
        import numpy as np

        number = np.float16 if "halffloat" in kind else np.float32
        return [_short(_plain(value), number) for value in values]
    return values  # type: ignore[no-any-return]


def _plain(item: Any) -> Any:
    """Convert an item to a plain Python value. Any library's missing value becomes None."""
    if item is None or isinstance(item, str | bool | int):
        return item
    library = type(item).__module__.partition(".")[0]
    if isinstance(item, float):
        return None if item != item else float(item)
    if library == "pandas":
        if type(item).__name__ in ("NAType", "NaTType"):
            return None
        if hasattr(item, "to_numpy"):
            # A Series in a cell.
            return _plain(item.to_numpy())
    if library == "pyarrow" and hasattr(item, "as_py"):
        return _plain(item.as_py())
    if library == "polars" and hasattr(item, "to_list"):
        return list(map(_plain, item.to_list()))
    if library == "torch" and hasattr(item, "tolist"):
        return _plain(item.tolist())
    if library == "numpy":
        if type(item).__name__ == "MaskedConstant":
            return None
        if getattr(item, "ndim", 0):
            return list(map(_plain, item))
        if getattr(item.dtype, "kind", "") == "f" and item.dtype.itemsize < 8:
            # A 32-bit float that prints as 1.1 becomes 1.1, not 1.100000023841858.
            return _plain(float(str(item)))
        return _plain(item.item())
    if type(item) is list or type(item) is tuple:
        return [_nested(value) for value in item]
    if type(item) is dict:
        return {key: _nested(value) for key, value in item.items()}
    return item


def _short(value: Any, number: Callable[[float], Any]) -> Any:
    """Convert floats of 16 or 32 bits to the numbers that they print as, such as 1.1."""
    if isinstance(value, float):
        return float(str(number(value)))
    if isinstance(value, list):
        return [_short(part, number) for part in value]
    if isinstance(value, dict):
        return {key: _short(part, number) for key, part in value.items()}
    return value


def _nested(value: Any) -> Any:
    # NaN inside an answer stays, because it is not a missing item. Metrics reject it in reference
    # answers.
    return value if type(value) is float else _plain(value)
