"""What the code of runs asks a benchmark about its logs: to trust, resume and rescore them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from qabench.benchmarks.declared import ASKED_ONCE, Setting
from qabench.data.rows import Json, Row
from qabench.evaluation.scoring import Asking, Messages

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation, Record

# Stands in a rendered message for a text that a log does not have, such as retrieved pages.
UNKNOWN_TEXT = "\0unknown\0"
# Renders the messages that may have been sent first, from a row and the record of its answer.
Renderer = Callable[[Row, "Record"], Sequence[Messages]]


class BenchmarkOfLogs(Protocol):
    """What logs need of their benchmark."""

    @property
    def groups(self) -> Mapping[str, str]:
        """Group of scores -> what its scores are."""
        ...

    def asking(self, **arguments: Any) -> Asking:
        """Return how a model is asked, for arguments of a task."""
        ...


class Logs:
    """The logs of a benchmark's runs. A subclass changes what differs from asking once.

    Attributes:
        benchmark: the benchmark.
        kinds: "detail" or "arguments" -> field of ``Record.detail``, or argument of a task, that
            the benchmark's code reads from logs -> its kind (see ``qabench.runs.log_fields``).
        resume_hints: field of signatures -> how to ask with the log's value again, for the error of
            a run that is resumed under other conditions.
        model_fields: the fields of signatures that name a model whose verdicts or labels are
            scored.
        generation_fields: fields of signatures that have an option of the generation under another
            name -> its name.
        groups_without_model: groups of scores that do not depend on the model that answers.
    """

    kinds: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    resume_hints: ClassVar[Mapping[str, str]] = {}
    model_fields: ClassVar[tuple[str, ...]] = ()
    generation_fields: ClassVar[Mapping[str, str]] = {}
    groups_without_model: ClassVar[tuple[str, ...]] = ()

    def __init__(self, benchmark: BenchmarkOfLogs) -> None:
        self.benchmark = benchmark

    def prediction(self, record: Record) -> Json:
        """Return the fields of a prediction that would get the record's scores."""
        return {"answer": record.answer}

    def rescored_prediction(self, record: Record) -> Json:
        """Return the prediction of a record of a run, in which None means that there is no answer."""
        return self.prediction(record)

    def fields_of_solver(self, metadata: Mapping[str, Any]) -> Json:
        """Return the fields, except the answer, that a user's solver leaves in a sample's metadata."""
        return {}

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the options with which the answers of a run are scored again.

        By default, the groups of scores are the run's. Scores that need calls of models are not
        computed again.
        """
        signed_groups = [name for name in self.benchmark.groups if name in run.signatures]
        return {"groups": signed_groups}

    def first_messages(
        self, setting: Setting, arguments: Mapping[str, Any], prompt: str | None
    ) -> Renderer | None:
        """Return how the first messages of a setting are rendered again, to compare a log with them.

        ``UNKNOWN_TEXT`` in a message stands for a text that only the run knew, such as pages. None
        if the messages cannot be rendered. By default, these are the messages of ``asking`` where
        the model is asked once with them.

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
        """Return the replies that are scored, or [] if they are not texts of the model's messages."""
        return []

    def conditions_of_model(
        self, setting: Setting, arguments: Mapping[str, Any], model: Any
    ) -> Mapping[str, str]:
        """Return the fields of signatures that the solvers add and that depend on the model.

        A resumed run compares them with its log before the first call. By default, there are none.
        """
        return {}
