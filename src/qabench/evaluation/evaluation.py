"""The result of one system on one config of a benchmark, as users of the package see it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from qabench.data.rows import Json
from qabench.errors import InputError, unknown_name
from qabench.evaluation.deviations import deviations_of
from qabench.evaluation.document import document_of
from qabench.evaluation.notes import notes_of, problem_sentences
from qabench.evaluation.number_form import NumberForm, number_form
from qabench.evaluation.paper import paper_table
from qabench.evaluation.paper_content import PaperColumn
from qabench.evaluation.records import Score
from qabench.evaluation.score_spec import without_readable
from qabench.evaluation.scored import ScoredRecords
from qabench.evaluation.tables import correction_tables, score_table, shown_scores
from qabench.io.tables import Displayed, Table

# Replacements for characters that MLflow refuses in names.
_TRACKED = str.maketrans({"@": "_at_", "^": "_hat_", ",": "."})
# The characters that MLflow does not allow in the name of a metric.
_NOT_TRACKED = re.compile(r"[^\w\-. :/]", re.ASCII)
# Fields of a record in ``Evaluation.to_pandas``.
IN_PANDAS = (
    "id",
    "epoch",
    "question",
    "reference",
    "answer",
    "status",
    "problem",
    "input_tokens",
    "output_tokens",
    "seconds",
    "cost",
)
IN_GROUPS_TO_PANDAS = [
    "grouping",
    "group",
    "records",
    "score",
    "value",
    "low",
    "high",
    "standard_error",
    "n",
]


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation(ScoredRecords, Displayed):
    """The records of one system on the questions of one config, with their scores.

    Its attributes are those of ``ScoredRecords``, which is a class of its own so that the modules
    imported here (``deviations``, ``notes``, ``tables``, ``document``) can take it as an argument.
    """

    def __getitem__(self, name: str) -> Score:
        """Return a score, such as ``evaluation["acc.loose"]``.

        Raises:
            InputError: there is no score of this name.
        """
        scores = self.scores()
        if name not in scores:
            # The reason why this score is undefined says more than a reason about all scores.
            reason = self.undefined().get(name) or self.why_unscored()
            if not reason:
                listed = []
                for spec in without_readable(self.score_specs):
                    if spec.name in scores:
                        listed.append(spec.name)
                reason = f"the scores are {', '.join(listed)}"
            raise InputError(f"no score {name!r}: {reason}")
        return scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores())

    def deviations(self, score: Score) -> list[str]:
        """Return what distinguishes a score from the official one, or [] if it is official."""
        return deviations_of(self, score)

    def problem_sentences(self, most: int | None = None) -> list[str]:
        """Return the problems, one sentence per kind with the first ids, but at most ``most``."""
        return problem_sentences(self, most)

    def as_dict(self, by: Sequence[str] = ()) -> Json:
        """Return the evaluation as JSON data, with the groupings ``by``. See ``document_of``."""
        return document_of(self, by)

    def to_metrics(self) -> dict[str, float]:
        """Return the defined scores by names that experiment trackers accept.

        MLflow accepts letters, digits and "_-. :/" only, so ``mrr@10`` becomes ``mrr_at_10``,
        ``pass^2`` becomes ``pass_hat_2``, and ``exact_match,first`` becomes ``exact_match.first``.
        """
        metrics: dict[str, float] = {}
        for name, score in self.scores().items():
            safe = tracked = _NOT_TRACKED.sub("_", name.translate(_TRACKED))
            number = 1
            # Two names may differ only in characters that are replaced.
            while tracked in metrics:
                number += 1
                tracked = f"{safe}_{number}"
            metrics[tracked] = score.value
        return metrics

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with one row per record: texts, costs, scores and groups."""
        import pandas as pd

        rows = []
        for record in self.records:
            row = {name: getattr(record, name) for name in IN_PANDAS}
            row |= record.scores
            for grouping, members in record.groups.items():
                # pandas treats None as a missing value, but not an empty text.
                row[grouping] = "; ".join(members) or None
            rows.append(row)
        return pd.DataFrame(rows)

    def groups_to_pandas(self, by: str | Sequence[str] | None = None) -> Any:
        """Return a pandas DataFrame with one row per grouping, group and score.

        The columns are grouping, group, records, score, value, low, high, standard_error and n. A
        record counts in each of its groups. An undefined score has no value.

        Args:
            by: groupings, such as "domain". None for all of them.

        Raises:
            InputError: an unknown grouping.
        """
        import pandas as pd

        groupings = self.groupings()
        if by is None:
            by = groupings
        named = [by] if isinstance(by, str) else list(by)
        rows = []
        for grouping in named:
            if grouping not in groupings:
                raise unknown_name("the questions have no grouping", grouping, groupings)
            scores_by_group = self.scores_by_group(grouping)
            for group, records in self.by_group(grouping).items():
                place = {"grouping": grouping, "group": group, "records": len(records)}
                scores = scores_by_group[group]
                for name in self.scores():
                    rows.append({**place, "score": name, **_numbers(scores.get(name))})
        return pd.DataFrame(rows, columns=IN_GROUPS_TO_PANDAS)

    def to_markdown(
        self, percent: bool = False, decimals: int | None = None, all_scores: bool = False
    ) -> str:
        """Return the scores as a Markdown table for a paper, with its notes below it.

        Args:
            percent: whether scores are printed in percent.
            decimals: the number of decimals of scores. None for 4, or 2 in percent.
            all_scores: whether scores that are not main scores are shown, too.
        """
        return self._document("markdown", number_form(percent, decimals), all_scores)

    def to_latex(
        self, percent: bool = False, decimals: int | None = None, all_scores: bool = False
    ) -> str:
        """Return the scores as LaTeX, for the booktabs package. See ``to_markdown``."""
        return self._document("latex", number_form(percent, decimals), all_scores)

    def _document(self, format: str, form: NumberForm, all_scores: bool) -> str:
        columns = []
        for score in shown_scores(self.scores(), all_scores).values():
            columns.append(PaperColumn(score.spec, {self.name: score}))
        in_document = ("unscored", "problem", "note")
        notes = [note.text for note in notes_of(self) if note.kind in in_document]
        table = paper_table(columns, {self.name: [self]}, form)
        texts = [replace(table, notes=[*notes, *table.notes]).formatted(format)]
        for corrected in correction_tables([self], [self.name]):
            texts.append(corrected.formatted(format))
        return "\n".join(texts)

    def tables(self) -> list[Table]:
        """Return the scores as a table, as ``print`` and notebooks show it, with notes."""
        table = score_table([self], [self.title])
        # The table itself says why there are no scores. Signatures are too long for a terminal.
        shown = ("problem", "note", "deviation")
        table.notes.extend(note.text for note in notes_of(self) if note.kind in shown)
        return [table, *correction_tables([self], [self.title])]


def _numbers(score: Score | None) -> Json:
    """Return the numbers of a score by column. An undefined score has n only."""
    if score is None:
        return {"n": 0}
    interval = score.interval
    return {
        "value": score.value,
        "low": interval.low,
        "high": interval.high,
        "standard_error": interval.standard_error,
        "n": score.n,
    }
