"""Paired differences as a LaTeX table for a paper, which fits in one column if names are short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qabench.evaluation.paper_content import BETTER
from qabench.evaluation.paper_latex import NARROW, SMALL_DIGITS, in_latex
from qabench.io.escaping import latex_text

# The number of characters per line of a column, and of lines per page, in \footnotesize of a
# two-column article.
COLUMN_WIDTH, LINES = 46, 50
LINES_OF_CAPTION_AND_RULES = 12
VERSUS = r"\enspace vs.\ "
VERSUS_WIDTH = 6


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two systems with the difference of their scores.

    Attributes:
        part: the score and the group, such as "Loose accuracy, bool".
        first: the label of the better system.
        second: the label of the other system.
        difference: the difference as text, such as "+0.0323".
        interval: the interval as text, such as "[-0.0261, +0.0902]", or "".
        n: the number of questions.
        p: the corrected p-value, such as "< 0.0001".
        counts: wins, ties and losses.
        significant: whether the first is better at 5%.
    """

    part: str
    first: str
    second: str
    difference: str
    interval: str
    n: int
    p: str
    counts: tuple[int, int, int]
    significant: bool


def pairs_latex(rows: Sequence[PairRow], sentences: Sequence[str], label: str) -> str:
    """Return paired differences as LaTeX, for the booktabs package.

    A pair has two lines, with the interval below the difference, so that most pairs fit in one column
    of a page. Rows that do not fit on the page are in further tables.

    Args:
        rows: at least one. Rows with the same part are below a line with the name of the part.
        sentences: the sentences of the caption.
        label: the label by which the text refers to the table.
    """
    # LaTeX's environment table* spans both columns of a page.
    environment = "table"
    if _width(rows) > COLUMN_WIDTH:
        environment = "table*"
    # All pages have the column of n if any two rows differ in it. Otherwise the caption has n.
    with_n = len({row.n for row in rows}) > 1
    own_caption = " ".join(map(in_latex, sentences))
    own_label = label
    lines: list[str] = []
    for number, page in enumerate(_pages(rows), start=1):
        if number > 1:
            own_caption = rf"Table~\ref{{tab:{label}}}, continued."
            own_label = f"{label}-{number}"
        lines += [
            rf"\begin{{{environment}}}[tb]",
            r"\centering",
            r"\footnotesize",
            NARROW,
            rf"\caption{{{own_caption}}}",
            rf"\label{{tab:{own_label}}}",
            *_tabular(page, with_n),
            rf"\end{{{environment}}}",
        ]
    return "\n".join(lines) + "\n"


def _tabular(rows: Sequence[PairRow], with_n: bool) -> list[str]:
    """Return the lines of a page's table. Each part (a score and a group) begins with its name."""
    heads = ["Pair", "Difference", "$p$", "W/T/L"]
    if with_n:
        heads.insert(2, "$n$")
    lines = [
        rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\toprule",
        " & ".join(heads) + r" \\",
        r"\midrule",
    ]
    last = None
    for row in rows:
        if row.part != last:
            if last is not None:
                lines.append(r"\midrule")
            if row.part:
                part = latex_text(row.part)
                lines.append(rf"\multicolumn{{{len(heads)}}}{{l}}{{\emph{{{part}}}}} \\")
            last = row.part
        else:
            lines.append(r"\addlinespace[1pt]")
        difference = _signed(row.difference)
        if row.significant:
            # The mark takes no width, so that digits stay below digits.
            difference += r"\rlap{$^{\dagger}$}"
        counts = "/".join(f"{count:,}" for count in row.counts)
        cells = [latex_text(row.first), difference, in_latex(row.p), counts]
        if with_n:
            cells.insert(2, f"{row.n:,}")
        lines.append(" & ".join(cells) + r" \\")
        interval = ""
        if row.interval:
            interval = rf"{{\scriptsize {_signed(row.interval)}}}"
        below = [VERSUS + latex_text(row.second), interval, *[""] * (len(heads) - 2)]
        lines.append(" & ".join(below) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _signed(text: str) -> str:
    """Return numbers with their signs as LaTeX, in which a hyphen is shorter than a minus."""
    return text.replace("-", "$-$").replace("+", "$+$")


def _width(rows: Sequence[PairRow]) -> float:
    """Return the width of the table in characters, without space between columns."""
    # The widest cells of the columns need not be in the same row.
    names, differences, numbers = 0, 0.0, 0
    for row in rows:
        names = max(names, len(row.first), len(row.second) + VERSUS_WIDTH)
        differences = max(differences, len(row.difference), len(row.interval) * SMALL_DIGITS)
        width = len(f"{row.n:,}{row.p}")
        for count in row.counts:
            # Each count is followed by a slash, or by the space after the column.
            width += len(f"{count:,}") + 1
        numbers = max(numbers, width)
    return names + differences + numbers


def _pages(rows: Sequence[PairRow]) -> list[list[PairRow]]:
    """Split the rows into pages."""
    pages: list[list[PairRow]] = []
    lines_left, last_part = 0, None
    for row in rows:
        # A pair has two lines, and a part has a line with its name above its first pair.
        height = 2 if row.part == last_part else 3
        if not pages or height > lines_left:
            # A page begins with the name of the part, also if the part began on the page before.
            pages.append([])
            height = 3
            lines_left = LINES - LINES_OF_CAPTION_AND_RULES
        pages[-1].append(row)
        lines_left -= height
        last_part = row.part
    return pages


def mark_sentence(rows: Sequence[PairRow]) -> str:
    """Return a sentence on what the marks in the table mean."""
    if any(row.significant for row in rows):
        return f"{BETTER} significant: p < 0.05"
    return "No difference is significant at p < 0.05"
