"""Tables for a paper: systems as rows, scores or groups as columns, one caption, as LaTeX or Markdown.

The best system of a column is bold, and significant differences are marked. ``Comparison``,
``Evaluation``, the commands and the page of a report print these tables.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

from qabench.evaluation.deviations import deviation_sentences, deviations_of
from qabench.evaluation.number_form import PLAIN, NumberForm
from qabench.evaluation.records import Score
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.scored import ScoredRecords
from qabench.io.escaping import latex_text, markdown_text, one_line
from qabench.io.tables import Table

BETTER, WORSE = "†", "‡"
_LATEX_MARKS = {BETTER: r"\dagger", WORSE: r"\ddagger"}
# The width of a line in a column's head, in characters of LaTeX.
HEAD_WIDTH = 12
# Widths in characters: of a column of a page, and of the page, in LaTeX's article.
ONE_COLUMN_WIDTH, FULL_WIDTH = 42, 72
# Lines of a table that fit on a page of article, and those of a part's head and rules.
PAGE_LINES, HEAD_LINES = 46, 5
# Characters of a line of a caption.
CAPTION_WIDTH = 70
NARROW = r"\setlength{\tabcolsep}{3pt}"
# The width of a character of an interval, which is set in a small font, in normal characters.
SMALL_DIGITS = 0.75
COLUMN_SPACE = 2.5


@dataclass(frozen=True, slots=True)
class Marks:
    """Which systems a column marks.

    Attributes:
        best: the labels of the systems with the best value, which are bold.
        better: those that are significantly better than the baseline.
        worse: those that are significantly worse than the baseline, or than the best system.
        test: how differences were tested, such as "two-sided paired randomization test, p < 0.05".
        baseline: the system with which all others are compared. "" for the best system of each
            column.
        notes: sentences, such as why no system is marked.
    """

    best: frozenset[str] = frozenset()
    better: frozenset[str] = frozenset()
    worse: frozenset[str] = frozenset()
    test: str = ""
    baseline: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PaperColumn:
    """A column: the values of one score, on all questions or on one group.

    Attributes:
        spec: the score.
        scores: system -> its score. A system without it has an empty cell.
        marks: what is bold and marked.
        group: the group of questions, such as "math", or "" for all questions.
        title: the head of the column. "" for the score's title, or for the group with its n.
        over: the head above all columns of one config, in a table of several configs. Else "".
    """

    spec: ScoreSpec
    scores: Mapping[str, Score]
    marks: Marks = Marks()
    group: str = ""
    title: str = ""
    over: str = ""

    @property
    def head(self) -> str:
        """Return the title of the column: its group with n, or the title of the score."""
        if self.group:
            return f"{self.group} (n = {self.numbers()})"
        return self.title or self.spec.title

    def sizes(self) -> str:
        """Return n of the systems, such as "310 questions" or "250 to 310 questions"."""
        unit = self.spec.unit
        if self.numbers() == "1":
            unit = unit.removesuffix("s")
        return f"{self.numbers()} {unit}"

    def numbers(self) -> str:
        """Return n of the systems without its unit."""
        numbers = sorted({score.n for score in self.scores.values()}) or [0]
        if len(numbers) == 1:
            return f"{numbers[0]:,}"
        return f"{numbers[0]:,} to {numbers[-1]:,}"


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table for a paper.

    Attributes:
        systems: the labels of the rows.
        columns: at least one.
        caption: its sentences, without what the table says of its own marks and numbers.
        signatures: short ones, at the end of the caption.
        notes: sentences for the author, such as deviations: comments of LaTeX, a list in Markdown.
        full_signatures: also comments of LaTeX.
        form: how scores are printed.
        label: the label by which the text refers to the table, such as "fanoutqa-dev".
    """

    systems: Sequence[str]
    columns: Sequence[PaperColumn]
    caption: Sequence[str] = ()
    signatures: Sequence[str] = ()
    notes: Sequence[str] = ()
    full_signatures: Sequence[str] = ()
    form: NumberForm = PLAIN
    label: str = "scores"

    def sentences(self) -> list[str]:
        """Return the caption's sentences."""
        return [*self.caption, f"{self._about_numbers()}.", *self._legend()]

    def _about_numbers(self) -> str:
        """Return which numbers the table has: scores, in percent or not, and intervals."""
        has_intervals = False
        # A dict as an ordered set.
        heads_in_percent: dict[str, None] = {}
        n_in_percent = 0
        for column in self.columns:
            if any(score.low is not None for score in column.scores.values()):
                has_intervals = True
            if self._form(column).percent:
                heads_in_percent[column.head] = None
                n_in_percent += 1
        numbers = "Scores"
        if 0 < n_in_percent < len(self.columns):
            # Numbers of facts, for example, are never in percent.
            numbers = f"Scores ({', '.join(heads_in_percent)} in percent)"
        elif n_in_percent:
            numbers = "Scores in percent"
        if has_intervals:
            numbers += " with 95% confidence intervals"
        return numbers

    def formatted(self, format: str) -> str:
        """Return the table as "markdown" or "latex"."""
        if format == "latex":
            return self.latex()
        return self.markdown()

    def markdown(self) -> str:
        """Return the table as Markdown, with the caption below it."""
        heads = []
        for column in self.columns:
            heads.append(": ".join(filter(None, [column.over, column.head])))
        lines = [
            _markdown_row(["system", *map(markdown_text, heads)]),
            _markdown_row(["---", *["--:"] * len(self.columns)]),
        ]
        for system in self.systems:
            cells = [markdown_text(system)]
            for column in self.columns:
                value, interval = self._texts(column, system)
                if system in column.marks.best:
                    value = f"**{value}**"
                cells.append(f"{value}{_mark(column, system)} {interval}".strip())
            lines.append(_markdown_row(cells))
        paragraphs = ["\n".join(lines), " ".join(map(markdown_text, self.sentences()))]
        if self.signatures:
            codes = [_markdown_code(line) for line in self.signatures]
            paragraphs.append(f"{_signature_word(self.signatures)} {', '.join(codes)}")
        if self.notes:
            items = [f"- {markdown_text(note)}" for note in self.notes]
            paragraphs.append("\n".join(items))
        return "\n\n".join(paragraphs) + "\n"

    def latex(self) -> str:
        """Return the table as LaTeX, for the package booktabs."""
        blocks, width = self._blocks()
        environment = "table"
        small: list[str] = []
        if width > ONE_COLUMN_WIDTH:
            # In LaTeX, the star is for a table over both columns of a page.
            environment, small = "table*", [r"\small", NARROW]
        caption = self._latex_caption()
        lines = [f"% {one_line(text)}" for text in [*self.notes, *self.full_signatures]]
        per_page = self._blocks_per_page()
        for start in range(0, len(blocks), per_page):
            label = self.label
            if start:
                # The other parts refer to the first one, which has the long caption.
                caption = rf"Table~\ref{{tab:{self.label}}}, continued."
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
                lines += self._tabular(block)
            lines.append(rf"\end{{{environment}}}")
        return "\n".join(lines) + "\n"

    def _latex_caption(self) -> str:
        caption = " ".join(map(in_latex, self.sentences()))
        if not self.signatures:
            return caption
        codes = [rf"\texttt{{{_breakable(line)}}}" for line in self.signatures]
        return f"{caption} {_signature_word(self.signatures)} {', '.join(codes)}."

    def _blocks_per_page(self) -> int:
        """Return how many parts of the table fit on a page of LaTeX, below each other."""
        # A system has a line of values and one of intervals.
        block_lines = 2 * len(self.systems) + HEAD_LINES
        caption_length = sum(map(len, [*self.sentences(), *self.signatures]))
        caption_lines = caption_length // CAPTION_WIDTH + 1
        return max(1, (PAGE_LINES - caption_lines) // block_lines)

    def _legend(self) -> list[str]:
        """Return what bold values and marks mean."""
        has_best, has_differences, baseline = False, False, ""
        # A dict as an ordered set.
        tests: dict[str, None] = {}
        columns_by_note: dict[str, list[PaperColumn]] = {}
        for column in self.columns:
            marks = column.marks
            has_best = has_best or bool(marks.best)
            has_differences = has_differences or bool(marks.better or marks.worse)
            # All columns have the same baseline, if any.
            baseline = baseline or marks.baseline
            if marks.test:
                tests[marks.test] = None
            for note in marks.notes:
                columns_by_note.setdefault(note, []).append(column)
        sentences = []
        if has_best:
            sentences.append("Bold: best score.")
        if has_differences:
            # Nothing is better than the best system, so one mark is enough without a baseline.
            meaning = f"{BETTER} significantly worse than the best system"
            if baseline:
                meaning = (
                    f"{BETTER} significantly better and {WORSE} significantly worse than {baseline}"
                )
            sentences.append(f"{meaning} ({'; '.join(tests)}).")
        elif tests:
            sentences.append(f"No difference is significant ({'; '.join(tests)}).")
        for note, columns in columns_by_note.items():
            if places := ", ".join(self._places(columns)):
                note = f"{places}: {note}"
            sentences.append(_as_sentence(note))
        return sentences

    def _places(self, columns: Sequence[PaperColumn]) -> list[str]:
        """Return the names of columns, of all that a config has its name, and [] for all columns."""
        if len(columns) == len(self.columns):
            return []
        names: dict[str, None] = {}
        for column in columns:
            name = column.group or column.head
            if column.over:
                of_config = [member for member in self.columns if member.over == column.over]
                if all(member in columns for member in of_config):
                    name = column.over
                else:
                    name = f"{column.over}, {name}"
            names[name] = None
        return list(names)

    def _form(self, column: PaperColumn) -> NumberForm:
        """Return the form of a column, which is not in percent if its score is not a share."""
        return self.form.fitting(score.spec for score in column.scores.values())

    def _texts(self, column: PaperColumn, system: str) -> tuple[str, str]:
        """Return a system's value and interval, which are empty without a score."""
        score = column.scores.get(system)
        if score is None:
            return "", ""
        form = self._form(column)
        return form.number(score.value), form.brackets(score.interval)

    def _width(self, column: PaperColumn) -> float:
        """Return the width of a column in characters, with the space before it."""
        widths: list[float] = [len(line) for line in _head_lines(column)]
        # The head of a config is spread over its columns.
        of_config = [member for member in self.columns if member.over == column.over]
        for line in _over_lines(column.over, len(of_config)):
            widths.append(len(line) / len(of_config))
        for system in self.systems:
            value, interval = self._texts(column, system)
            widths += [len(value), len(interval) * SMALL_DIGITS]
        return max(widths) + COLUMN_SPACE

    def _blocks(self) -> tuple[list[list[PaperColumn]], float]:
        """Split the columns into blocks that fit on a page. Also return the largest width."""
        names = max(map(len, self.systems), default=0)
        blocks: list[list[PaperColumn]] = []
        width = widest = float(names)
        for column in self.columns:
            own = self._width(column)
            if not blocks or width + own > FULL_WIDTH:
                blocks.append([])
                width = names
            blocks[-1].append(column)
            width += own
            widest = max(widest, width)
        return blocks, widest

    def _tabular(self, columns: Sequence[PaperColumn]) -> list[str]:
        """Return the lines of a part: two per system, with the intervals below the values."""
        lines = [rf"\begin{{tabular}}{{l{'r' * len(columns)}}}", r"\toprule"]
        lines += _spanning_heads(columns)
        lines.append(" & ".join(["System", *map(_latex_head, columns)]) + r" \\")
        lines.append(r"\midrule")
        for number, system in enumerate(self.systems):
            if number:
                lines.append(r"\addlinespace[2pt]")
            values, intervals = [latex_text(system)], [""]
            for column in columns:
                value, interval = self._texts(column, system)
                if system in column.marks.best:
                    value = rf"\textbf{{{value}}}"
                if mark := _mark(column, system):
                    # The mark has no width of its own, so that digits stay below digits.
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
    """Return a table as LaTeX with its title and notes as the caption, for the package booktabs."""
    caption = " ".join(in_latex(_as_sentence(text)) for text in [table.title, *table.notes])
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


def paper_table(
    columns: Sequence[PaperColumn],
    evaluations: Mapping[str, Sequence[ScoredRecords]],
    form: NumberForm = PLAIN,
    titles: Mapping[str, str] | None = None,
    more_sentences: Sequence[str] = (),
) -> PaperTable:
    """Return columns as a table, with what its readers must know of the evaluations.

    Args:
        columns: at least one, of all evaluations.
        evaluations: label -> its evaluations, one per config.
        form: how scores are printed.
        titles: benchmark -> its title, such as "fanoutqa" -> "FanOutQA".
        more_sentences: sentences of the caption before those about numbers and marks.
    """
    everything = list(chain.from_iterable(evaluations.values()))
    titles_by_name = {column.spec.name: column.spec.title for column in columns}
    groups = {column.spec.group for column in columns}
    first_by_questions: dict[str, ScoredRecords] = {}
    # Dicts as ordered sets: the signatures and deviations of several systems may be equal.
    short: dict[str, None] = {}
    notes: dict[str, None] = {}
    full: dict[str, None] = {}
    for evaluation in everything:
        first_by_questions.setdefault(evaluation.questions, evaluation)
        notes |= dict.fromkeys(deviation_sentences(evaluation, titles_by_name))
        short_lines = evaluation.short_signatures()
        for group, line in evaluation.signatures.items():
            if group in groups:
                short[short_lines[group]] = None
                full[line] = None
    caption: list[str] = []
    for questions, first in first_by_questions.items():
        caption.append(_about_questions(columns, questions, first, titles or {}))
    caption += map(_as_sentence, more_sentences)
    if unofficial := _unofficial(everything, titles_by_name):
        named = ", ".join(titles_by_name[name] for name in unofficial)
        caption.append(f"Not official: {named}.")
    return PaperTable(
        list(evaluations),
        columns,
        caption,
        list(short),
        list(notes),
        list(full),
        form,
        label_of(*first_by_questions),
    )


def with_groups(whole: PaperColumn, groups: Sequence[PaperColumn]) -> list[PaperColumn]:
    """Return the column of all questions and those of groups, whose test the caption names."""
    marks = whole.marks
    if any(group.marks.test for group in groups):
        marks = replace(marks, test="")
    return [replace(whole, title="all", marks=marks), *groups]


def label_of(*names: str) -> str:
    """Return names as a part of a label of LaTeX, such as "fanoutqa-dev"."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(names).lower()).strip("-")


def _about_questions(
    columns: Sequence[PaperColumn],
    questions: str,
    first: ScoredRecords,
    titles: Mapping[str, str],
) -> str:
    """Return the name of the questions with n, such as "FanOutQA (dev): n = 310 questions."."""
    title = over_title(first, titles)
    # A dict as an ordered set.
    sizes: dict[str, None] = {}
    for column in columns:
        # The head of a group has its n.
        if column.over in ("", title) and not column.group:
            sizes[column.sizes()] = None
    if not sizes:
        return f"{questions}."
    *first_sizes, listed = sizes
    if first_sizes:
        listed = f"{', '.join(first_sizes)} and {listed}"
    return f"{title}: n = {listed}."


def over_title(evaluation: ScoredRecords, titles: Mapping[str, str]) -> str:
    """Return the title of an evaluation's questions, such as "FanOutQA (dev)"."""
    if not evaluation.benchmark:
        return evaluation.config
    title = titles.get(evaluation.benchmark, evaluation.benchmark)
    return f"{title} ({evaluation.config})"


def _unofficial(evaluations: Sequence[ScoredRecords], names: Container[str]) -> list[str]:
    """Return the names of the shown scores that deviate from the official ones."""
    unofficial: dict[str, None] = {}
    for evaluation in evaluations:
        for name, score in evaluation.scores().items():
            if name in names and deviations_of(evaluation, score):
                unofficial[name] = None
    return list(unofficial)


def _as_sentence(text: str) -> str:
    """Return a text with a period. It may begin with a name, whose letters stay as they are."""
    return f"{text.removesuffix('.')}."


def _mark(column: PaperColumn, system: str) -> str:
    """Return the mark of a system in a column, or ""."""
    marks = column.marks
    if system in marks.better:
        return BETTER
    if system not in marks.worse:
        return ""
    if marks.baseline:
        return WORSE
    # Without a baseline, all marked systems are worse, and the caption explains this mark.
    return BETTER


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_code(text: str) -> str:
    return f"`{one_line(text).replace('`', '')}`"


def _signature_word(signatures: Sequence[str]) -> str:
    if len(signatures) == 1:
        return "Signature:"
    return "Signatures:"


def _breakable(signature: str) -> str:
    """Return a signature as LaTeX, with lines that may end after a field or a plus."""
    parts = map(latex_text, re.split(r"(?<=[|+])", signature))
    # A bar prints as it is in a typewriter font.
    return r"\allowbreak{}".join(parts).replace(r"\textbar{}", "|")


def _head_lines(column: PaperColumn) -> list[str]:
    """Return the lines of a column's head, of whole words."""
    words = column.group or column.head
    lines = textwrap.wrap(words, HEAD_WIDTH, break_long_words=False, break_on_hyphens=False)
    if column.group:
        lines.append(f"n = {column.numbers()}")
    return lines or [""]


def _latex_head(column: PaperColumn) -> str:
    return _stacked(_head_lines(column), "r")


def _over_lines(title: str, columns: int) -> list[str]:
    """Return the lines of a head above some columns."""
    width = HEAD_WIDTH * columns
    return textwrap.wrap(title, width, break_long_words=False, break_on_hyphens=False)


def _stacked(lines: Sequence[str], side: str) -> str:
    escaped = list(map(latex_text, lines))
    if len(escaped) == 1:
        return escaped[0]
    together = r"\\".join(escaped)
    return rf"\shortstack[{side}]{{{together}}}"


def in_latex(text: str) -> str:
    """Return a sentence of a caption as LaTeX, with its marks as they are in cells."""
    escaped = latex_text(text)
    for mark, command in _LATEX_MARKS.items():
        escaped = escaped.replace(mark, f"$^{{{command}}}$")
    return escaped


def _spanning_heads(columns: Sequence[PaperColumn]) -> list[str]:
    """Return the row with the configs above their columns, or [] in a table of one."""
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
