"""Comparisons of systems by a score, on all questions or on groups, as users of the package see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from qabench.data.rows import natural_key
from qabench.errors import InputError, unknown_name
from qabench.evaluation.compared import CORRECTION, TEST, ComparedSystems
from qabench.evaluation.comparison_papers import (
    comparison_document,
    comparison_paper_tables,
    marks_of,
)
from qabench.evaluation.comparison_tables import (
    COMMAND_HINT,
    PYTHON_HINT,
    comparison_tables,
    sentences_about_systems,
)
from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.number_form import PLAIN, NumberForm, number_form
from qabench.evaluation.pair_tests import detectable_difference, tested_pairs
from qabench.evaluation.pairs import Pair
from qabench.evaluation.paper import PaperTable
from qabench.evaluation.paper_content import Marks
from qabench.evaluation.records import Score, scores_of
from qabench.evaluation.score_spec import ScoreSpec
from qabench.io.tables import Displayed, Table
from qabench.stats.corrections import adjust
from qabench.stats.paired import RESAMPLES, SEED, TESTS

__all__ = [
    "CORRECTION",
    "SEED",
    "TEST",
    "Comparison",
    "Pair",
    "compare",
    "compare_groups",
    "detectable_difference",
]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(ComparedSystems, Displayed):
    """A comparison of systems by a score, with its tables and documents.

    It has the attributes of ``ComparedSystems``.
    """

    others: tuple[Comparison, ...] = ()

    def to_pandas(self) -> Any:
        """Return all pairs, by all scores and on all groups, as a pandas DataFrame."""
        import pandas as pd

        rows = []
        for comparison in (self, *self.others):
            compared: dict[str, Any] = {
                "questions": comparison.questions,
                "metric": comparison.spec.name,
                "grouping": None,
                "group": None,
            }
            if comparison.group:
                compared["grouping"], compared["group"] = comparison.group
            for pair in comparison.pairs:
                rows.append(compared | pair.as_dict())
        return pd.DataFrame(rows)

    def tables(self) -> list[Table]:
        """Return the tables of scores and of pairs. Notes about the systems are in the last one."""
        tables = self.score_tables(hint=PYTHON_HINT)
        # A sentence about the samples of a log can be in both lists.
        sentences = dict.fromkeys([*self.notes, *sentences_about_systems(self)])
        tables[-1].notes.extend(sentences)
        return tables

    def score_tables(
        self, form: NumberForm = PLAIN, all_scores: bool = False, hint: str = COMMAND_HINT
    ) -> list[Table]:
        """Return tables of scores and of differences, first on all questions, then on groups.

        Args:
            form: how scores are printed.
            all_scores: whether scores that are not main scores are shown, too.
            hint: the note to add if some scores are hidden. {} stands for the number of all scores.
        """
        return comparison_tables([self, *self.others], form, all_scores, hint)

    def paper_tables(
        self,
        form: NumberForm = PLAIN,
        all_scores: bool = False,
        titles: Mapping[str, str] | None = None,
    ) -> list[PaperTable]:
        """Return tables for a paper: one per task, and one per score and grouping.

        Args:
            form: how scores are printed.
            all_scores: whether scores that are not main scores are shown, too.
            titles: benchmark -> its title.
        """
        return comparison_paper_tables([self, *self.others], form, all_scores, titles)

    def marks(self) -> Marks:
        """Return the marks of a paper's table: the best systems, and significant differences."""
        return marks_of(self)

    def to_latex(
        self, percent: bool = False, decimals: int | None = None, all_scores: bool = False
    ) -> str:
        """Return the scores and the pairs as LaTeX, for the booktabs package.

        Args:
            percent: whether scores are printed in percent.
            decimals: the number of decimals of scores. None for 4, or 2 in percent.
            all_scores: whether scores that are not main scores are shown, too.
        """
        return self.document("latex", number_form(percent, decimals), all_scores)

    def to_markdown(
        self, percent: bool = False, decimals: int | None = None, all_scores: bool = False
    ) -> str:
        """Return the scores and the pairs as Markdown. See ``to_latex``."""
        return self.document("markdown", number_form(percent, decimals), all_scores)

    def document(
        self,
        format: str,
        form: NumberForm = PLAIN,
        all_scores: bool = False,
        titles: Mapping[str, str] | None = None,
    ) -> str:
        """Return the tables for a paper and the tables of pairs as "latex" or "markdown"."""
        return comparison_document([self, *self.others], format, form, all_scores, titles)


