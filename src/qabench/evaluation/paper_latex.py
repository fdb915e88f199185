"""Tables for a paper as LaTeX: their widths, blocks that fit on a page, heads and marks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import groupby

from qabench.evaluation.paper_content import (
    BETTER,
    WORSE,
    PaperColumn,
    PaperContent,
    as_sentence,
    mark_of,
    signature_word,
)
from qabench.io.escaping import latex_text, one_line
from qabench.io.tables import Table

_LATEX_MARKS = {BETTER: r"\dagger", WORSE: r"\ddagger"}
# The width of a line in a column's head, in characters.
HEAD_WIDTH = 12
# The widths of one column and of the whole page in LaTeX's article class, in characters.
ONE_COLUMN_WIDTH, FULL_WIDTH = 42, 72
# The number of table lines that fit on a page of LaTeX's article class, and the number of lines
# that a block's head and rules take.
PAGE_LINES, HEAD_LINES = 46, 5
# The number of characters in a line of a caption.
CAPTION_WIDTH = 70
NARROW = r"\setlength{\tabcolsep}{3pt}"
# The width of a character in the small font of intervals, in characters of the normal font.
SMALL_DIGITS = 0.75
COLUMN_SPACE = 2.5


def latex_of(content: PaperContent) -> str:
    """Return a table as LaTeX, for the booktabs package.

    Columns that do not fit side by side are moved to further blocks, one below the other. Blocks that do not fit
    on one page are split into several tables.
    """
    blocks, width = _blocks(content)
    environment = "table"
    small: list[str] = []
    if width > ONE_COLUMN_WIDTH:
        # LaTeX's environment table* spans both columns of a page.
        environment, small = "table*", [r"\small", NARROW]
    caption = _latex_caption(content)
    lines = [f"% {one_line(text)}" for text in [*content.notes, *content.full_signatures]]
    per_page = _blocks_per_page(content)
    for start in range(0, len(blocks), per_page):
        label = content.label
        if start:
            # The other tables refer to the first one, which has the long caption.
            caption = rf"Table~\ref{{tab:{content.label}}}, continued."
            label += f"-{start // per_page + 1}"
        lines += [
            rf"\begin{{{environment}}}[tb]",
            r"\centering",
            *small,
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{label}}}",
        ]
        for number, block in enumerate(blocks[start : start + per_page]):
            if number:
                lines += ["", r"\medskip"]
            lines += _tabular(content, block)
        lines.append(rf"\end{{{environment}}}")
    return "\n".join(lines) + "\n"


def _latex_caption(content: PaperContent) -> str:
    """Return the caption with the signatures, which may be broken after each field."""
    caption = " ".join(map(in_latex, content.sentences()))
    if not content.signatures:
        return caption
    codes = [rf"\texttt{{{_breakable(line)}}}" for line in content.signatures]
    return f"{caption} {signature_word(content.signatures)} {', '.join(codes)}."


def _blocks_per_page(content: PaperContent) -> int:
    """Return how many blocks fit on a LaTeX page, one below the other."""
    # A system has a line of values and one of intervals.
    block_lines = 2 * len(content.systems) + HEAD_LINES
    caption_length = sum(map(len, [*content.sentences(), *content.signatures]))
    caption_lines = caption_length // CAPTION_WIDTH + 1
    return max(1, (PAGE_LINES - caption_lines) // block_lines)


def _width(content: PaperContent, column: PaperColumn) -> float:
    """Return the width of a column in characters, with the space before it."""
    widths: list[float] = [len(line) for line in _head_lines(column)]
    # The head of a config is above all of its columns, which share its width.
    of_config = [member for member in content.columns if member.over == column.over]
    for line in _over_lines(column.over, len(of_config)):
        widths.append(len(line) / len(of_config))
    for system in content.systems:
        value, interval = content.texts(column, system)
        widths += [len(value), len(interval) * SMALL_DIGITS]
    return max(widths) + COLUMN_SPACE


def _blocks(content: PaperContent) -> tuple[list[list[PaperColumn]], float]:
    """Split the columns into blocks that fit on a page. Also return the largest width."""
    names = max(map(len, content.systems), default=0)
    blocks: list[list[PaperColumn]] = []
    width = widest = float(names)
    for column in content.columns:
        own = _width(content, column)
        if not blocks or width + own > FULL_WIDTH:
            blocks.append([])
            width = names
        blocks[-1].append(column)
        width += own
        widest = max(widest, width)
    return blocks, widest


def _tabular(content: PaperContent, columns: Sequence[PaperColumn]) -> list[str]:
    """Return the lines of a block: two per system, with the intervals below the values."""
    lines = [rf"\begin{{tabular}}{{l{'r' * len(columns)}}}", r"\toprule"]
    lines += _spanning_heads(columns)
    lines.append(" & ".join(["System", *map(_latex_head, columns)]) + r" \\")
    lines.append(r"\midrule")
    for number, system in enumerate(content.systems):
        if number:
            lines.append(r"\addlinespace[2pt]")
        values, intervals = [latex_text(system)], [""]
        for column in columns:
            value, interval = content.texts(column, system)
            if system in column.marks.best:
                value = rf"\textbf{{{value}}}"
            if mark := mark_of(column, system):
                # The mark takes no width, so that digits stay below digits.
                value += rf"\rlap{{$^{{{_LATEX_MARKS[mark]}}}$}}"
            if interval:
                interval = rf"{{\scriptsize {interval}}}"
            values.append(value)
            intervals.append(interval)
        lines.append(" & ".join(values) + r" \\")
        if any(intervals):
            lines.append(" & ".join(intervals) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def floating(table: Table, label: str) -> str:
    """Return a table as LaTeX with its title and notes as the caption, for the booktabs package."""
    caption = " ".join(in_latex(as_sentence(text)) for text in [table.title, *table.notes])
    lines = [
        r"\begin{table*}[tb]",
        r"\centering",
        r"\footnotesize",
        NARROW,
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{label}}}",
        table.tabular(),
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def in_latex(text: str) -> str:
    """Return a sentence of a caption as LaTeX, with the same marks as in cells."""
    escaped = latex_text(text)
    for mark, command in _LATEX_MARKS.items():
        escaped = escaped.replace(mark, f"$^{{{command}}}$")
    return escaped


def _breakable(signature: str) -> str:
    """Return a signature as LaTeX that may be broken after a field or a plus sign."""
    parts = map(latex_text, re.split(r"(?<=[|+])", signature))
    # In a typewriter font, a bar needs no command to print as a bar.
    return r"\allowbreak{}".join(parts).replace(r"\textbar{}", "|")


def _head_lines(column: PaperColumn) -> list[str]:
    """Return the lines of a column's head, broken between words."""
    words = column.group or column.head
    lines = textwrap.wrap(words, HEAD_WIDTH, break_long_words=False, break_on_hyphens=False)
    if column.group:
        lines.append(f"n = {column.numbers()}")
    return lines or [""]


