"""Paired tests of every pair of systems by one score, corrected over the pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, combinations
from typing import Any

import numpy as np

from qabench.data.rows import natural_key
from qabench.errors import InputError, unknown_name
from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.groupings import grouping_sentences
from qabench.evaluation.judged import CorrectedPair, pair_table
from qabench.evaluation.labels import with_systems
from qabench.evaluation.notes import notes_of
from qabench.evaluation.number_form import PLAIN, NumberForm, number_form, p_text
from qabench.evaluation.paper import (
    Marks,
    PaperColumn,
    PaperTable,
    floating,
    label_of,
    over_title,
    paper_table,
    with_groups,
)
from qabench.evaluation.paper_pairs import PairRow, mark_sentence, pairs_latex
from qabench.evaluation.records import Score, clusters_of, reduced, rows_by_question, scores_of
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.tables import correction_tables
from qabench.io.tables import NO_BOUNDS, Displayed, Table
from qabench.stats.corrections import adjust
from qabench.stats.differences import FEWEST_DIFFERING, SIGNIFICANCE
from qabench.stats.intervals import Interval
from qabench.stats.paired import RESAMPLES, TESTS, Difference, paired_tests
from qabench.stats.power import detectable
from qabench.stats.units import ROUNDING, Array, Function, mean, table, units
from qabench.stats.units import scores as sums_to_scores

TEST = TESTS[0]
CORRECTION = "holm"
SEED = 0
CORRECTION_TITLES = {"holm": "Holm's", "bh": "Benjamini and Hochberg's"}
# Further fields of a pair, in JSON and in pandas.
COUNTS = ("wins", "ties", "losses", "n", "answered", "only_first", "only_second", "detectable")
PAIR_COLUMNS = [
    "pair",
    "at 5%",
    "difference",
    "95% interval",
    "n",
    "p",
    "corrected p",
    "detectable",
]
PAIR_COLUMNS += COUNTS[:3]
COMMAND_HINT = "--all-scores prints {} scores"
PYTHON_HINT = "score_tables(all_scores=True) and to_pandas() have {} scores"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems on the questions that both have scores for.

    Attributes:
        first: the label of the system that is better on these questions.
        second: the label of the other system.
        difference: first minus second, with its interval and p-value.
        corrected_p: the p-value corrected for the number of pairs.
        wins: the number of questions on which the first is better: with the second's answer to
            the question alone, the first's score would be lower (or for an error rate higher).
        ties: the number of questions whose answers make no difference to the score.
        losses: the number of questions on which the second is better.
        n: the number of questions.
        scores: the scores of the first and the second system on these questions.
        answered: the number of these questions that both systems answered.
        only_first: the number of further questions for which only the first system has a score.
        only_second: the number of further questions for which only the second system has a score.
        unanswered: the number of these questions that the first system did not answer and the
            second did, and the other way around.
        detectable: the smallest difference that these questions would show with a power of 80 %,
            or None if too few of them differ, or all by the same. See ``detectable_difference``.
    """

    first: str
    second: str
    difference: Difference
    corrected_p: float
    wins: int
    ties: int
    losses: int
    n: int
    scores: tuple[float, float]
    answered: int
    only_first: int = 0
    only_second: int = 0
    unanswered: tuple[int, int] = (0, 0)
    detectable: float | None = None

    @property
    def significant(self) -> bool:
        """Return whether the first is better than the second: the corrected p-value is below 5%."""
        # Systems that answered no common question are not comparable, whatever p is.
        return self.answered > 0 and self.corrected_p < SIGNIFICANCE

    @property
    def is_equal(self) -> bool:
        """Return whether no question makes a difference."""
        return not (self.wins or self.losses) and abs(self.difference.interval.mean) <= ROUNDING

    def has(self, label: str) -> bool:
        """Return whether the system is one of the two."""
        return label in (self.first, self.second)

    @property
    def verdict(self) -> str:
        """Return what the test says, and how many questions only one of the systems answered."""
        if not self.answered:
            return "no question was answered by both"
        if self.significant:
            verdict = f"{self.first} is better"
        elif self.is_equal:
            verdict = "no difference"
        else:
            verdict = "no significant difference"
        if missing := self.missing():
            verdict += f" ({missing})"
        return verdict

    def missing(self) -> str:
        """Return how many questions only one of the systems answered, in words, or ""."""
        clauses = []
        for label, count in zip((self.first, self.second), self.unanswered, strict=True):
            if count:
                clauses.append(f"{label} has no answer to {count:,}")
        return ", ".join(clauses)

    def about_questions(self, form: NumberForm = PLAIN) -> str:
        """Return on which questions the systems are compared if one of them has others, or ""."""
        if not (self.only_first or self.only_second):
            return ""
        first_score = form.number(self.scores[0]) + form.unit
        second_score = form.number(self.scores[1]) + form.unit
        first_n, second_n = self.n + self.only_first, self.n + self.only_second
        return (
            f"{self.first} and {self.second} are compared on the {self.n:,} questions for which both have a score, "
            f"where they have {first_score} and {second_score}; the scores above are over "
            f"{first_n:,} questions of {self.first} and {second_n:,} of {self.second}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the pair as JSON data."""
        interval = self.difference.interval
        data = {
            "first": self.first,
            "second": self.second,
            "difference": interval.mean,
            "standard_error": interval.standard_error,
            "low": interval.low,
            "high": interval.high,
            "undefined": interval.undefined,
            "p": self.difference.p_value,
            "corrected_p": self.corrected_p,
            "significant": self.significant,
            "verdict": self.verdict,
            "first_score": self.scores[0],
            "second_score": self.scores[1],
            "unanswered_first": self.unanswered[0],
            "unanswered_second": self.unanswered[1],
        }
        for name in COUNTS:
            data[name] = getattr(self, name)
        return data

    def cells(self, form: NumberForm = PLAIN) -> list[Any]:
        """Return the row of a table of pairs."""
        interval = self.difference.interval
        least = NO_BOUNDS
        if self.detectable is not None:
            least = form.number(self.detectable) + form.unit
        return [
            f"{self.first} - {self.second}",
            self.verdict,
            form.number(interval.mean, "+") + form.unit,
            form.bounds(interval, "+"),
            self.n,
            p_text(self.difference.p_value),
            p_text(self.corrected_p),
            least,
            self.wins,
            self.ties,
            self.losses,
        ]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Displayed):
    """Systems on the same questions.

    Attributes:
        spec: the score by which they are compared.
        systems: label -> score on all of the system's answers, the best first. Only systems that
            have the score.
        pairs: all pairs with common questions on which both have a score, in the order of
            ``systems``.
        test: "randomization" or "bootstrap".
        correction: how p-values are corrected over the pairs.
        resamples: the number of resamples of intervals and tests.
        seed: the seed of intervals and tests.
        evaluations: label -> what was compared, including systems without the score.
        notes: sentences about systems that are left out.
        others: the comparisons by further scores, if several were selected, and of groups.
        group: the grouping and the group of the questions, or None for all questions.
        corrected: differences of a judge's scores, corrected by labels of people. Never official.
        baseline: the label of the system that all others are compared with, or "" for all pairs.
    """

    spec: ScoreSpec
    systems: Mapping[str, Score]
    pairs: tuple[Pair, ...]
    test: str = TEST
    correction: str = CORRECTION
    resamples: int = RESAMPLES
    seed: int = SEED
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    others: tuple[Comparison, ...] = ()
    group: tuple[str, str] | None = None
    corrected: tuple[CorrectedPair, ...] = ()
    baseline: str = ""

    def to_pandas(self) -> Any:
        """Return the pairs by all scores, on all groups, as a pandas DataFrame of exact numbers."""
        import pandas as pd

        rows = []
        for comparison in (self, *self.others):
            grouping, group = comparison.group or (None, None)
            compared: dict[str, Any] = {
                "questions": comparison.questions,
                "metric": comparison.spec.name,
                "grouping": grouping,
                "group": group,
            }
            for pair in comparison.pairs:
                rows.append(compared | pair.as_dict())
        return pd.DataFrame(rows)

    def tables(self) -> list[Table]:
        """Return the tables of scores and of pairs. The last one has the notes of all."""
        tables = self.score_tables(hint=PYTHON_HINT)
        # A sentence of a log about its samples is among both.
        tables[-1].notes.extend(dict.fromkeys([*self.notes, *self._sentences()]))
        return tables

    def _sentences(self) -> list[str]:
        """Return the notes about the systems. A note that several share is given once."""
        lines = {}
        for label, evaluation in self.evaluations.items():
            notes = notes_of(evaluation)
            lines[label] = [note.text for note in notes if note.kind != "signature"]
        return [systems + text for systems, text in with_systems(lines)]

    def score_tables(
        self, form: NumberForm = PLAIN, all_scores: bool = False, hint: str = COMMAND_HINT
    ) -> list[Table]:
        """Return tables of scores and of differences, first on all questions, then on groups.

        Args:
            form: how scores are printed.
            all_scores: whether scores that are not main scores are shown, too.
            hint: how the number of scores can be shown, for a note if some are hidden.
        """
        shown = self.shown(all_scores)
        tasks = {comparison.questions for comparison in shown}
        tables: list[Table] = []
        for (questions, grouping), comparisons in _by_place(shown).items():
            task = groups = ""
            if len(tasks) > 1 and questions:
                # Tables of several tasks would have equal headings.
                task = f"{questions}: "
            if grouping:
                groups = f", by {grouping}"
            tables += _tables(comparisons, task, groups, form)
        for comparison in shown:
            tables += comparison._corrected_tables()
        n_scores = len(_score_names([self, *self.others]))
        if n_scores > len(_score_names(shown)):
            tables[0].notes.append(hint.format(n_scores))
        return tables

    def shown(self, all_scores: bool = False) -> list[Comparison]:
        """Return the comparisons that tables have: by main scores, or by all of them."""
        comparisons = [self, *self.others]
        main = [comparison for comparison in comparisons if comparison.spec.main]
        if all_scores or not main:
            # Without a main score, the tables would be empty.
            return comparisons
        return main

    def paper_tables(
        self,
        form: NumberForm = PLAIN,
        all_scores: bool = False,
        titles: Mapping[str, str] | None = None,
    ) -> list[PaperTable]:
        """Return tables for a paper: one per task, and for groups one per score and grouping.

        Args:
            form: how scores are printed.
            all_scores: whether scores that are not main scores are shown, too.
            titles: benchmark -> its title.
        """
        # The scores of a task on all of its questions share a table.
        by_task: dict[str, list[Comparison]] = {}
        of_groups: list[Comparison] = []
        for comparison in self.shown(all_scores):
            if comparison.group is None:
                by_task.setdefault(comparison.questions, []).append(comparison)
            else:
                of_groups.append(comparison)
        tables: list[PaperTable] = []
        for comparisons in by_task.values():
            columns = [comparison.column() for comparison in comparisons]
            systems = _systems(comparisons)
            tables.append(paper_table(columns, systems, form, titles))
            for comparison in comparisons:
                for grouping, members in comparison._members_by_grouping(of_groups).items():
                    group_columns = [member.column() for member in members]
                    columns = with_groups(comparison.column(), group_columns)
                    about = f"{comparison.spec.title} by {grouping}"
                    sentences = [about, *_overlaps(comparison.evaluations.values(), grouping)]
                    table = paper_table(columns, systems, form, titles, sentences)
                    label = label_of(table.label, comparison.spec.name, grouping)
                    # The table of all questions has the notes.
                    tables.append(replace(table, label=label, notes=()))
        return tables

    def _members_by_grouping(self, of_groups: Iterable[Comparison]) -> dict[str, list[Comparison]]:
        """Return the comparisons of groups by the same score on the same task, by grouping."""
        members: dict[str, list[Comparison]] = {}
        for comparison in of_groups:
            is_of_task = comparison.questions == self.questions
            if comparison.group and is_of_task and comparison.spec.name == self.spec.name:
                grouping, _ = comparison.group
                members.setdefault(grouping, []).append(comparison)
        return members

    def column(self) -> PaperColumn:
        """Return the scores as a column of a table for a paper."""
        _, group = self.group or ("", "")
        return PaperColumn(self.spec, self.systems, self.marks(), group=group)

    def marks(self) -> Marks:
        """Return what a table for a paper marks: the best systems, and significant differences.

        Nothing is marked if the systems have scores for different questions: then their scores do
        not rank them.
        """
        test = self.test_sentence(f", p < {SIGNIFICANCE:g}")
        if not self.same_questions:
            notes: tuple[str, ...] = ()
            if self.pairs:
                notes = ("The systems have scores for different questions, so that none is marked",)
            return Marks(baseline=self.baseline, notes=notes)
        values = {label: score.value for label, score in self.systems.items()}
        best_of = max if self.spec.higher_is_better else min
        best_value = best_of(values.values(), default=0.0)
        # Sums in another order may differ in their last digit: such systems share the first place.
        best = [label for label, value in values.items() if abs(value - best_value) <= ROUNDING]
        reference = self.baseline or next(iter(best), "")
        if len(best) == len(values):
            # If all systems are equal, bold would say nothing.
            best = []
        better, worse = set(), set()
        # A dict as an ordered set.
        missing: dict[str, None] = {}
        for pair in self.pairs:
            if clause := pair.missing():
                missing[clause] = None
            # The first system of a pair is the better one.
            if pair.significant and pair.second == reference:
                better.add(pair.first)
            if pair.significant and pair.first == reference:
                worse.add(pair.second)
        return Marks(
            best=frozenset(best),
            better=frozenset(better),
            worse=frozenset(worse),
            test=test,
            baseline=self.baseline,
            notes=tuple(missing),
        )

    def test_sentence(self, bound: str = "") -> str:
        """Return how differences are tested and corrected, with ``bound`` after the test's name."""
        test = f"two-sided paired {self.test} test{self._about_clusters()}{bound}"
        if self.correction != "none" and (len(self.pairs) > 1 or self.group):
            title = CORRECTION_TITLES[self.correction]
            scope = "of all groups" if self.group else "of a score"
            test += f" after {title} correction over all {self._kind_of_pairs()} {scope}"
        return test

    def _kind_of_pairs(self) -> str:
        """Return which pairs are compared, in words."""
        if self.baseline:
            return f"pairs with {self.baseline}"
        return "pairs"

    def to_latex(
        self, percent: bool = False, decimals: int | None = None, all_scores: bool = False
    ) -> str:
        """Return the scores and the pairs as LaTeX, for the package booktabs.

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
        """Return the tables for a paper and those of the pairs as "latex" or "markdown"."""
        papers = self.paper_tables(form, all_scores, titles)
        if papers:
            papers[0] = replace(papers[0], notes=[*self.notes, *papers[0].notes])
        texts = [table.formatted(format) for table in papers]
        if format == "latex":
            for (_, grouping), comparisons in _by_place(self.shown(all_scores)).items():
                texts += _pairs_in_latex(comparisons, grouping, form, titles or {})
        corrected_titles = {table.title for table in self._corrected_tables()}
        for shown in self.score_tables(form, all_scores):
            # The tables for a paper have the scores, but not those that labels of people correct.
            is_corrected = shown.title in corrected_titles
            has_pairs = PAIR_COLUMNS[0] in shown.columns
            if is_corrected and format == "latex":
                texts.append(floating(shown, label_of(self.questions, shown.title)))
            elif is_corrected or (has_pairs and format != "latex"):
                texts.append(shown.formatted(format))
        return "\n".join(texts)

    @property
    def questions(self) -> str:
        """Return the benchmark and the config, such as "fanoutqa dev", or "" without evaluations."""
        if not self.evaluations:
            return ""
        # All of them are on the same questions.
        first = next(iter(self.evaluations.values()))
        return first.questions

    def _corrected_tables(self) -> list[Table]:
        if not self.corrected:
            return []
        evaluations = self.evaluations
        tables = correction_tables(list(evaluations.values()), list(evaluations))
        return [*tables, pair_table(self.corrected)]

    def _about_clusters(self) -> str:
        """Return over how many clusters of questions the tests and intervals are, or ""."""
        clusters: dict[str, str] = {}
        for label in self.systems:
            if label in self.evaluations:
                for record in self.evaluations[label].records:
                    # A question without a cluster is one of its own.
                    clusters[record.id] = record.cluster or f"question {record.id}"
        number = len(set(clusters.values()))
        if number == len(clusters):
            return ""
        if self.group:
            # One sentence is about all groups of a table, whose numbers of clusters differ.
            return " over clusters of questions"
        return f" over {number:,} clusters of questions"

    def about(self) -> str:
        """Return how the pairs were tested, in one sentence."""
        pairs = self._kind_of_pairs()
        if self.group:
            pairs += " of all groups"
        correction = f"corrected over all {pairs} ({self.correction})"
        if self.correction == "none":
            correction = "not corrected for several pairs"
        return (
            f"p: paired {self.test} test{self._about_clusters()}, two-sided, {self.resamples:,} resamples, "
            f"seed {self.seed}, {correction}; "
            "intervals: 95%, not corrected; "
            "detectable: the smallest difference that these questions would show with a power of 80%"
        )

    @property
    def same_questions(self) -> bool:
        """Return whether all systems have scores for the same questions and can be ranked."""
        n_systems = len(self.systems)
        n_pairs = n_systems * (n_systems - 1) // 2
        if self.baseline:
            n_pairs = n_systems - 1
        # Two systems without a common question have no pair.
        if len(self.pairs) != n_pairs:
            return False
        return not any(pair.only_first or pair.only_second for pair in self.pairs)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
        systems = []
        for label, score in self.systems.items():
            counts = {"n": score.n, "left_out": score.left_out}
            systems.append({"system": label, **asdict(score.interval), **counts})
        grouping, group = self.group or (None, None)
        benchmark = config = ""
        if self.evaluations:
            # All of them are on the same config.
            first = next(iter(self.evaluations.values()))
            benchmark, config = first.benchmark, first.config
        return {
            "benchmark": benchmark,
            "config": config,
            "metric": self.spec.name,
            "grouping": grouping,
            "group": group,
            "test": self.test,
            "correction": self.correction,
            "resamples": self.resamples,
            "seed": self.seed,
            "baseline": self.baseline or None,
            "systems": systems,
            "pairs": [pair.as_dict() for pair in self.pairs],
            "corrected": self._corrected_numbers(),
        }

    def _corrected_numbers(self) -> dict[str, Any] | None:
        if not self.corrected:
            return None
        systems: dict[str, dict[str, Any]] = {}
        for label, evaluation in self.evaluations.items():
            systems[label] = {}
            for correction in evaluation.corrections:
                systems[label][correction.score.name] = correction.as_dict()
        pairs = [pair.as_dict() for pair in self.corrected]
        return {"systems": systems, "pairs": pairs}


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
    if test not in TESTS:
        raise unknown_name("unknown test", test, TESTS)
    # This checks the name of the correction before the work.
    adjust([], correction)
    if baseline and baseline not in evaluations:
        raise unknown_name("there is no system", baseline, list(evaluations))
    configs = {evaluation.questions for evaluation in evaluations.values()}
    if len(configs) > 1:
        raise InputError(
            f"systems must be compared on one config; these are on {', '.join(sorted(configs))}"
        )
    scores: dict[str, Score] = {}
    for label, evaluation in evaluations.items():
        computed = evaluation.scores()
        is_answered = evaluation.answered and spec.group not in evaluation.unanswered_groups()
        if spec.name not in computed and is_answered and not spec.reducer:
            # A section of a report compares by scores that the evaluation itself does not list.
            computed = scores_of([spec], evaluation.records)
        if spec.name in computed:
            scores[label] = computed[spec.name]
    best_first = sorted(
        scores.items(), key=lambda item: item[1].value, reverse=spec.higher_is_better
    )
    systems = dict(best_first)
    tables: dict[str, dict[str, list[float]]] = {}
    answered: dict[str, set[str]] = {}
    clusters: dict[str, str] = {}
    for label in systems:
        tables[label] = _questions(evaluations[label], spec)
        answered[label] = evaluations[label].answered_ids()
        clusters |= clusters_of(evaluations[label].records)
    label_pairs = []
    for first, second in combinations(systems, 2):
        if not baseline or baseline in (first, second):
            label_pairs.append((first, second))
    tested = _tested_pairs(label_pairs, tables, answered, clusters, spec, test, resamples, seed)
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
    # ``compare`` corrected over the pairs of one group. Each correction replaces that.
    corrected = iter(adjust(p_values, correction))
    corrected_comparisons = []
    for comparison in comparisons:
        pairs = [replace(pair, corrected_p=next(corrected)) for pair in comparison.pairs]
        corrected_comparisons.append(replace(comparison, pairs=tuple(pairs)))
    return corrected_comparisons


def _systems(comparisons: Sequence[Comparison]) -> dict[str, list[Evaluation]]:
    """Return the evaluations by label, in the order of the first comparison."""
    systems: dict[str, list[Evaluation]] = {}
    for comparison in comparisons:
        for label in comparison.systems:
            systems.setdefault(label, [comparison.evaluations[label]])
    return systems


def _overlaps(evaluations: Iterable[Evaluation], grouping: str) -> list[str]:
    """Return the distinct notes about a grouping in the evaluations. See ``grouping_sentences``."""
    sentences: dict[str, None] = {}
    for evaluation in evaluations:
        sentences |= dict.fromkeys(grouping_sentences(evaluation, grouping))
    return list(sentences)


def _by_place(comparisons: Iterable[Comparison]) -> dict[tuple[str, str], list[Comparison]]:
    """Return comparisons by their questions and grouping, "" for all questions."""
    by_place: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in comparisons:
        grouping, _ = comparison.group or ("", "")
        by_place.setdefault((comparison.questions, grouping), []).append(comparison)
    return by_place


def _score_names(comparisons: Iterable[Comparison]) -> set[str]:
    """Return the names of the scores by which systems are compared."""
    return {comparison.spec.name for comparison in comparisons}


def _pairs_in_latex(
    comparisons: Sequence[Comparison], grouping: str, form: NumberForm, titles: Mapping[str, str]
) -> list[str]:
    """Return the pairs of some comparisons as a table for a paper, or [] without a pair."""
    first = comparisons[0]
    scores = list(dict.fromkeys(comparison.spec.title for comparison in comparisons))
    rows = []
    # A dict as an ordered set.
    notes: dict[str, None] = {}
    are_percents: set[bool] = set()
    for comparison in comparisons:
        own = form.fitting(score.spec for score in comparison.systems.values())
        names = []
        if len(scores) > 1:
            names.append(comparison.spec.title)
        if comparison.group:
            names.append(comparison.group[1])
        part = ", ".join(names)
        for pair in comparison.pairs:
            interval = pair.difference.interval
            row = PairRow(
                part,
                pair.first,
                pair.second,
                own.number(interval.mean, "+"),
                own.brackets(interval, "+"),
                pair.n,
                p_text(pair.corrected_p),
                (pair.wins, pair.ties, pair.losses),
                pair.significant,
            )
            rows.append(row)
            are_percents.add(own.percent)
            if note := pair.about_questions(own):
                if names:
                    note = f"{part}: {note}"
                notes[note] = None
    if not rows:
        return []
    about = "paired differences"
    if len(scores) == 1:
        about += f" in {scores[0]}"
    if first.evaluations:
        title = over_title(next(iter(first.evaluations.values())), titles)
        about = ": ".join(filter(None, [title, about]))
    if grouping:
        about += f" by {grouping}"
    if len({row.n for row in rows}) == 1:
        about += f", n = {rows[0].n:,} questions"
    differences = "Differences"
    if are_percents == {True}:
        differences += " in percent"
    sentences = [
        about,
        f"{differences} with 95% confidence intervals, which are not corrected",
        f"p: {first.test_sentence()} ({first.resamples:,} resamples, seed {first.seed})",
        mark_sentence(rows),
        "W/T/L: questions on which the first system is better (wins), equal (ties) or worse (losses)",
        *notes,
    ]
    label = label_of(first.questions, grouping, "pairs")
    return [pairs_latex(rows, [f"{sentence}." for sentence in sentences], label)]


def _tables(
    comparisons: Sequence[Comparison], task: str, groups: str, form: NumberForm
) -> list[Table]:
    """Return the table of the scores and that of the pairs of some comparisons.

    A single comparison has its score in the heading, others have it in the first column. ``task``
    is before headings, ``groups`` after them.
    """
    first = comparisons[0]
    grouping, _ = first.group or ("", "")
    with_score = len(_score_names(comparisons)) > 1
    title, value = first.spec.title, first.spec.name
    columns = []
    if with_score:
        title, value = "Scores", "value"
        columns.append("score")
    if grouping:
        columns.append(grouping)
    scores = Table(
        f"{task}{title}{groups}",
        [*columns, "system", value, "95% interval", "standard error", "n"],
        [],
    )
    pairs = Table(f"{task}Pairs{groups}", [*columns, *PAIR_COLUMNS], [])
    names_by_note: dict[str, list[str]] = {}
    for comparison in comparisons:
        # The first cells of each row, as ``columns``.
        names = []
        if with_score:
            names.append(comparison.spec.name)
        if comparison.group:
            names.append(comparison.group[1])
        own = form.fitting(score.spec for score in comparison.systems.values())
        for label, score in comparison.systems.items():
            scores.rows.append(
                [
                    *names,
                    label,
                    own.number(score.value) + own.unit,
                    own.bounds(score.interval),
                    own.number(score.interval.standard_error) + own.unit,
                    score.size,
                ]
            )
        for pair in comparison.pairs:
            pairs.rows.append([*names, *pair.cells(own)])
            if note := pair.about_questions(own):
                names_by_note.setdefault(note, []).append(", ".join(names))
    for note, places in names_by_note.items():
        # A note about all rows needs no names. A table of one score on all questions has none.
        if len(places) != len(comparisons):
            note = f"{'; '.join(places)}: {note}"
        pairs.notes.append(note)
    if grouping:
        scores.notes.extend(_overlaps(first.evaluations.values(), grouping))
    pairs.notes.append(first.about())
    return [scores, pairs]


def _questions(evaluation: Evaluation, spec: ScoreSpec) -> dict[str, list[float]]:
    """Return the mean values of the score's columns by question, without incomplete questions."""
    means = {}
    for id, samples in rows_by_question(spec, evaluation.columns()).items():
        rows = reduced(spec, samples)
        means[id] = rows[0]
        # Most questions have one sample, and the mean of NumPy takes much longer than no mean.
        if len(rows) > 1:
            means[id] = np.mean(rows, axis=0).tolist()
    return means