def check_testing(test: str, correction: str) -> None:
    """Raise InputError for an unknown test or correction, before any work is done."""
    if test not in TESTS:
        raise unknown_name("unknown test", test, TESTS)
    # No p-values: this checks the name of the correction only.
    adjust([], correction)


def compare(
    evaluations: Mapping[str, Evaluation],
    spec: ScoreSpec,
    *,
    test: str = TEST,
    correction: str = CORRECTION,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    baseline: str = "",
) -> Comparison:
    """Compare each pair of systems by a score, on the questions for which both have one.

    The epochs of a question count as one question, with the mean of its statistics. A score that
    is a function of sums (F1, shares of claims) is computed from the sums over the questions.
    Swaps and resamples in which the difference is undefined are left out.

    Args:
        evaluations: the evaluations by label, all on the same config. See ``without_superseded``
            for resumed runs.
        spec: a score of the benchmark.
        test: "randomization" or "bootstrap". See ``qabench.stats``.
        correction: "holm", "bh" or "none". See ``qabench.stats.adjust``.
        resamples: the number of resamples of intervals and tests.
        seed: the seed of intervals and tests.
        baseline: the label of the system that all others are compared with. "" for all pairs.

    Raises:
        InputError: an unknown test, correction or baseline, or evaluations of several benchmarks or
            configs.
    """
    check_testing(test, correction)
    if baseline and baseline not in evaluations:
        raise unknown_name("there is no system", baseline, list(evaluations))
    configs = {evaluation.questions for evaluation in evaluations.values()}
    if len(configs) > 1:
        raise InputError(
            f"systems must be compared on one config; these are on {', '.join(sorted(configs))}"
        )
    scores: dict[str, Score] = {}
    for label, evaluation in evaluations.items():
        score = _score(evaluation, spec)
        if score is not None:
            scores[label] = score
    best_first = sorted(
        scores.items(), key=lambda item: item[1].value, reverse=spec.higher_is_better
    )
    systems = dict(best_first)
    label_pairs = []
    for first, second in combinations(systems, 2):
        if not baseline or baseline in (first, second):
            label_pairs.append((first, second))
    scored = {label: evaluations[label] for label in systems}
    tested = tested_pairs(scored, label_pairs, spec, test, resamples, seed)
    # Only now is it known how many pairs could be tested, which the correction depends on.
    corrected = adjust([pair.difference.p_value for pair in tested], correction)
    pairs = []
    for pair, p in zip(tested, corrected, strict=True):
        pairs.append(replace(pair, corrected_p=p))
    return Comparison(
        spec,
        systems,
        tuple(pairs),
        test,
        correction,
        resamples,
        seed,
        dict(evaluations),
        baseline=baseline,
    )


def _score(evaluation: Evaluation, spec: ScoreSpec) -> Score | None:
    """Return a score of an evaluation, or None if it has no answer or the score is undefined."""
    scores = evaluation.scores()
    is_answered = evaluation.answered and spec.group not in evaluation.unanswered_groups()
    if spec.name not in scores and is_answered and not spec.reducer:
        # A section of a report may compare systems by a score that the evaluation does not list.
        scores = scores_of([spec], evaluation.records)
    return scores.get(spec.name)


def compare_groups(
    evaluations: Mapping[str, Evaluation],
    spec: ScoreSpec,
    grouping: str,
    *,
    correction: str = CORRECTION,
    **testing: Any,
) -> list[Comparison]:
    """Compare systems on each group of a grouping, in the order of the groups' names.

    Groups without a pair are left out. p-values are corrected over the pairs of all groups. See
    ``compare``.
    """
    names: set[str] = set()
    for evaluation in evaluations.values():
        names |= evaluation.by_group(grouping).keys()
    comparisons = []
    for name in sorted(names, key=natural_key):
        in_group = {}
        for label, evaluation in evaluations.items():
            records = evaluation.by_group(grouping).get(name, [])
            in_group[label] = replace(evaluation, records=records)
        comparison = compare(in_group, spec, correction=correction, **testing)
        if comparison.pairs:
            comparisons.append(replace(comparison, group=(grouping, name)))
    p_values: list[float] = []
    for comparison in comparisons:
        p_values += [pair.difference.p_value for pair in comparison.pairs]
    # ``compare`` has corrected over the pairs of one group. These p-values replace its p-values.
    corrected = iter(adjust(p_values, correction))
    corrected_comparisons = []
    for comparison in comparisons:
        pairs = [replace(pair, corrected_p=next(corrected)) for pair in comparison.pairs]
        corrected_comparisons.append(replace(comparison, pairs=tuple(pairs)))
    return corrected_comparisons