def _latex_head(column: PaperColumn) -> str:
    return _stacked(_head_lines(column), "r")


def _over_lines(title: str, columns: int) -> list[str]:
    """Return the lines of a head above several columns."""
    width = HEAD_WIDTH * columns
    return textwrap.wrap(title, width, break_long_words=False, break_on_hyphens=False)


def _stacked(lines: Sequence[str], side: str) -> str:
    escaped = list(map(latex_text, lines))
    if len(escaped) == 1:
        return escaped[0]
    together = r"\\".join(escaped)
    return rf"\shortstack[{side}]{{{together}}}"


def _spanning_heads(columns: Sequence[PaperColumn]) -> list[str]:
    """Return the row with the configs above their columns, or [] in a table of one config."""
    if not any(column.over for column in columns):
        return []
    # The cell above the systems is empty, so the first column of scores has the number 2.
    cells, rules = [""], []
    first = 2
    for title, of_config in groupby(columns, key=lambda column: column.over):
        count = len(list(of_config))
        stacked = _stacked(_over_lines(title, count), "c")
        cells.append(rf"\multicolumn{{{count}}}{{c}}{{{stacked}}}")
        rules.append(rf"\cmidrule(lr){{{first}-{first + count - 1}}}")
        first += count
    return [" & ".join(cells) + r" \\", "".join(rules)]
