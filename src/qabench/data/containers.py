"""What a person hands over from Python, as plain values: one function for predictions and references.

A list, tuple, array, Series, column of Arrow, polars or ``datasets``, and a generator are values. A
frame with one column is that column. Everything without an order of its own, or with several
columns, is refused with the form that works. No library is imported here: what was handed over
comes from a library that is already imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from qabench.data.rows import Row
from qabench.errors import InputError

FRAMES = {
    "pandas": ("DataFrame",),
    "polars": ("DataFrame", "LazyFrame"),
    "pyarrow": ("Table", "RecordBatch"),
}
FRAMES |= {"datasets": ("Dataset", "IterableDataset")}
COLUMN = "a list with one item per question, or one column, such as {name}=frame[{column!r}]"


def is_frame(values: Any) -> bool:
    """Tell whether something is a frame of columns: of pandas, polars, Arrow or ``datasets``."""
    return any(
        kind.__module__.partition(".")[0] == library and kind.__name__ in names
        for kind in type(values).__mro__
        for library, names in FRAMES.items()
    )


def items_of(values: Any, name: str, column: str = "answer", *, rows: bool = False) -> list[Any]:
    """Return the items of one side of a metric as Python's values, with None for a missing item.

    Args:
        values: what was handed over.
        name: the argument in messages, such as "predictions".
        column: the column that messages show.
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
            return [_plain(row) for row in frame_rows(values)]
        if len(columns) != 1:
            shown = ", ".join(map(repr, columns[:8])) + (", ..." if len(columns) > 8 else "")
            wanted = column if column in columns or not columns else columns[-1]
            raise InputError(
                f"{name} is a {type(values).__name__} with the columns {shown}; it must be a list with one item per "
                f"question, or one of these columns: {name}=...[{wanted!r}]"
            )
        return [_plain(row[columns[0]]) for row in frame_rows(values)]
    if isinstance(values, str | bytes | bytearray | Mapping | AbstractSet):
        raise InputError(f"{name} is a {type(values).__name__}; it must be {allowed}")
    if getattr(values, "ndim", 1) == 0 or not isinstance(values, Iterable):
        raise InputError(f"{name} is a {type(values).__name__}; it must be {allowed}")
    if type(values) is list and set(map(type, values)) == {str}:
        return values
    return [_plain(item) for item in _values(values)]


def frame_rows(frame: Any) -> Iterable[Row]:
    """Return the rows of a frame, dicts by column, without the index of pandas."""
    if hasattr(frame, "collect"):  # a LazyFrame of polars
        frame = frame.collect()
    if hasattr(frame, "to_pylist"):  # Arrow
        rows: Iterable[Row] = frame.to_pylist()
    elif hasattr(frame, "iter_rows"):  # polars
        rows = frame.iter_rows(named=True)
    elif hasattr(frame, "to_records"):  # pandas
        columns = [frame.iloc[:, position].to_numpy() for position in range(len(frame.columns))]
        names = list(frame.columns)
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    else:  # datasets
        rows = frame
    return rows


def prediction_rows(predictions: Any, fields: Sequence[str]) -> Any:
    """Return the predictions handed to ``evaluate_predictions`` as rows with ids.

    A dict of id to answer and a frame with the column ``id`` become lists of rows. Missing values
    are missing predictions. Anything else stays as it is, except for what cannot be matched to
    questions.

    Args:
        predictions: what was handed over.
        fields: the benchmark's fields of a prediction. The first one is the answer's.

    Raises:
        InputError: a frame without ids or answers, a set, or a list of answers without ids.
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
        rows = [{name: _plain(value) for name, value in row.items()} for row in frame_rows(predictions)]
        filled = [{name: value for name, value in row.items() if value is not None} for row in rows]
        return [row for row in filled if any(name in row for name in present)]
    if isinstance(predictions, Mapping):
        by_id = {id: _plain(value) for id, value in predictions.items()}
        return [
            {"id": id, **value}
            if isinstance(value, Mapping) and not value.keys().isdisjoint(fields)
            else {"id": id, field: value}
            for id, value in by_id.items()
            if value is not None
        ]
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
    return predictions


def _columns(frame: Any) -> list[str]:
    names = getattr(frame, "column_names", None)  # Arrow and datasets
    if names is None and hasattr(frame, "collect_schema"):  # polars
        names = frame.collect_schema().names()
    if names is None and hasattr(frame, "columns"):
        names = frame.columns
    return [] if names is None else [str(name) for name in names]


def _values(values: Any) -> Iterable[Any]:
    """Return the values of a column. Floats of 32 bits keep their type, so that 1.1 is read as 1.1."""
    library = type(values).__module__.partition(".")[0]
    if library == "pandas" and hasattr(values, "to_numpy"):
        return values.to_numpy()  # type: ignore[no-any-return]
    kind = str(getattr(values, "dtype", "") if library == "polars" else getattr(values, "type", ""))
    is_short = "Float32" in kind or "float" in kind  # also in lists; Arrow calls 64 bits "double"
    if library in ("polars", "pyarrow") and is_short and "Float64" not in kind and "double" not in kind:
        import numpy as np  # here, because commands that read no values start without it

        number = np.float16 if "halffloat" in kind else np.float32
        return [_short(_plain(value), number) for value in values]
    return values  # type: ignore[no-any-return]


def _plain(item: Any) -> Any:
    """Return an item as Python's value. A missing value of any library is None."""
    if item is None or isinstance(item, str | bool | int):
        return item
    library = type(item).__module__.partition(".")[0]
    if isinstance(item, float):
        return None if item != item else float(item)
    if library == "pandas" and type(item).__name__ in ("NAType", "NaTType"):
        return None
    if library == "pyarrow" and hasattr(item, "as_py"):
        return _plain(item.as_py())
    if library == "polars" and hasattr(item, "to_list"):
        return list(map(_plain, item.to_list()))
    if library == "torch" and hasattr(item, "tolist"):
        return _plain(item.tolist())
    if library == "numpy":
        if getattr(item, "ndim", 0):
            return list(map(_plain, item))
        # 1.1 in 32 bits is 1.1, not 1.100000023841858
        is_short = getattr(item.dtype, "kind", "") == "f" and item.dtype.itemsize < 8
        return _plain(float(str(item)) if is_short else item.item())
    if type(item) is list or type(item) is tuple:
        return [_nested(value) for value in item]
    if type(item) is dict:
        return {key: _nested(value) for key, value in item.items()}
    return item


def _short(value: Any, number: Callable[[float], Any]) -> Any:
    """Return a value whose floats have few bits as what it prints: 1.1 in 32 bits is 1.1."""
    if isinstance(value, float):
        return float(str(number(value)))
    if isinstance(value, list):
        return [_short(part, number) for part in value]
    if isinstance(value, dict):
        return {key: _short(part, number) for key, part in value.items()}
    return value


def _nested(value: Any) -> Any:
    # NaN inside an answer stays: it is a number of the answer, and refused where it cannot be written.
    return value if isinstance(value, float) and type(value) is float else _plain(value)
