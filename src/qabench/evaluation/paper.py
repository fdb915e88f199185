"""Tables for a paper, as LaTeX or Markdown: a row per system, a column per score or group, a caption.

The best system of a column is bold, and significant differences are marked. ``Comparison``,
``Evaluation``, the commands and the page of a report print these tables.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from qabench.evaluation.deviations import deviation_sentences, deviations_of
from qabench.evaluation.number_form import PLAIN, NumberForm
from qabench.evaluation.paper_content import (
    PaperColumn,
    PaperContent,
    as_sentence,
    mark_of,
    signature_word,
)
from qabench.evaluation.paper_latex import latex_of
from qabench.evaluation.scored import ScoredRecords
from qabench.io.escaping import markdown_text, one_line


@dataclass(frozen=True, slots=True)
class PaperTable(PaperContent):
    """A table for a paper, as Markdown or LaTeX. It has the attributes of ``PaperContent``."""

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
                value, interval = self.texts(column, system)
                if system in column.marks.best:
                    value = f"**{value}**"
                cells.append(f"{value}{mark_of(column, system)} {interval}".strip())
            lines.append(_markdown_row(cells))
        paragraphs = ["\n".join(lines), " ".join(map(markdown_text, self.sentences()))]
        if self.signatures:
            codes = [_markdown_code(line) for line in self.signatures]
            paragraphs.append(f"{signature_word(self.signatures)} {', '.join(codes)}")
        if self.notes:
            items = [f"- {markdown_text(note)}" for note in self.notes]
            paragraphs.append("\n".join(items))
        return "\n\n".join(paragraphs) + "\n"

    def latex(self) -> str:
        """Return the table as LaTeX, for the booktabs package."""
        return latex_of(self)


def paper_table(
    columns: Sequence[PaperColumn],
    evaluations: Mapping[str, Sequence[ScoredRecords]],
    form: NumberForm = PLAIN,
    titles: Mapping[str, str] | None = None,
    more_sentences: Sequence[str] = (),
) -> PaperTable:
    """Return columns as a table, with notes for its readers.

    Args:
        columns: at least one.
        evaluations: label -> its evaluations, one per config.
        form: how scores are printed.
        titles: benchmark -> its title, such as "fanoutqa" -> "FanOutQA".
        more_sentences: further sentences for the caption.
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
    caption += map(as_sentence, more_sentences)
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
    """Return the columns of all questions and of groups."""
    marks = whole.marks
    # If groups were tested, the caption names only their test, not the test on all questions.
    if any(group.marks.test for group in groups):
        marks = replace(marks, test="")
    return [replace(whole, title="all", marks=marks), *groups]


def label_of(*names: str) -> str:
    """Join names into a label for LaTeX, such as "fanoutqa-dev"."""
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
        # The head of a group's column has its n already.
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


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_code(text: str) -> str:
    return f"`{one_line(text).replace('`', '')}`"
