"""The content of a table for a paper in any format: its columns, marks and caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qabench.evaluation.number_form import PLAIN, NumberForm
from qabench.evaluation.records import Score
from qabench.evaluation.score_spec import ScoreSpec

BETTER, WORSE = "†", "‡"


@dataclass(frozen=True, slots=True)
class Marks:
    """Which systems a column marks.

    Attributes:
        best: the labels of the systems with the best value, which are bold.
        better: the labels of the systems that are significantly better than the baseline.
        worse: the labels of the systems that are significantly worse than the baseline, or than the
            best system if there is no baseline.
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
        over: the head above all columns of one config, in a table of several configs. "" if the
            table has one config.
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
        """Return the systems' n with its unit: "310 questions" or "250 to 310 questions"."""
        unit = self.spec.unit
        if self.numbers() == "1":
            unit = unit.removesuffix("s")
        return f"{self.numbers()} {unit}"

    def numbers(self) -> str:
        """Return the systems' n without its unit: "310" or "250 to 310"."""
        numbers = sorted({score.n for score in self.scores.values()}) or [0]
        if len(numbers) == 1:
            return f"{numbers[0]:,}"
        return f"{numbers[0]:,} to {numbers[-1]:,}"


@dataclass(frozen=True, slots=True)
class PaperContent:
    """The content of a table for a paper: rows of systems, columns of scores, and a caption.

    Attributes:
        systems: the labels of the rows.
        columns: at least one.
        caption: the first sentences of the caption. ``sentences`` adds more about numbers and
            marks.
        signatures: the short signatures, for the end of the caption.
        notes: sentences for the author, such as deviations. They are comments in LaTeX, and a list
            in Markdown.
        full_signatures: the full signatures, which are comments in LaTeX.
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
            # Without a baseline, one mark is enough: nothing is better than the best system.
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
            sentences.append(as_sentence(note))
        return sentences

    def _places(self, columns: Sequence[PaperColumn]) -> list[str]:
        """Return short names of columns: [] for all, and a config's name for all of its columns."""
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

    def texts(self, column: PaperColumn, system: str) -> tuple[str, str]:
        """Return a system's value and interval, or empty texts if it does not have the score."""
        score = column.scores.get(system)
        if score is None:
            return "", ""
        form = self._form(column)
        return form.number(score.value), form.brackets(score.interval)


def as_sentence(text: str) -> str:
    """Return a text with a final period. Its first letter is not capitalized, because it may begin a name."""
    return f"{text.removesuffix('.')}."


def mark_of(column: PaperColumn, system: str) -> str:
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


def signature_word(signatures: Sequence[str]) -> str:
    if len(signatures) == 1:
        return "Signature:"
    return "Signatures:"
