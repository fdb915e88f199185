"""The base class of a benchmark, through which commands, runs, reports and publishing use every benchmark."""

from __future__ import annotations

import os
from abc import ABC
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from qabench.data.pinned import HubDataset
from qabench.data.predictions import join, read_predictions
from qabench.data.rows import Json, Row, Splits, read_json_lines, without_none
from qabench.data.sources import available
from qabench.errors import DataError, InputError, MissingExtra, check_name
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
from qabench.evaluation.scoring import Asking, Messages, Question, Questions, Scorer
from qabench.evaluation.signature import IRRELEVANT, Field
from qabench.io.tables import Displayed, Table
from qabench.loading_scripts import (
    LEADERBOARD,
    custom_digest,
    dataset_table,
    file_digest,
    open_path,
    source_table,
)

if TYPE_CHECKING:
    from qabench.benchmarks.reproduction import Reproduction
    from qabench.data.predictions import Joined, Predictions
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.records import ExtraSection
    from qabench.evaluation.signature import Declaration
    from qabench.loading_scripts.published import PublishedScore


# The types of the attributes of a benchmark, for ``Benchmark.check_declared``.
TEXTS: Mapping[str, Any] = {
    **dict.fromkeys(("name", "title", "prompt", "part", "counted_by"), str),
    "data": HubDataset | None,
    "failures_official": bool,
}
MAPPINGS = ("groups", "groupings", "official", "generation_fields", "log_kinds")


ASKED_ONCE = ("qabench/ask",)  # the solver that asks a model once, with the messages of ``asking``
UNKNOWN_TEXT = "\0unknown\0"  # in messages that are compared with a log
# The field of signatures for a limit of tokens that only the provider set, unless a benchmark declares ``max_tokens``.
DEFAULT_LIMIT = "default_max_tokens"


