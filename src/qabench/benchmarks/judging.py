"""The verdicts of a model in a benchmark, and the labels that people gave to the same items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from qabench.data.rows import Row
from qabench.errors import InputError
from qabench.evaluation.judged import JudgedScore
from qabench.evaluation.judged_means import judged_means

if TYPE_CHECKING:
    from qabench.benchmarks.base import Benchmark
    from qabench.evaluation import Evaluation
    from qabench.evaluation.scoring import Question
    from qabench.llm.caller import Caller
    from qabench.llm.exchange import Answered, ChatRequest


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """A request to a judge about a question, or about a part of its answer.

    Attributes:
        question_id: the question's id.
        request: what is sent.
        part: the number of the part from 0.
    """

    question_id: str
    request: ChatRequest
    part: int = 0


class Judging:
    """The verdicts of a model in the evaluations of a benchmark.

    Attributes:
        judge_scores: the names of scores that are means of a model's verdicts on answers.
        labeled: a sentence about what people labeled in the dataset, or "" if nothing is labeled.
        methods: the names of methods by which a judge can be asked. The first is the default.
    """

    judge_scores: ClassVar[tuple[str, ...]] = ()
    labeled: ClassVar[str] = ""
    methods: ClassVar[tuple[str, ...]] = ()

    def __init__(self, benchmark: Benchmark) -> None:
        self.benchmark = benchmark

    def scores(self, evaluation: Evaluation) -> list[JudgedScore]:
        """Return the verdicts item by item, with people's labels from the dataset.

        By default, each answer is an item, and its verdicts are the scores in ``judge_scores``. If
        that is empty, they are all scores that are means of values from 0 to 1.
        """
        return judged_means(evaluation, self.judge_scores)

    def calls(
        self, questions: Sequence[Question], caller: Caller, method: str | None, prompt: str
    ) -> list[JudgeCall]:
        """Return the requests to a judge about what people labeled.

        Raises:
            InputError: people labeled nothing in this dataset, or an unknown method.
        """
        raise InputError(f"{self.benchmark.title} has no labels of people to compare a judge with")

    def predictions(
        self, questions: Sequence[Question], calls: Sequence[JudgeCall], replies: Sequence[Answered]
    ) -> list[Row]:
        """Return the judge's replies as predictions. ``scores`` reads the evaluation of these."""
        raise NotImplementedError

    def options(self, model: str) -> Mapping[str, Any]:
        """Return the options with which the predictions of a judge are scored."""
        return {}
