"""The base class of benchmarks, through which all generic code uses a benchmark."""

from __future__ import annotations

import functools
from abc import ABC
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from qabench.benchmarks.checks import check_declared
from qabench.benchmarks.declared import Leaderboards, Need, Option, Setting
from qabench.data.joining import join
from qabench.data.pinned import HubDataset
from qabench.data.predictions import read_predictions
from qabench.data.rows import Json, Row, read_json_lines, without_none
from qabench.errors import DataError, InputError, check_name
from qabench.evaluation.records import column_names
from qabench.evaluation.score_spec import (
    CUTOFF,
    Names,
    ScoreSpec,
    pass_of,
    present,
    select_scores,
    split_names,
    stems,
)
from qabench.evaluation.scoring import Asking, Question, Questions, Scorer
from qabench.evaluation.signature import IRRELEVANT, Field
from qabench.io.tables import Displayed, Table
from qabench.loading_scripts import LEADERBOARD, custom_digest, dataset_table

if TYPE_CHECKING:
    from qabench.benchmarks.judging import Judging
    from qabench.benchmarks.logs import Logs
    from qabench.benchmarks.numbers import Numbers
    from qabench.benchmarks.report import Report
    from qabench.data.joining import Joined
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.signature import Declaration


# The signature field for the provider's limit of tokens, if neither the benchmark nor the user has
# set one. A benchmark that declares ``max_tokens`` does not use this field.
DEFAULT_LIMIT = "default_max_tokens"


