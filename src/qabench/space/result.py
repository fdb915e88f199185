"""A metric's result as HTML: main scores, all scores, tables by group and by question, and warnings.

Everything that comes from outside is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from qabench.io.tables import flattened

ROWS_SHOWN = 200
CHARACTERS_SHOWN = 400
PER_QUESTION = ("per_question", "raw")
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
NOT_SCORES = ("signature", "deviations", "absent", *PER_QUESTION)
MAIN = 2  # scores in large type


def result_html(result: Mapping[str, Any], ids: Sequence[str] | None = None, notes: Iterable[str] = ()) -> str:
    """The HTML of a result.

    Args:
        result: the output of the metric's ``compute``.
        ids: the ids of the questions; None to number them from 1.
        notes: remarks on the input.
    """
    rest = {name: value for name, value in result.items() if name not in NOT_SCORES}
    groups = {name: value for name, value in rest.items() if _is_group(value)}
    parts = [box("warning", *said) for said in _warnings(result)]
    if noted := list(notes):
        parts.append(box("note", "About the input", *noted))
    if scores := _flat({name: value for name, value in rest.items() if name not in groups}):
        parts.append(_main([(name, value) for name, value in scores if isinstance(value, float)][:MAIN]))
        parts.append(_table("Scores", ["score", "value"], [[name, shown(value)] for name, value in scores]))
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
    """The HTML if there is no result: the message says what to change."""
    return box("error", "This cannot be scored yet", message)


def exact(result: Mapping[str, Any]) -> str:
    """The result as JSON, with all digits."""
    return json.dumps(result, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


def box(kind: str, title: str, *paragraphs: str) -> str:
    """A highlighted box: an "error", a "warning" or a "note"."""
    role = "alert" if kind == "error" else "status"
    said = "".join(f"<p>{escape(text)}</p>" for text in paragraphs)
    return f'<div class="box {kind}" role="{role}"><p><b>{escape(title)}</b></p>{said}</div>'


def shown(value: Any) -> str:
    """A value as text: fractions with four decimals."""
    if value is None:
        return "\u2013"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value)) or "\u2013"
    text = str(value)
    return text if len(text) <= CHARACTERS_SHOWN else text[:CHARACTERS_SHOWN] + "\u2026"


def _warnings(result: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    if deviations := result.get("deviations"):
        yield ("Unofficial scores: do not compare them with published scores", *deviations)
    if absent := result.get("absent"):
        yield ("Not scored", *(f"{name}: {why}" for name, why in absent.items()))


def _is_group(value: Any) -> bool:
    """Whether a value contains scores by group, such as by system: a dict of dicts."""
    return isinstance(value, dict) and bool(value) and all(isinstance(part, dict) for part in value.values())


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, dict) for part in value)


def _flat(value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The single values; those of nested dicts are named "outer: inner"."""
    return [(name, part) for name, part in flattened(value, ": ") if not _is_records(part)]


def _questions(names: Sequence[str], per_question: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """One record per question, or one per part (claim, answer) of a question."""
    for name, question in zip(names, per_question, strict=True):
        if isinstance(question, list):
            yield from ((f"{name}, {part}", record) for part, record in enumerate(question, 1))
        else:
            record = question if isinstance(question, dict) else {"score": question}
            yield name, {field: value for field, value in record.items() if field != "question_id"}


def _records(caption: str, first: str, records: Iterable[tuple[Any, Mapping[str, Any]]]) -> str:
    """A table with one row per record and a column for each value that any record has."""
    flat = [(str(name), dict(_flat(record))) for name, record in records]
    columns = list(dict.fromkeys(column for _, record in flat for column in record))
    if len(flat) > ROWS_SHOWN:
        caption += f" (the first {ROWS_SHOWN} of {len(flat)}; all are in the exact result)"
    # In a column with fractions, integers are shown as fractions as well.
    fractions = {column for _, record in flat for column, value in record.items() if isinstance(value, float)}
    rows = [
        [name, *(_cell(record, column, column in fractions) for column in columns)]
        for name, record in flat[:ROWS_SHOWN]
    ]
    return _table(caption, [first, *columns], rows)


def _cell(record: Mapping[str, Any], column: str, fraction: bool) -> str:
    value = record.get(column, "")
    return shown(float(value) if fraction and type(value) is int else value)


def _main(scores: Iterable[tuple[str, float]]) -> str:
    shown_scores = "".join(f"<div><dt>{escape(name)}</dt><dd>{shown(value)}</dd></div>" for name, value in scores)
    return f'<dl class="main">{shown_scores}</dl>' if shown_scores else ""


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