@dataclass(frozen=True, slots=True)
class Setting:
    """A protocol by which a model is prompted.

    Attributes:
        name: such as "closed-book".
        task: the name of the Inspect task.
        about: what the model is given, in one sentence.
        arguments: the task's arguments that make the setting.
        requires: what must be passed to run it, in one sentence that says what to type, or "" if
            nothing.
        without: the task's arguments that have no effect in this setting, and are refused.
        solver: the names of its solvers in Inspect's registry, in order. With another one, a run is
            an agent's.
        prompt: the user message, if the default tasks ask in this setting with another one than
            ``Benchmark.prompt``.
    """

    name: str
    task: str
    about: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    requires: str = ""
    without: tuple[str, ...] = ()
    solver: tuple[str, ...] = ASKED_ONCE
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of ``qabench score`` and ``qabench.evaluate_predictions`` that one benchmark adds.

    Attributes:
        name: the name of the keyword argument. On the command line, with hyphens instead of
            underscores.
        about: the help text.
        type: str, int, float, bool or pathlib.Path.
        default: the value if it is not passed.
        choices: the allowed values, or () if any value is allowed.
        method: the method of ``Benchmark`` that has it as an argument.
        secret: whether the value can contain a key, so that evaluations do not record it.
        metavar: what the help calls its value, such as "URL". "" means by its type.
    """

    name: str
    about: str
    type: type = str
    default: Any = None
    choices: tuple[str, ...] = ()
    method: Literal["scorer", "read", "load"] = "scorer"
    secret: bool = False
    metavar: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """What a machine must have for an official score or for a run.

    Attributes:
        what: the score, such as "loose and strict accuracy".
        fix: how to get what is missing, such as a command.
        packages: modules that must be importable.
        files: source files of the benchmark that must be in a mirror or in the cache. Others are
            downloaded.
        variables: environment variables that must be set.
        nltk_data: data of NLTK that must be installed, such as "tokenizers/punkt_tab".
    """

    what: str
    fix: str = ""
    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    nltk_data: tuple[str, ...] = ()

    def missing(self, benchmark: str) -> list[str]:
        """Return the packages, files, variables and data that are missing on this machine."""
        sources = source_table(benchmark)
        return [
            *(name for name in self.packages if find_spec(name) is None),
            *(path for path in self.files if not available(sources[path])),
            *(name for name in self.variables if not os.environ.get(name)),
            *(f"NLTK's {name}" for name in self.nltk_data if not _has_nltk_data(name)),
        ]


def _has_nltk_data(name: str) -> bool:
    """Tell whether data of NLTK is installed. Without NLTK itself, it is not."""
    if find_spec("nltk") is None:
        return False
    import nltk

    try:
        nltk.data.find(name)
    except LookupError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Leaderboards:
    """Which official scores of a benchmark have a leaderboard on the Hub, one per config, setting and score.

    Attributes:
        groups: config -> groups of scores. Empty for all groups on the default config.
        settings: the names of settings in results, if they are not the names of
            ``Benchmark.settings``.
        cutoff: the k of scores that are declared for every cutoff.
    """

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    cutoff: str = "10"


SEQUENCES: Mapping[str, type] = {
    "settings": Setting,
    "scores": ScoreSpec,
    "options": Option,
    "needs": Need,
    **dict.fromkeys(("headline", "default_groups", "prediction_fields", "id_fields"), str),
    **dict.fromkeys(("model_fields", "groups_without_model", "commands"), str),
}


def _allowed(kind: Any) -> str:
    """Return the name of a type, for an error."""
    return {str: "a string", bool: "True or False"}.get(kind, "a HubDataset or None")


def _check_texts(element: object, where: str) -> None:
    """Check that the fields of a declared object that are texts are strings."""
    for each in fields(element) if is_dataclass(element) else ():
        value = getattr(element, each.name)
        if each.type == "str" and not isinstance(value, str):
            raise InputError(f"{where}: the field {each.name} is {value!r:.60}; allowed: a string")


class Benchmark(Displayed, ABC):
    """A benchmark: its settings and scores as attributes, its work as methods.

    A subclass is defined in ``qabench.benchmarks.NAME``, which must import fast: methods import
    what they need.

    Attributes:
        name: such as "fanoutqa", as in ``loading_scripts``.
        title: such as "FanOutQA".
        data: where the rows are on the Hub, or None if the dataset's folder has tables of files.
        settings: the settings of ``qabench run``. The first is the default.
        prompt: the user message of the default ``asking``, with columns of a row as fields.
        part: the argument of the tasks that selects a part of the questions, such as "category".
        scores: all scores, in display order.
        headline: names of scores. The first one that an evaluation has is its main score.
        groups: group of scores -> what its scores are, in one sentence.
        default_groups: the groups that are computed by default.
        counted_by: the column by whose values ``qabench stats`` counts. By split if the rows do not
            have it.
        groupings: grouping -> its title, such as "type" -> "type of answer".
        options: additional options of ``evaluate`` and ``read``.
        prediction_fields: a prediction must have at least one of these fields.
        id_fields: the names that a prediction's id may have: "id", and the dataset's own name for
            it.
        official: group of scores -> the official values of the fields that the scorer adds to its
            signature.
        failures_official: whether the authors' results contain questions without an answer, which
            then score 0.
        model_fields: the fields of signatures that name a model whose verdicts or labels are
            scored.
        generation_fields: fields of signatures that have an option of the generation under another
            name -> its name.
        groups_without_model: groups of scores that do not depend on the model that answers.
        resume_hints: field of signatures -> how to ask with the log's value again, for the error of
            a run that is resumed under other conditions.
        log_kinds: "detail" or "arguments" -> field of ``Record.detail``, or argument of a task, that the
            benchmark's code reads from logs -> its kind (see ``qabench.runs.kinds``).
        planned_reply: what a model is assumed to reply in estimates of a run's calls: a reply after
            which the setting makes all further calls.
        leaderboards: which scores have leaderboards on the Hub.
        needs: what a machine must have for official results, for ``qabench env``.
        commands: the commands of ``qabench NAME COMMAND``: functions of
            ``qabench.benchmarks.NAME.commands``.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    data: ClassVar[HubDataset | None] = None
    settings: ClassVar[tuple[Setting, ...]]
    prompt: ClassVar[str] = "{question}"
    part: ClassVar[str] = "groups"
    scores: ClassVar[tuple[ScoreSpec, ...]]
    headline: ClassVar[tuple[str, ...]] = ()
    planned_reply: ClassVar[str] = "0"
    groups: ClassVar[Mapping[str, str]]
    default_groups: ClassVar[tuple[str, ...]]
    counted_by: ClassVar[str] = ""
    groupings: ClassVar[Mapping[str, str]] = {}
    options: ClassVar[tuple[Option, ...]] = ()
    prediction_fields: ClassVar[tuple[str, ...]] = ("answer",)
    id_fields: ClassVar[tuple[str, ...]] = ("id",)
    official: ClassVar[Mapping[str, Declaration]] = {}
    failures_official: ClassVar[bool] = False
    model_fields: ClassVar[tuple[str, ...]] = ()
    generation_fields: ClassVar[Mapping[str, str]] = {}
    groups_without_model: ClassVar[tuple[str, ...]] = ()
    resume_hints: ClassVar[Mapping[str, str]] = {}
    log_kinds: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    leaderboards: ClassVar[Leaderboards] = Leaderboards()
    needs: ClassVar[tuple[Need, ...]] = ()
    commands: ClassVar[tuple[str, ...]] = ()

    def check_declared(self, where: object) -> None:
        """Check the types of the attributes. Raises InputError that begins with ``where``."""
        for name, kind in TEXTS.items():
            value = getattr(self, name, None)
            if not isinstance(value, kind):
                raise InputError(f"{where}: {name} is {value!r:.60}; allowed: {_allowed(kind)}")
        for name, kind in SEQUENCES.items():
            values = getattr(self, name, None)
            if not isinstance(values, list | tuple) or not all(
                isinstance(each, kind) for each in values
            ):
                allowed = f"a tuple or list with elements of the type {kind.__name__}"
                raise InputError(f"{where}: {name} is {values!r:.60}; allowed: {allowed}")
            for element in values:
                _check_texts(element, f"{where}: {name}")
        for name in MAPPINGS:
            if not isinstance(value := getattr(self, name, None), Mapping):
                raise InputError(f"{where}: {name} is {value!r:.60}; allowed: a dictionary")
        for group in [*(spec.group for spec in self.scores), *self.default_groups]:
            check_name(f"{where}: unknown group", group, self.groups)

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of each signature's fields, by the signature's name.

        By default, the config must be the default one, its file the shipped one, the temperature 0,
        and the scorer's fields as in ``official``. A field that nobody declares is a deviation.
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
            common["data"] = Field((), "data: {value} is not pinned; HubDataset has no sha256")
        return {
            f"{self.name}_{group}": {**common, **self.official.get(group, {})} for group in self.groups
        }

    def limits_tokens(self) -> bool:
        """Return whether the official values include a limit of tokens per reply, or that there is none."""
        if type(self).declarations is Benchmark.declarations:
            return any("max_tokens" in fields for fields in self.official.values())
        return any("max_tokens" in fields for fields in self.declarations().values())

    def read_rows(self, path: Path, config: str) -> Iterable[Row]:
        """Return the rows of a config's file, which is one of the dataset's or a user's in its format.

        By default, the file is JSON Lines, and each object is a row with an id of its own.
        """
        ids: set[str] = set()
        for row in read_json_lines(path):
            id = str(row.get("id", str, int))
            if id in ids:
                raise DataError(f"{row.where}: the id {id!r} is repeated; each row needs its own")
            ids.add(id)
            yield row.fields

    def question(self, row: Row) -> Question:
        """Return a row as a question.

        By default, a grouping is a column of the row.
        """
        groups = {name: [str(row[name])] for name in self.groupings}
        answer = row.get("answer")
        reference = "" if answer is None else str(answer)
        return Question(str(row["id"]), row["question"], reference, groups, row)

    def load(self, config: str | None, file: Path | None = None) -> Questions:
        """Return the questions of a config that can be scored, or of a custom file.

        Raises:
            InputError: the config or the file cannot be read.
            SourceError: the data is not available.
        """
        selected = dataset_table(self.name).config(config)
        if selected.name == LEADERBOARD:
            raise InputError(
                f"the config {LEADERBOARD} of {self.title} has no questions, only published scores"
            )
        ((path,),) = selected.splits.values()
        digest = custom_digest(file) if file else file_digest(self.name, path)
        rows = list(self.read_rows(file or open_path(self.name, path), selected.name))
        if rows and all("answer" in row and row["answer"] is None for row in rows):
            raise InputError(f"{file or path} has no answers, so nothing can be scored")
        try:
            questions = [self.question(row) for row in rows]
        except KeyError as error:
            if all(error.args[0] in row for row in rows):
                raise  # another mistake in ``question``
            raise DataError(f"{file or path}: a row without the column {error}") from error
        return Questions(selected.name, digest, questions)

    def load_for(
        self, predictions: Predictions, config: str | None, file: Path | None = None, **options: Any
    ) -> Questions:
        """Return the questions that predictions are joined to, by default those of the config. See ``load``."""
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

        Raises InputError if these groups of scores cannot be computed for them.
        """
        return join([question.id for question in loaded.rows], predictions)

    def scorer(self, groups: Sequence[str], **options: Any) -> Scorer:
        """Return a scorer of these groups of scores.

        ``options`` are ``Benchmark.options`` that were given.
        """
        raise NotImplementedError

    def asking(self, **arguments: Any) -> Asking:
        """Return how a model is asked, for arguments of a task.

        By default once, with ``prompt``.

        ``prompt`` in the arguments is the setting's.
        """
        from qabench.tasks.prompts import AskOnce, Prompt

        prompt = arguments.pop("prompt", self.prompt)
        return AskOnce(Prompt(self.name, prompt), **arguments)

    def tasks(self) -> Mapping[str, Callable[..., Any]]:
        """Return the functions that create the Inspect tasks of the settings, by name."""
        raise NotImplementedError

    def read(self, source: str | Path | Sequence[Row], **options: Any) -> Predictions:
        """Read predictions from a file, from standard input ("-"), or from a list in memory.

        Args:
            source: see ``qabench.data.predictions.read_predictions``.
            **options: the benchmark's options of this method.

        Raises:
            InputError: the file cannot be read, or has no predictions.
        """
        return read_predictions(source, self.prediction_fields, self.id_fields)

    def prediction(self, record: Record) -> Json:
        """Return the fields of a prediction that would get the record's scores.

        See ``prediction_fields``.
        """
        return {"answer": record.answer}

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the options of ``evaluate`` with which the answers of a run are scored, without calls of models.

        By default, the groups of scores are the run's.
        """
        return {"groups": [name for name in self.groups if name in run.signatures]}

    def rescored_prediction(self, record: Record) -> Json:
        """Return the prediction of a record of a run.

        Unlike in ``prediction``, None means that there is no answer.
        """
        return self.prediction(record)

    def task_function(self, setting: Setting) -> Callable[..., Any]:
        """Return the function that creates the Inspect task of a setting.

        Raises:
            MissingExtra: inspect_ai is not installed (extra ``run``).
        """
        if find_spec("inspect_ai") is None:
            raise MissingExtra('running models needs inspect_ai: pip install "qabench[run]"')
        return self.tasks()[setting.task]

    def first_messages(
        self, setting: Setting, arguments: Mapping[str, Any], prompt: str | None
    ) -> Callable[[Row, Record], Sequence[Messages]] | None:
        """Return how the first messages of a setting are rendered again, to compare a log with them.

        The function takes a row and the record of its answer, and returns the messages that may
        have been sent first, with ``UNKNOWN_TEXT`` for a text that only the run knew, such as pages.
        None if they cannot be rendered. By default, these are the messages of ``asking`` where the
        model is asked once with them.

        Args:
            setting: the setting.
            arguments: the task's arguments in the log.
            prompt: the prompt in the log's signatures, such as "official-0123456789ab".

        Raises:
            SourceError: the authors' prompts are not available here.
        """
        if setting.solver != ASKED_ONCE:
            return None
        own_prompt = {"prompt": setting.prompt} if setting.prompt else {}
        asking = self.asking(**setting.arguments, **own_prompt)
        return lambda row, record: [asking.messages(row)]

    def scored_replies(self, record: Record) -> list[str]:
        """Return the replies that are scored, if they are the texts of the model's messages, else []."""
        return []

    def conditions_of_model(
        self, setting: Setting, arguments: Mapping[str, Any], model: Any
    ) -> Mapping[str, str]:
        """Return the fields of signatures that the solvers add and that depend on the model, before the first call.

        A resumed run compares them with its log. By default, there are none.
        """
        return {}

    def official_shape(self, evaluation: Evaluation) -> Json | None:
        """Return the scores in the format of the authors' scorer, or None if they have no such format."""
        return None

    def questions(self, config: str | None) -> dict[str, tuple[str, Row]]:
        """Return the text and the row of each question of a config that can be scored, by the question's id."""
        return {question.id: (question.text, question.row) for question in self.load(config).rows}

    def evidence_pages(self, config: str | None) -> Iterable[Json] | None:
        """Return the Wikipedia pages that a config's questions need, or None if the questions name none."""
        return None

    def report_sections(self, evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
        """Return additional sections of a report, for labels and evaluations on one config."""
        return []

    def statistics(self, config: str, splits: Splits) -> list[Table]:
        """Return the tables of ``qabench stats`` for the rows of a config's splits.

        For the config ``leaderboard`` it is the table of the published main scores, else the sums
        of ``counts``.
        """
        from qabench.benchmarks.reproduction import count_table

        if config == LEADERBOARD:
            from qabench.loading_scripts.published import published_table

            return [
                published_table(
                    score for score in self.published() if self.score_spec(score.metric).main
                )
            ]
        return [count_table(self.name, config, splits, self.counts, self.counted_by)]

    def counts(self, row: Row) -> Mapping[str, int]:
        """Return what a row adds to the numbers of ``qabench stats``, by default one row."""
        return {"rows": 1}

    def published(self) -> list[PublishedScore]:
        """Return the published scores: by default the scores of the dataset's ``leaderboard.json``, if it has one."""
        from qabench.loading_scripts.published import shipped_scores

        return shipped_scores(self.name)

    def reproduce(self) -> Reproduction:
        """Recompute published numbers: by default the statistics of the data."""
        from qabench.benchmarks.reproduction import data_checks

        return data_checks(self.name, self.counts, self.counted_by)

    def scoring(self) -> dict[str, Any]:
        """Return the fields of an ``Evaluation`` by which its scores and deviations are computed."""
        return {
            "benchmark": self.name,
            "score_specs": self.scores,
            "declarations": self.declarations(),
            "failures_official": self.failures_official,
        }

    def setting(self, name: str | None) -> Setting:
        """Return the setting with this name.

        The default for None.

        Raises InputError that lists the allowed names.
        """
        if name is None:
            return self.settings[0]
        by_name = {setting.name: setting for setting in self.settings}
        check_name(f"{self.title} has no setting", name, by_name)
        return by_name[name]

    def score_spec(self, name: str) -> ScoreSpec:
        """Return the score with this name, such as "mrr@5" from "mrr@k", or "acc.strict.pass@2".

        Raises InputError that lists the names.
        """
        scored, of_samples = pass_of(name)
        if of_samples:
            return of_samples.of(self.score_spec(scored))
        by_name = {spec.name: spec for spec in self.scores}
        stem, _, cutoff = name.partition("@")
        if cutoff.isdigit() and stem + CUTOFF in by_name:
            return by_name[stem + CUTOFF].at(cutoff)
        check_name(f"{self.title} has no score", name, by_name)
        return by_name[name]

    def headline_score(self, evaluations: Sequence[Evaluation]) -> ScoreSpec | None:
        """Return the main score of these evaluations, or None if nothing is scored."""
        columns = column_names(record for each in evaluations for record in each.records)
        declared = self.scores or [spec for each in evaluations for spec in each.score_specs]
        specs = present(declared, columns)
        headlines = [
            spec
            for headline in self.headline
            for spec in specs
            if headline in (spec.name, spec.name.partition("@")[0])
        ]
        return next(iter([*headlines, *specs]), None)

    def declaration(self, score: str) -> Declaration:
        """Return the official values of the fields of a signature, by the score's name in it.

        Raises InputError.
        """
        declarations = self.declarations()
        check_name(f"{self.title} has no official values for", score, declarations)
        return declarations[score]

    def selected_groups(self, names: Names) -> list[str] | None:
        """Return the groups to compute for names of scores and groups, or None for the default groups.

        Raises InputError that lists the scores and groups.
        """
        chosen = stems(names)
        if chosen is None:
            return None
        selected = select_scores(self.scores, chosen, self.title)
        named = set(split_names(chosen))
        # A name of both a group and a score of another group selects the group.
        groups = named | {spec.group for spec in selected if spec.name in named - {*self.groups}}
        return [name for name in self.groups if name in groups] or None

    def checked_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that are not None. Raises InputError for an unknown name or value."""
        declared = {option.name: option for option in self.options}
        values = without_none(options)
        for name, value in values.items():
            check_name(f"{self.title} has no option", name, declared)
            if choices := declared[name].choices:
                check_name(f"{self.title}: the option {name} is", str(value), choices)
        return values

    def tables(self) -> list[Table]:
        """Return scores and settings, as ``print`` and notebooks show them."""
        scores = [
            [each.name, each.group, each.about, each.unit, "yes" if each.official else "no"]
            for each in self.scores
        ]
        columns = ["score", "group", "what it measures", "n counts", "official"]
        settings = [[setting.name, setting.about] for setting in self.settings]
        return [
            Table(f"{self.title} ({self.name})", columns, scores),
            Table("Settings of a run", ["setting", "what the model is given"], settings),
        ]