def _tested_pairs(
    label_pairs: Sequence[tuple[str, str]],
    tables: Mapping[str, Mapping[str, list[float]]],
    answered: Mapping[str, set[str]],
    clusters: Mapping[str, str],
    spec: ScoreSpec,
    test: str,
    resamples: int,
    seed: int,
) -> list[Pair]:
    """Test each pair of systems, the better one first."""
    # The better system has the larger value times the sign.
    sign = 1 if spec.higher_is_better else -1
    function = spec.resampled or spec.function or mean
    labels = list(tables)
    # Pairs with the same common questions are tested together: they share the random draws.
    pairs_by_questions: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for first, second in label_pairs:
        common = tuple(id for id in tables[first] if id in tables[second])
        if common:
            pairs_by_questions.setdefault(common, []).append((first, second))
    tested: list[Pair] = []
    for ids, pairs in pairs_by_questions.items():
        n = len(ids)
        rows: dict[str, Array] = {}
        gains: dict[str, float] = {}
        for label in dict.fromkeys(chain.from_iterable(pairs)):
            statistics = _statistics(tables[label], ids, function)
            (score,) = sums_to_scores(function, statistics.sum(axis=0, keepdims=True))
            # A score may be undefined on the common questions, although it is not on all.
            if np.isfinite(score):
                rows[label], gains[label] = statistics, sign * score
        ordered = []
        for first, second in pairs:
            if first not in rows or second not in rows:
                continue
            # On the common questions, another system may be better than on all.
            if gains[first] < gains[second]:
                first, second = second, first
            ordered.append((first, second))
        # The units of the test are the questions, unless they are in clusters.
        tested_rows, items = rows, None
        cluster_ids = [clusters.get(id, id) for id in ids]
        if len(set(cluster_ids)) < n:
            # Whole clusters are swapped. The questions still count equally in the score.
            tested_rows = {}
            for label, statistics in rows.items():
                tested_rows[label] = units(statistics, cluster_ids)
            if function is mean:
                # The bounds of 0/1 scores depend on the single questions.
                items = {label: statistics[:, 0] for label, statistics in rows.items()}
        differences = paired_tests(
            tested_rows, ordered, function, test, resamples, seed, items=items
        )
        for (first, second), difference in zip(ordered, differences, strict=True):
            # Times n, contributions to a mean are differences of questions, as ROUNDING expects.
            gains_by_question = sign * n * contributions(rows[first], rows[second], function)
            wins = int((gains_by_question > ROUNDING).sum())
            losses = int((gains_by_question < -ROUNDING).sum())
            by_first = answered[first].intersection(ids)
            by_second = answered[second].intersection(ids)
            tested.append(
                Pair(
                    first,
                    second,
                    difference,
                    corrected_p=difference.p_value,
                    wins=wins,
                    ties=n - wins - losses,
                    losses=losses,
                    n=n,
                    scores=(sign * gains[first], sign * gains[second]),
                    answered=len(by_first & by_second),
                    only_first=len(tables[first]) - n,
                    only_second=len(tables[second]) - n,
                    unanswered=(len(by_second - by_first), len(by_first - by_second)),
                    detectable=detectable_difference(
                        tested_rows[first], tested_rows[second], function, difference.interval
                    ),
                )
            )
    return sorted(tested, key=lambda pair: sorted(map(labels.index, (pair.first, pair.second))))


