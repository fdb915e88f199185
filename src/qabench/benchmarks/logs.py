"""The knowledge about a benchmark's logs that is needed to trust, resume and rescore them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from qabench.benchmarks.declared import ASKED_ONCE, Setting
from qabench.data.rows import Json, Row
from qabench.evaluation.scoring import Asking, Messages

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation, Record

# In a rendered message, this stands for a text that is not in the log, such as retrieved pages.
UNKNOWN_TEXT = "\0unknown\0"
# A function that renders the possible first messages from a row and the record of its answer.
Renderer = Callable[[Row, "Record"], Sequence[Messages]]


class BenchmarkOfLogs(Protocol):
    """The attributes of a benchmark that ``Logs`` uses."""

    @property
    def groups(self) -> Mapping[str, str]:
        """Return a mapping from each group of scores to its description."""
        ...

    def asking(self, **arguments: Any) -> Asking:
        """Return how a model is asked in a task with these arguments."""
        ...


class Logs:
    """The logs of a benchmark's runs. A subclass changes what differs from asking once.

    Attributes:
        benchmark: the benchmark.
        kinds: the kinds (see ``qabench.runs.log_fields``) of values that the benchmark's code reads
            from logs. "detail" -> field of ``Record.detail`` -> kind, and "arguments" -> argument
            of a task -> kind.
        resume_hints: signature field -> how to ask with the log's value again. The error for a run
            that is resumed under other conditions shows it.
        model_fields: the signature fields that name a model whose verdicts or labels are scored.
        generation_fields: signature field -> the generation option that it contains, if the option
            has another name.
        groups_without_model: the groups of scores that do not depend on the model that answers.
    """

    kinds: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    resume_hints: ClassVar[Mapping[str, str]] = {}
    model_fields: ClassVar[tuple[str, ...]] = ()
    generation_fields: ClassVar[Mapping[str, str]] = {}
    groups_without_model: ClassVar[tuple[str, ...]] = ()

    def __init__(self, benchmark: BenchmarkOfLogs) -> None:
        self.benchmark = benchmark

    def prediction(self, record: Record) -> Json:
        """Return the fields of a prediction that has the same scores as the record."""
        return {"answer": record.answer}

    def rescored_prediction(self, record: Record) -> Json:
        """Return the prediction of a record of a run. If it has no answer, "answer" is None."""
        return self.prediction(record)

    def fields_of_solver(self, metadata: Mapping[str, Any]) -> Json:
        """Return the fields of a prediction, except the answer, that a user's solver has logged."""
        return {}

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the options with which the answers of a run are scored again.

        By default, these are the groups of scores of the run. Scores that need calls of models are
        not computed again.
        """
        signed_groups = [name for name in self.benchmark.groups if name in run.signatures]
        return {"groups": signed_groups}

    def first_messages(
        self, setting: Setting, arguments: Mapping[str, Any], prompt: str | None
    ) -> Renderer | None:
        """Return a function that renders the first messages of a setting, with which a log is checked.

        ``UNKNOWN_TEXT`` in a message stands for a text that only the run knew, such as pages. By
        default, the function renders the messages of ``asking``. Returns None if the messages
        cannot be rendered, by default for all settings that do more than ask once.

        Args:
            setting: the setting.
            arguments: the task's arguments in the log.
            prompt: the prompt in the log's signatures, such as "official-0123456789ab".

        Raises:
            SourceError: the authors' prompts are not available here.
        """
        if setting.solver != ASKED_ONCE:
            return None
        own_prompt = {}
        if setting.prompt:
            own_prompt["prompt"] = setting.prompt
        asking = self.benchmark.asking(**setting.arguments, **own_prompt)
        return lambda row, record: [asking.messages(row)]

    def scored_replies(self, record: Record) -> list[str]:
        """Return the model's messages that are scored, or [] if other texts are scored."""
        return []

    def conditions_of_model(
        self, setting: Setting, arguments: Mapping[str, Any], model: Any
    ) -> Mapping[str, str]:
        """Return the signature fields that solvers add and that depend on the model.

        A resumed run compares these fields with its log before the first call. By default, there
        are none.
        """
        return {}