class Benchmark(Displayed, ABC):
    """A benchmark: its questions, scorer, settings, and how a model is asked.

    A subclass is defined in ``qabench.benchmarks.NAME``. This module must be fast to import, so
    methods import what they need. Code that only publishing, statistics, reports, or the reading of
    logs need is in separate objects: ``leaderboards``, ``numbers``, ``report`` and ``logs``.

    Attributes:
        name: the benchmark's name, such as "fanoutqa": its folder in ``loading_scripts``.
        title: the name for readers, such as "FanOutQA".
        data: where the rows are on the Hub, or None if the dataset's folder has tables of files.
        custom_config: the config in signatures if the questions are from a custom file. {file} in
            it stands for the file's name. "" means the config whose format the file has.
        settings: the settings of ``qabench run``. The first is the default.
        prompt: the user message of the default ``asking``, with columns of a row as fields.
        part: the task argument that selects a part of the questions, such as "category".
        planned_reply: the reply that is assumed when the calls of a run are estimated. It must be a
            reply after which each setting makes all the calls that it can make.
        scores: all scores, in display order.
        headline: names of scores. The first one that an evaluation has is its main score.
        groups: group of scores -> a sentence that describes the scores.
        default_groups: the groups that are computed by default.
        groupings: grouping -> its title, such as "type" -> "type of answer".
        options: additional options of ``qabench score`` and ``qabench.evaluate_predictions``.
        prediction_fields: a prediction must have at least one of these fields.
        answer_fields: the names in ``prediction_fields`` under which a prediction can have its
            answer, if there are several. If the user names the column of the answers, the other
            ones are ignored.
        id_fields: the names that the field with a prediction's id may have: "id", and the name of
            the column in the dataset.
        official: group of scores -> the official values of the fields that the scorer adds to its
            signature.
        failures_official: whether the authors' results contain questions without an answer, which
            then score 0.
        leaderboards: which scores have leaderboards on the Hub.
        needs: the requirements for official results, which ``qabench env`` checks.
        commands: the commands of ``qabench NAME COMMAND``: functions of
            ``qabench.benchmarks.NAME.commands``.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    data: ClassVar[HubDataset | None] = None
    custom_config: ClassVar[str] = ""
    settings: ClassVar[tuple[Setting, ...]]
    prompt: ClassVar[str] = "{question}"
    part: ClassVar[str] = "groups"
    planned_reply: ClassVar[str] = "0"
    scores: ClassVar[tuple[ScoreSpec, ...]]
    headline: ClassVar[tuple[str, ...]] = ()
    groups: ClassVar[Mapping[str, str]]
    default_groups: ClassVar[tuple[str, ...]]
    groupings: ClassVar[Mapping[str, str]] = {}
    options: ClassVar[tuple[Option, ...]] = ()
    prediction_fields: ClassVar[tuple[str, ...]] = ("answer",)
    answer_fields: ClassVar[tuple[str, ...]] = ()
    id_fields: ClassVar[tuple[str, ...]] = ("id",)
    official: ClassVar[Mapping[str, Declaration]] = {}
    failures_official: ClassVar[bool] = False
    leaderboards: ClassVar[Leaderboards] = Leaderboards()
    needs: ClassVar[tuple[Need, ...]] = ()
    commands: ClassVar[tuple[str, ...]] = ()

    def check_declared(self, where: object) -> None:
        """Check the attributes' names and types. Raises an InputError that begins with ``where``."""
        check_declared(self, where)

    def logs(self) -> Logs:
        """Return the object for what is specific to this benchmark in the logs of its runs."""
        from qabench.benchmarks.logs import Logs

        return Logs(self)

    def judging(self) -> Judging:
        """Return the object for a model's verdicts, and people's labels of the same items."""
        from qabench.benchmarks.judging import Judging

        return Judging(self)

    def numbers(self) -> Numbers:
        """Return the object that counts the data, and compares it with published numbers."""
        from qabench.benchmarks.numbers import Numbers

        return Numbers(self)

    def report(self) -> Report:
        """Return what the benchmark adds to reports."""
        from qabench.benchmarks.report import Report

        return Report()

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of each signature's fields, by the signature's name.

        By default, scores are official for the default config with its pinned file, at temperature
        0, if the fields of the scorer have the values in ``official``. A field that is not declared
        is a deviation.
        """
        loaded = self.load(None)
        irrelevant = ("benchmark", "references", "model", "prompt", DEFAULT_LIMIT)
        common = dict.fromkeys(irrelevant, IRRELEVANT)
        common |= {
            "config": Field((loaded.config,), absent=True),
            "data": Field((loaded.data,), absent=True),
            "temperature": Field(("0", "0.0"), absent=True),
        }
        if self.data and not self.data.sha256:
            # The rows on the Hub can change at any time, so no digest of them is official.
            common["data"] = Field((), "data: {value} is not pinned; HubDataset has no sha256")
        declarations = {}
        for group in self.groups:
            declarations[f"{self.name}_{group}"] = {**common, **self.official.get(group, {})}
        return declarations

    def limits_tokens(self) -> bool:
        """Return whether ``max_tokens`` (the tokens per reply) has official values."""
        # The default ``declarations`` reads the dataset, which may not be on this machine, so
        # ``official`` is used instead.
        declared = self.official
        if type(self).declarations is not Benchmark.declarations:
            declared = self.declarations()
        return any("max_tokens" in fields for fields in declared.values())

    def read_rows(self, path: Path, config: str) -> Iterable[Row]:
        """Return the rows of a config's file, or of a custom file in its format.

        The default reads JSON Lines. Benchmarks whose rows have no ids, or whose file is a single
        JSON document, override this method.
        """
        ids: set[str] = set()
        for row in read_json_lines(path):
            # Ids are compared as text, because a file of predictions may write the id 7 as "7".
            id = str(row.get("id", str, int))
            if id in ids:
                raise DataError(f"{row.where}: the id {id!r} is repeated; each row needs its own")
            ids.add(id)
            yield row.fields

    def question(self, row: Row) -> Question:
        """Return a row as a question. By default, its groups come from the columns in ``groupings``."""
        groups = {name: [str(row[name])] for name in self.groupings}
        answer = row.get("answer")
        reference = "" if answer is None else str(answer)
        return Question(str(row["id"]), row["question"], reference, groups, row)

    def load(self, config: str | None, file: Path | None = None) -> Questions:
        """Return the questions to score, of a config or of a custom file.

        Raises:
            InputError: the config or the file cannot be read, or the file has no questions.
            SourceError: the data is not available.
        """
        table = dataset_table(self.name)
        selected = table.config(config)
        if selected.name == LEADERBOARD:
            allowed = [name for name in table.configs if name != LEADERBOARD]
            raise InputError(
                f"the config {LEADERBOARD} of {self.title} has no questions, only published scores; "
                f"allowed: {', '.join(allowed)}"
            )
        if file is not None:
            digest = custom_digest(file)
            name = self.custom_config.format(file=file.name) or selected.name
            rows = _questions_in(self, selected.name, file, digest)
            if not rows:
                raise InputError(f"the file {file} has no questions")
            return Questions(name, digest, rows)
        # A benchmark whose configs have several splits or files overrides this method.
        ((path,),) = selected.splits.values()
        digest = table.file_digest(path)
        rows = _questions_in(self, selected.name, table.open_path(path), digest)
        return Questions(selected.name, digest, rows)

    def why_unscored(self, config: str | None) -> str | None:
        """Return why a config cannot be scored, or None. A run reports it before the first call."""
        return None

    def load_for(
        self, predictions: Predictions, config: str | None, file: Path | None = None, **options: Any
    ) -> Questions:
        """Return the questions that predictions are joined to, by default all of the config."""
        return self.load(config, file, **options)

    def groups_of(self, loaded: Questions, predictions: Predictions) -> Sequence[str]:
        """Return the groups of scores that are computed for a file of predictions by default."""
        return self.default_groups

    def join(
        self,
        loaded: Questions,
        predictions: Predictions,
        groups: Sequence[str],
        options: Mapping[str, Any],
    ) -> Joined:
        """Join a file of predictions to the questions that are scored, by default all.

        Raises:
            InputError: these groups of scores cannot be computed for the predictions.
        """
        ids = [question.id for question in loaded.rows]
        return join(ids, predictions)

    def scorer(self, groups: Sequence[str], **options: Any) -> Scorer:
        """Return a scorer for these groups of scores. ``options`` has values for ``self.options``."""
        raise NotImplementedError

    def asking(self, **arguments: Any) -> Asking:
        """Return how a model is asked in a task with these arguments.

        By default, the model is asked once, with the prompt of the setting, or with
        ``Benchmark.prompt`` if the setting has none.
        """
        from qabench.prompts.prompt import AskOnce, Prompt

        prompt = arguments.pop("prompt", self.prompt)
        return AskOnce(Prompt(self.name, prompt), **arguments)

    def tasks(self) -> Mapping[str, Callable[..., Any]]:
        """Return the functions that plan the settings (see ``TaskPlan``), by the name of the task.

        By default, each setting asks each question once. The functions' arguments are the options
        of a run (``-T``), and their docstrings describe them.
        """
        from qabench.benchmarks.plan import each_asked_once

        plans = {}
        for setting in self.settings:
            own_prompt = {}
            if setting.prompt:
                own_prompt["prompt"] = setting.prompt
            asking = partial(self.asking, **setting.arguments, **own_prompt)
            plans[setting.task] = each_asked_once(
                setting.name, setting.task, self.load, asking, self.selected_groups
            )
        return plans

    def read(self, source: str | Path | Sequence[Row], **options: Any) -> Predictions:
        """Read predictions from a file, from standard input ("-"), or from a list in memory.

        Args:
            source: see ``qabench.data.predictions.read_predictions``.
            **options: the benchmark's options of this method.

        Raises:
            InputError: the file cannot be read, or has no predictions.
        """
        return read_predictions(source, self.prediction_fields, self.id_fields, self.answer_fields)

    def questions(self, config: str | None) -> dict[str, tuple[str, Row]]:
        """Return the text and the row of each question that ``load`` returns, by the question's id."""
        return {question.id: (question.text, question.row) for question in self.load(config).rows}

    def evidence_pages(self, config: str | None) -> Iterable[Json] | None:
        """Return the Wikipedia pages that a config's questions need, or None if none are named."""
        return None

    def scoring(self) -> dict[str, Any]:
        """Return the fields of an ``Evaluation`` from which scores and deviations are computed."""
        return {
            "benchmark": self.name,
            "score_specs": self.scores,
            "declarations": self.declarations(),
            "failures_official": self.failures_official,
        }

    def setting(self, name: str | None) -> Setting:
        """Return the setting with this name, or the default one for None.

        Raises:
            InputError: an unknown name. The message lists the allowed ones.
        """
        if name is None:
            return self.settings[0]
        by_name = {setting.name: setting for setting in self.settings}
        check_name(f"{self.title} has no setting", name, by_name)
        return by_name[name]

    def score_spec(self, name: str) -> ScoreSpec:
        """Return the score with this name, such as "mrr@5" from "mrr@k", or "acc.strict.pass@2".

        Raises:
            InputError: an unknown name. The message lists the valid ones.
        """
        scored, of_samples = pass_of(name)
        if of_samples:
            return of_samples.of(self.score_spec(scored))
        by_name = {spec.name: spec for spec in self.scores}
        # A score at k is declared once, for every cutoff.
        stem, _, cutoff = name.partition("@")
        if cutoff.isdigit() and stem + CUTOFF in by_name:
            return by_name[stem + CUTOFF].at(cutoff)
        check_name(f"{self.title} has no score", name, by_name)
        return by_name[name]

    def headline_score(self, evaluations: Sequence[Evaluation]) -> ScoreSpec | None:
        """Return the main score of these evaluations, or None if nothing is scored."""
        # The evaluations of several systems may have different scores.
        records: list[Record] = []
        specs_of_logs: list[ScoreSpec] = []
        for evaluation in evaluations:
            records += evaluation.records
            specs_of_logs += evaluation.score_specs
        # Tasks of other harnesses declare no scores, so the scores are those in their logs.
        declared = self.scores or specs_of_logs
        specs = present(declared, column_names(records))
        for headline in self.headline:
            for spec in specs:
                # A headline "recall" means the score at any cutoff, and "recall@10" only this one.
                if headline in (spec.name, spec.name.partition("@")[0]):
                    return spec
        return next(iter(specs), None)

    def declaration(self, score: str) -> Declaration:
        """Return the official values of the fields of the signature with the name ``score``.

        Raises:
            InputError: an unknown name. The message lists all names.
        """
        declarations = self.declarations()
        check_name(f"{self.title} has no official values for", score, declarations)
        return declarations[score]

    def selected_groups(self, names: Names) -> list[str] | None:
        """Return the groups to compute for names of scores and groups, or None for the default.

        Raises:
            InputError: an unknown name. The message lists the scores and groups.
        """
        chosen = stems(names)
        if chosen is None:
            return None
        selected = select_scores(self.scores, chosen, self.title)
        groups = set(split_names(chosen))
        # A name of both a group and a score of another group selects the group.
        names_of_scores = groups - self.groups.keys()
        for spec in selected:
            if spec.name in names_of_scores:
                groups.add(spec.group)
        return [name for name in self.groups if name in groups] or None

    def checked_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that are not None. Raises InputError for an unknown name or value."""
        declared = {option.name: option for option in self.options}
        values = without_none(options)
        if values and not self.name:
            # Logs of other packages' tasks do not belong to a benchmark that declares options.
            raise InputError(
                f"{', '.join(values)}: options of a benchmark. Name it before the files; "
                "logs of other tasks have no options"
            )
        for name, value in values.items():
            check_name(f"{self.title} has no option", name, declared)
            if choices := declared[name].choices:
                check_name(f"{self.title}: the option {name} is", str(value), choices)
            if allowed := _other_type(declared[name].type, value):
                raise InputError(
                    f"{self.title}: the option {name} is {value!r:.60}; allowed: {allowed}"
                )
        return values

    def tables(self) -> list[Table]:
        """Return scores and settings, as ``print`` and notebooks show them."""
        scores = []
        for spec in self.scores:
            official = "yes" if spec.official else "no"
            scores.append([spec.name, spec.group, spec.about, spec.unit, official])
        columns = ["score", "group", "what it measures", "n counts", "official"]
        settings = [[setting.name, setting.about] for setting in self.settings]
        return [
            Table(f"{self.title} ({self.name})", columns, scores),
            Table("Settings of a run", ["setting", "what the model is given"], settings),
        ]


def _other_type(kind: type, value: Any) -> str:
    """Return what an option's type allows, or "" if it allows the value.

    The command line converts values to the type. From Python, any text would count as True. Other
    types are checked where the option is read, because some options take several.
    """
    # NumPy's booleans are not instances of bool.
    is_bool = isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
    if kind is bool and not is_bool and value not in (0, 1):
        return "True or False"
    if kind is int and (is_bool or not isinstance(value, Integral)):
        return "an integer"
    if kind is float and (is_bool or not isinstance(value, Real)):
        return "a number"
    return ""


# The last questions are cached, because files of several systems are often scored on the same ones.
# The digest is part of the key, so that a file that was changed meanwhile is read again.
@functools.lru_cache(maxsize=1)
def _questions_in(
    benchmark: Benchmark, config: str, path: Path, digest: str
) -> tuple[Question, ...]:
    """Return the questions in a file. ``digest`` is the digest of its content."""
    rows = list(benchmark.read_rows(path, config))
    # A file whose answers are held out may have a column "answer" with nulls.
    if rows and all("answer" in row and row["answer"] is None for row in rows):
        raise InputError(f"{path} has no answers, so nothing can be scored")
    try:
        return tuple(benchmark.question(row) for row in rows)
    except KeyError as error:
        if all(error.args[0] in row for row in rows):
            # Every row has this column, so the KeyError is a mistake in ``question`` itself.
            raise
        raise DataError(f"{path}: a row without the column {error}") from error
