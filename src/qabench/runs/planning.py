"""``qabench plan``: how many questions and repetitions a comparison of two systems needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.data.rows import Json
from qabench.errors import InputError, SourceError
from qabench.evaluation import Evaluation
from qabench.evaluation.comparison import Comparison
from qabench.evaluation.records import item_score
from qabench.evaluation.score_spec import ScoreSpec
from qabench.io.tables import Displayed, Table
from qabench.loading_scripts import dataset_table
from qabench.runs.comparing import compare
from qabench.stats.power import POWER, detectable, paired_deviation, questions_needed

EPOCHS = (1, 2, 4, 8)
# If only published scores are known, these correlations of two systems over questions are assumed.
# Systems that fail on the same questions are more highly correlated.
CORRELATIONS = (0.0, 0.5)


@dataclass(frozen=True, slots=True)
class Requirement:
    """How many questions are needed if each of them is asked ``epochs`` times.

    Attributes:
        assumption: where the variance comes from.
        epochs: how often each question is asked.
        deviation: the standard deviation of the questions' differences.
        questions: the number of questions with which the difference is found.
        detectable: the smallest difference that the benchmark's own questions show. None if their
            number is unknown.
    """

    assumption: str
    epochs: int
    deviation: float
    questions: int
    detectable: float | None


@dataclass(frozen=True, slots=True, repr=False)
class RunPlan(Displayed):
    """The questions and repetitions that a paired difference of two systems needs.

    Attributes:
        benchmark: its title.
        config: its config.
        score: the name of the score.
        difference: what the test should find.
        power: the probability of finding it.
        available: the number of the benchmark's questions. None if its data is not available.
        requirements: one per assumption and number of repetitions.
        notes: sentences about the assumptions.
    """

    benchmark: str
    config: str
    score: str
    difference: float
    power: float
    available: int | None
    requirements: Sequence[Requirement]
    notes: Sequence[str] = ()

    def tables(self) -> list[Table]:
        """Return the plan as ``print`` shows it."""
        rows: list[list[Any]] = []
        for requirement in self.requirements:
            detectable_difference = ""
            if requirement.detectable is not None:
                detectable_difference = f"{requirement.detectable:.4f}"
            enough = ""
            if self.available is not None:
                enough = "yes" if requirement.questions <= self.available else "no"
            row = [
                requirement.assumption,
                requirement.epochs,
                f"{requirement.deviation:.4f}",
                f"{requirement.questions:,}",
                detectable_difference,
                enough,
            ]
            rows.append(row)
        own = "its questions" if self.available is None else f"{self.available:,} questions"
        columns = ["variance", "epochs", "deviation", "questions needed", f"detectable with {own}"]
        title = (
            f"{self.benchmark} {self.config}: a difference of {self.difference:g} in {self.score}, "
            f"found with a power of {self.power:.0%}"
        )
        return [Table(title, [*columns, "enough"], rows, list(self.notes))]

    def as_dict(self) -> Json:
        """Return the plan as JSON data."""
        return {
            "benchmark": self.benchmark,
            "config": self.config,
            "score": self.score,
            "difference": self.difference,
            "power": self.power,
            "available": self.available,
            "requirements": [asdict(requirement) for requirement in self.requirements],
            "notes": list(self.notes),
        }


def plan(
    name: str,
    difference: float,
    power: float = POWER,
    systems: Sequence[Any] = (),
    *,
    config: str | None = None,
    score: str | None = None,
    **options: Any,
) -> RunPlan:
    """Return how many questions and repetitions a paired difference of two systems needs.

    The variance is estimated from two given systems on the same questions. Without systems, it is
    computed for 0/1 scores with the best published mean: no other scores from 0 to 1 with this mean
    vary more.

    Args:
        name: the benchmark.
        difference: what the paired test should find, such as 0.03.
        power: the probability of finding it.
        systems: two evaluations, logs or files of predictions.
        config: a config of the benchmark. None for its default.
        score: the name of a score. None for the benchmark's main score.
        **options: options of scoring, as in ``qabench.compare``.

    Raises:
        InputError: an impossible difference or power, or systems that are not two or whose
            differences do not vary. Without systems also a score that is not a mean, or that has no
            published values.
    """
    if not 0 < difference < 1:
        raise InputError(f"the difference is {difference}; allowed: a number between 0 and 1")
    benchmark = benchmark_of(name)
    if systems:
        return _of_systems(benchmark, difference, power, systems, config, score, options)
    return _of_published(benchmark, difference, power, config, score)


def _available(benchmark: Benchmark, config: str | None) -> tuple[int | None, str]:
    """Return the number of questions of a config, or None and why it is unknown."""
    if not benchmark.name:
        # The number of questions in a task of another harness is not known here.
        return None, ""
    try:
        return len(benchmark.load(config).rows), ""
    except SourceError as error:
        return None, f"the benchmark's number of questions is not known here: {error}"


def _of_systems(
    benchmark: Benchmark,
    difference: float,
    power: float,
    systems: Sequence[Any],
    config: str | None,
    score: str | None,
    options: Mapping[str, Any],
) -> RunPlan:
    """Return the plan with the variance of two systems on the same questions."""
    if len(systems) != 2:
        raise InputError(f"--from takes two systems; got {len(systems)}")
    comparison = compare(benchmark.name, config, list(systems), score, **options)
    # Two systems form exactly one pair.
    (pair,) = comparison.pairs
    # The variance of a single question's difference, from the standard error of the mean over n.
    error = pair.difference.interval.standard_error
    observed = error**2 * pair.n
    if not observed > 0:
        raise InputError(
            "the differences of the two systems do not vary over the questions; give two others"
        )
    within, of_means, epochs = _within(comparison, comparison.spec)
    is_binary = _is_binary(comparison, comparison.spec)
    source = f"{pair.first} and {pair.second}"
    notes = [f"variance: of {source} on {pair.n:,} questions"]
    available, why = _available(benchmark, config)
    if why:
        notes.append(why)

    # Split the variance: further epochs only reduce the part within questions.
    if within is None:
        notes.append(
            "further epochs: unknown; the variance within questions is known only if both systems have several "
            "answers per question, and the score is a mean over answers"
        )
        counts: Sequence[int] = (epochs,)
        between = observed
        within = 0.0
    else:
        counts = sorted({*EPOCHS, epochs})
        # An estimate: by chance, the part within questions can be larger than the whole.
        between = max(0.0, observed - of_means)
    requirements = []
    for count in counts:
        variance = observed
        if within:
            variance = between + within / count
        # The mean of several answers to a question is not 0 or 1.
        is_binary_here = is_binary and count == 1
        requirement = _requirement(
            source, count, sqrt(variance), difference, power, available, is_binary_here
        )
        requirements.append(requirement)
    first = next(iter(comparison.evaluations.values()))
    return RunPlan(
        benchmark.title,
        first.config,
        comparison.spec.name,
        difference,
        power,
        available,
        requirements,
        notes,
    )


def _within(comparison: Comparison, spec: ScoreSpec) -> tuple[float | None, float, int]:
    """Return what the variance within questions contributes to a difference of two systems.

    Returns:
        The variance within questions of the difference of two answers, its part in the variance of
        the difference of the questions' means, and the largest number of epochs. The variance is
        None if a system has only one answer per question, or the score is not a mean over answers.
    """
    variances, epochs = [], []
    of_means = 0.0
    for evaluation in comparison.evaluations.values():
        counts = []
        repeated = []
        for values in _values_by_question(evaluation, spec).values():
            counts.append(len(values))
            # A question with one answer says nothing about the variance within questions.
            if len(values) > 1:
                repeated.append(np.var(values, ddof=1))
        epochs.append(max(counts, default=1))
        # A score that is a function of sums, such as a ratio, is not a mean over answers.
        if spec.function is None and repeated:
            variances.append(float(np.mean(repeated)))
            of_means += variances[-1] / epochs[-1]
    if len(variances) < len(comparison.evaluations):
        return None, 0.0, max(epochs)
    return sum(variances), of_means, max(epochs)


def _values_by_question(evaluation: Evaluation, spec: ScoreSpec) -> dict[str, list[float]]:
    """Return the scores of each question's answers, by the question's id."""
    values: dict[str, list[float]] = {}
    for record in evaluation.records:
        value = item_score(spec, record)
        if value is not None:
            values.setdefault(record.id, []).append(value)
    return values


def _is_binary(comparison: Comparison, spec: ScoreSpec) -> bool:
    """Return whether each answer of the systems scores 0 or 1."""
    if spec.function is not None:
        return False
    for evaluation in comparison.evaluations.values():
        for values in _values_by_question(evaluation, spec).values():
            if not all(value in (0, 1) for value in values):
                return False
    return True


def _of_published(
    benchmark: Benchmark, difference: float, power: float, config: str | None, score: str | None
) -> RunPlan:
    """Return the plan with the variance of 0/1 scores with the best published mean."""
    # Choose the score.
    published = benchmark.numbers().published()
    names = list(dict.fromkeys(number.metric for number in published))
    published_headline = [name for name in benchmark.headline if name in names]
    chosen = score
    if not chosen and published_headline:
        chosen = published_headline[0]
    values = [number for number in published if number.metric == chosen]
    advice = "give two systems: --from A.jsonl B.jsonl"
    if chosen is None or not values:
        raise InputError(
            f"{benchmark.title} has no published values of {chosen or 'its main score'} "
            f"(published: {', '.join(names) or 'none'}); {advice}"
        )
    spec = benchmark.score_spec(chosen)
    if spec.function is not None:
        raise InputError(
            f"{chosen} is not a mean over questions, so its variance does not follow from published values; {advice}"
        )

    # Compare the best published system with one that is worse by the difference.
    best = max(values, key=lambda number: number.value)
    available, why = _available(benchmark, config)
    worse = max(0.0, best.value - difference)
    requirements = []
    for correlation in CORRELATIONS:
        deviation = paired_deviation(best.value, worse, correlation)
        what = f"0/1 scores, correlation {correlation:g}"
        requirements.append(
            _requirement(what, 1, deviation, difference, power, available, is_binary=True)
        )
    notes = [
        f"variance: of 0/1 scores with means of {best.value:.3f} ({best.system}, the best published) and {worse:.3f}",
        "two systems are usually correlated over questions; scores that are fractions vary less than 0/1 scores",
        f"for the variance of your own systems, {advice}",
    ]
    if why:
        notes.append(why)
    shown = config or dataset_table(benchmark.name).config(None).name
    return RunPlan(
        benchmark.title, shown, chosen, difference, power, available, requirements, notes
    )


def _requirement(
    source: str,
    epochs: int,
    deviation: float,
    difference: float,
    power: float,
    available: int | None,
    is_binary: bool,
) -> Requirement:
    """Return how many questions this standard deviation of the questions' differences requires."""
    needed = questions_needed(deviation, difference, power, is_binary=is_binary)
    shown = None
    if available:
        error = deviation / sqrt(available)
        shown = detectable(error, available, power, is_binary=is_binary)
    return Requirement(source, epochs, deviation, needed, shown)