def _statistics(means: Mapping[str, list[float]], ids: Sequence[str], function: Function) -> Array:
    """Return what a function of sums needs of some questions: an array (questions, columns)."""
    columns = [means[id] for id in ids]
    if function is mean:
        # In Fortran order, NumPy adds a column pairwise, which is more exact.
        return np.asfortranarray(table([values[0] for values in columns]))
    return np.array(columns)


def contributions(first: Array, second: Array, function: Function) -> Array:
    """Return how much of the difference of two systems each unit makes, 0 where that is undefined.

    It is the mean of two changes: of the first system's score if it had the second's result of the
    unit, and of the second's if it had the first's. For a mean, these are the differences of the
    units divided by their number.
    """
    change = first - second
    first_total, second_total = first.sum(axis=0), second.sum(axis=0)
    first_score = sums_to_scores(function, first_total[None])
    second_score = sums_to_scores(function, second_total[None])
    losses = first_score - sums_to_scores(function, first_total - change)
    gains = sums_to_scores(function, second_total + change) - second_score
    return np.asarray(np.nan_to_num((losses + gains) / 2, nan=0, posinf=0, neginf=0))


def detectable_difference(
    first: Array, second: Array, function: Function, difference: Interval
) -> float | None:
    """Return the smallest difference that a test of this size would find with a power of 80%.

    ``qabench.stats.power.detectable`` computes it. None if so few units differ that the variance
    says little, or if all differ by the same.

    Args:
        first: the statistics of the first system, one row per unit.
        second: the statistics of the second system, aligned.
        function: maps the sums of the statistics to a score.
        difference: the difference of the two systems.
    """
    if np.count_nonzero((first != second).any(axis=1)) < FEWEST_DIFFERING:
        return None
    # Without a variance, any difference at all would seem detectable.
    if difference.undefined or difference.standard_error <= ROUNDING:
        return None
    is_binary = function is mean and bool(np.isin([first, second], (0, 1)).all())
    return detectable(difference.standard_error, len(first), is_binary=is_binary)
