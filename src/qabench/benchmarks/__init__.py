"""One package per benchmark, and the descriptor through which generic code uses it.

``qabench.benchmarks.NAME`` contains everything specific to one benchmark that is neither its data
(``loading_scripts/NAME``) nor a pure score (``qabench.scoring``). Its ``__init__`` defines ``BENCHMARK`` without slow
imports: functions are named as "module:function" and imported when they are called.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.needs import Need
from qabench.errors import InputError
from qabench.evaluation.metric import CUTOFF, Metric
from qabench.io.tables import Displayed, Table

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.scores import Score
    from qabench.evaluation.section import ExtraSection
    from qabench.official import Declaration
    from qabench.predictions import Predictions


@dataclass(frozen=True, slots=True)
class Setting:
    """A protocol by which a model is prompted.

    Attributes:
        name: such as "closed-book".
        task: the name of the Inspect task.
        about: what the model is given, in one sentence.
        arguments: the task's arguments that make the setting.
        requires: what must be given to run it, in one sentence that says what to type; "" if nothing.
        without: the task's arguments that have no effect in this setting, and are refused.
    """

    name: str
    task: str
    about: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    requires: str = ""
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """An option of ``qabench score`` and ``qabench.evaluate_predictions`` that one benchmark adds.

    Attributes:
        name: the name of the keyword argument; on the command line, with hyphens instead of underscores.
        about: the help text.
        type: str, int, float, bool or pathlib.Path.
        default: the value if it is not given.
        choices: the allowed values; () if any value is allowed.
        for_reading: whether it is an argument of ``Benchmark.read`` instead of ``evaluate_with``.
    """

    name: str
    about: str
    type: type = str
    default: Any = None
    choices: tuple[str, ...] = ()
    for_reading: bool = False


@dataclass(frozen=True, repr=False)
class Benchmark(Displayed):
    """Everything that generic code (commands, runs, reports, publishing) needs to know about a benchmark.

    Attributes:
        name: such as "fanoutqa", as in ``loading_scripts``.
        title: such as "FanOutQA".
        settings: the settings of ``qabench run``; the first is the default.
        retriever_setting: the setting of ``qabench run --retriever`` without ``--setting``; "" if no setting has one.
        part: the argument of the tasks that selects a part of the questions, such as "category".
        metrics: all metrics, in display order.
        headline: names of metrics; the first one that an evaluation has is its main metric.
        families: the allowed values of ``--metrics`` -> the scores of each, in one sentence.
        default_families: the families that are computed by default.
        groupings: grouping -> its title, such as "type" -> "type of answer".
        evaluate_with: "module:function" that scores predictions; see ``qabench.evaluate.evaluate_predictions``.
        options: additional options of this function.
        prediction_fields: a prediction must have at least one of these fields.
        read_with: "module:function" that reads files of predictions in other formats, with the arguments of ``read``;
            "" if ``qabench.predictions.read_predictions`` reads all of them.
        prediction_with: "module:function" from a record to the fields of its prediction, for ``qabench export``; ""
            for {"answer": the record's answer}.
        declarations: "module:attribute" with the official values of each signature; see ``qabench.official``.
        official_shape: "module:function" from an evaluation to its scores in the format of the authors' scorer, for
            ``qabench score --json``; "" if there is no such format.
        pages_with: "module:function" from a config's name to the evidence pages of its questions; "" for none.
        failures_official: whether the authors' results contain questions without an answer, which then score 0.
        sections_with: "module:function" from {label: evaluation} to additional sections of a report, a list of
            ``qabench.evaluation.ExtraSection``; "" for none.
        published_with: "module:function" that returns the published scores, a list of ``PublishedScore``; "" if they
            are in the benchmark's ``leaderboard.json``, or for none.
        reproduce_with: "module:function" that returns the ``Reproduction`` of published numbers; "" if these are only
            the statistics of the data.
        needs: what a machine must have for official results, for ``qabench env``.
        commands: command names -> "module:function", for ``qabench NAME COMMAND``.
    """

    name: str
    title: str
    settings: tuple[Setting, ...]
    part: str
    metrics: tuple[Metric, ...]
    headline: tuple[str, ...]
    families: Mapping[str, str]
    default_families: tuple[str, ...]
    groupings: Mapping[str, str]
    evaluate_with: str
    declarations: str
    retriever_setting: str = ""
    options: tuple[Option, ...] = ()
    prediction_fields: tuple[str, ...] = ("answer",)
    read_with: str = ""
    official_shape: str = ""
    prediction_with: str = ""
    pages_with: str = ""
    failures_official: bool = False
    sections_with: str = ""
    published_with: str = ""
    reproduce_with: str = ""
    needs: tuple[Need, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)

    def setting(self, name: str | None) -> Setting:
        """The setting with this name; the default for None. Raises InputError that lists the allowed names."""
        by_name = {setting.name: setting for setting in self.settings}
        if name is None:
            return self.settings[0]
        if name not in by_name:
            raise InputError(f"{self.title} has no setting {name!r}; allowed: {', '.join(by_name)}")
        return by_name[name]

    def metric(self, name: str) -> Metric:
        """The metric with this name, such as "mrr@5" from "mrr@k". Raises InputError that lists the allowed names."""
        by_name = {metric.name: metric for metric in self.metrics}
        stem, at, cutoff = name.partition("@")
        if at and cutoff.isdigit() and stem + CUTOFF in by_name:
            return by_name[stem + CUTOFF].at(cutoff)
        if name not in by_name:
            raise InputError(f"{self.title} has no metric {name!r}; allowed: {', '.join(by_name)}")
        return by_name[name]

    def read(self, source: str | Path | Sequence[Mapping[str, Any]], **options: Any) -> Predictions:
        """The predictions of a file, of standard input ("-"), or of a list in memory.

        Args:
            source: see ``qabench.predictions.read_predictions``.
            **options: the benchmark's options that are ``for_reading``.

        Raises:
            InputError: the file cannot be read, or has no predictions.
        """
        from qabench.predictions import read_predictions

        if self.read_with:
            found: Predictions = load(self.read_with)(source, **options)
            return found
        return read_predictions(source, self.prediction_fields)

    def prediction(self, record: Record) -> dict[str, Any]:
        """The fields of a prediction that would get the record's scores; see ``prediction_fields``."""
        if not self.prediction_with:
            return {"answer": record.answer}
        found: dict[str, Any] = load(self.prediction_with)(record)
        return found

    def scores(self, evaluation: Evaluation, records: Sequence[Record] | None = None) -> dict[str, Score]:
        """The scores of an evaluation, or of some of its records; {} if the evaluation has no answers.

        See ``qabench.evaluation.scores.scores_of``.
        """
        from qabench.evaluation.scores import scores_of

        if not evaluation.answered:
            return {}
        return scores_of(self.metrics, evaluation.records if records is None else records)

    def headline_metric(self, evaluations: Sequence[Evaluation]) -> Metric | None:
        """The main metric of these evaluations; None if nothing is scored."""
        from qabench.evaluation.metric import present

        columns = [name for one in evaluations for record in one.records for name in record.scores]
        found = {metric.name: metric for metric in present(self.metrics, columns)}
        wanted = [name for first in self.headline for name in found if name == first or name.startswith(f"{first}@")]
        return found[(wanted or list(found))[0]] if found else None

    def deviations(self, evaluation: Evaluation, score: Score) -> list[str]:
        """What distinguishes a score of an evaluation from the official one, in sentences; empty if it is official."""
        from qabench.evaluation.record import FAILED

        said = [] if score.metric.official else ["not a score of the benchmark's authors"]
        said += self._signature_deviations(evaluation.signatures.get(score.metric.family))
        asked = len({record.id for record in evaluation.records})
        if evaluation.available is not None and asked < evaluation.available:
            said.append(f"{asked} of {evaluation.available} questions were asked")
        if (epochs := max((record.epoch for record in evaluation.records), default=1)) > 1:
            said.append(f"each question was asked {epochs} times")
        failed = sum(record.status == FAILED for record in evaluation.records)
        if failed and not self.failures_official:
            said.append(f"{failed} of {len(evaluation.records)} questions have no answer (failed)")
        if score.left_out and not score.metric.partial:
            said.append(f"{score.left_out} of {len(evaluation.records)} answers are left out")
        if evaluation.status != "success":
            said.append(f"the run did not finish ({evaluation.status})")
        return said

    def sections(self, evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
        """The benchmark's additional sections of a report, for labels and evaluations on one config."""
        if not self.sections_with:
            return []
        found: list[ExtraSection] = load(self.sections_with)(evaluations)
        return [section for section in found if section.rows]

    def declaration(self, score: str) -> Declaration:
        """The official values of the fields of a signature, by the score's name in it. Raises InputError."""
        declared: Mapping[str, Declaration] = load(self.declarations)
        if score not in declared:
            raise InputError(f"{self.title} has no official values for {score!r}; allowed: {', '.join(declared)}")
        return declared[score]

    def tables(self) -> list[Table]:
        """Metrics and settings, as ``print`` and notebooks show them."""
        metrics: list[list[Any]] = [
            [one.name, one.about, one.unit, "yes" if one.official else "no"] for one in self.metrics
        ]
        settings: list[list[Any]] = [[one.name, one.about] for one in self.settings]
        return [
            Table(f"{self.title} ({self.name})", ["score", "what it measures", "n counts", "official"], metrics),
            Table("Settings of a run", ["setting", "what the model is given"], settings),
        ]

    def _signature_deviations(self, line: str | None) -> list[str]:
        from qabench.official import deviations, signature_name

        if not line:
            return ["the signature is missing"]
        try:
            return deviations(line, self.declaration(signature_name(line)))
        except InputError as error:  # a log of another version, or an edited one
            return [str(error)]


def benchmark_names() -> list[str]:
    """The names of all benchmarks, sorted: the packages in this folder."""
    return list(_packages())


@functools.cache
def _packages() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


@functools.cache
def benchmark(name: str) -> Benchmark:
    """The descriptor of a benchmark.

    Args:
        name: such as "fanoutqa", or its Hub name "qabench/fanoutqa".

    Raises:
        InputError: the benchmark does not exist.
    """
    name = name.removeprefix("qabench/")
    if name not in benchmark_names():
        raise InputError(f"unknown benchmark {name!r}; allowed: {', '.join(benchmark_names())}")
    found: Benchmark = importlib.import_module(f"qabench.benchmarks.{name}").BENCHMARK
    return found


def load(reference: str) -> Any:
    """The object with the name "module:attribute"."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)
