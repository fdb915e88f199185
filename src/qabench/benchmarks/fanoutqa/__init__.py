"""FanOutQA: multi-hop, multi-document questions over Wikipedia."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.declared import Leaderboards, Need, Option, Setting
from qabench.benchmarks.fanoutqa.accuracy import reference_of
from qabench.data.answers import text_of, type_name
from qabench.data.prediction_files import read_bytes
from qabench.data.predictions import parse_predictions, read_predictions
from qabench.data.rows import Json, Row
from qabench.data.trec import parse_run
from qabench.errors import DataError, InputError, some
from qabench.evaluation.score_spec import ScoreSpec, mean_in_order
from qabench.evaluation.scoring import Question, Questions
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.fanoutqa.parse import NOT_PUBLIC

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.judging import FanOutQAJudging
    from qabench.benchmarks.fanoutqa.logs import FanOutQALogs
    from qabench.benchmarks.fanoutqa.numbers import FanOutQANumbers
    from qabench.benchmarks.fanoutqa.prompts import FanOutQAAsking
    from qabench.benchmarks.fanoutqa.scorer import FanOutQAScorer
    from qabench.benchmarks.report import Report
    from qabench.data.joining import Joined
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation
    from qabench.evaluation.signature import Declaration

_KINDS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
_PARTS = {
    "fscore": ("F", "F-measure"),
    "precision": ("precision", "Precision"),
    "recall": ("recall", "Recall"),
}
# The official scorer adds with Python's ``sum``. Other summation could change the last digit.
_average = partial(ScoreSpec, mean=mean_in_order)
_graded = partial(_average, graded=True)


def _rouge(part: str) -> list[ScoreSpec]:
    short, name = _PARTS[part]
    specs = []
    for kind, title in _KINDS.items():
        spec = _average(
            f"{kind}.{part}",
            f"{title} {short}",
            f"{name} of {title} between answer and reference.",
            "rouge",
            main=part == "fscore",
        )
        specs.append(spec)
    return specs


class FanOutQABenchmark(Benchmark):
    """Multi-hop, multi-document questions over Wikipedia."""

    name = "fanoutqa"
    title = "FanOutQA"
    custom_config = "file:{file}"
    settings = (
        Setting("closed-book", "fanoutqa_closed_book", "The question alone."),
        Setting(
            "open-book",
            "fanoutqa_open_book",
            "The model may search Wikipedia.",
            solver=("qabench/open_book",),
        ),
        Setting(
            "evidence-provided",
            "fanoutqa_evidence_provided",
            "The best passages of the evidence pages.",
            solver=("qabench/evidence_provided", "qabench/ask"),
        ),
    )
    part = "category"
    scores = (
        _graded(
            "acc.loose",
            "Loose accuracy",
            "Mean share of the reference's strings found in the answer.",
            "acc",
        ),
        _graded(
            "acc.strict",
            "Strict accuracy",
            "Share of answers that contain all strings of the reference.",
            "acc",
        ),
        *_rouge("fscore"),
        _average(
            "bleurt",
            "BLEURT",
            "Learned similarity between answer and reference.",
            "bleurt",
            # BLEURT is not a share, because it can be below 0 or above 1.
            share=False,
        ),
        _graded(
            "gpt",
            "LLM judge",
            "Share of answers that agree with the reference according to a model.",
            "judge",
            readable="gpt_readable",
        ),
        _graded(
            "gpt_readable",
            "LLM judge, readable",
            "The same share over the questions with a readable verdict.",
            "judge",
            official=False,
        ),
        *_rouge("precision"),
        *_rouge("recall"),
        ScoreSpec(
            "evidence.recall",
            "Recall of evidence",
            "Share of the necessary pages that were read; 0 without a search.",
            "evidence",
            official=False,
        ),
        ScoreSpec(
            "evidence.precision",
            "Precision of evidence",
            "Share of the pages read that are necessary, over the questions with pages.",
            "evidence",
            official=False,
            partial=True,
        ),
    )
    headline = ("acc.loose",)
    # In the authors' runs, a question that fails has the answer null, which scores 0.
    failures_official = True
    groups = {
        "acc": "loose and strict accuracy",
        "rouge": "ROUGE-1, ROUGE-2 and ROUGE-L",
        "bleurt": "BLEURT",
        "judge": "the verdicts of an LLM judge",
        "evidence": "recall and precision of the evidence pages that were read",
    }
    default_groups = ("acc", "rouge")
    groupings = {
        "category": "category",
        "type": "type of answer",
        "evidence": "number of evidence documents",
    }
    options = (
        Option(
            "lemmatizer",
            "The lemmatizer of the accuracy. Only spacy is official.",
            str,
            "auto",
            ("auto", "spacy", "simplemma"),
            groups=("acc",),
        ),
        Option("only_score_answered", "Average only over the answered questions.", bool, False),
        Option(
            "bleurt_model",
            "A name on the Hub, or a folder. Default: QABENCH_BLEURT_MODEL, or BLEURT-20.",
            groups=("bleurt",),
        ),
        Option(
            "judge_model",
            "The judge's model. Default: FANOUTQA_JUDGE_MODEL, or gpt-4o-2024-11-20.",
            groups=("judge",),
        ),
        Option(
            "judge_base_url",
            "An OpenAI-compatible server for the judge, or huggingface. Default: FANOUTQA_OPENAI_API_BASE, or OpenAI.",
            metavar="URL",
            secret=True,
            groups=("judge",),
        ),
        Option(
            "judge_prompt",
            "The judge's prompt: official, qabench, auto, or a file.",
            str,
            "auto",
            groups=("judge",),
        ),
        Option(
            "judge_max_calls",
            "The maximum number of calls to the judge; 0 only estimates them.",
            int,
            groups=("judge",),
        ),
        Option(
            "judge",
            'More options of the judge, as JSON: {"timeout": 60, "concurrency": 4, "retries": 2, "llm_cache_key": "x", '
            '"prices": [2.5, 10], "parameters": {...}}. Prices are per million prompt and reply tokens.',
            metavar="JSON",
            secret=True,
            groups=("judge",),
        ),
        Option(
            "evidence_k",
            "How many pages of each question count, from the first. Default: all.",
            int,
            groups=("evidence",),
        ),
    )
    leaderboards = Leaderboards(
        # The answers of test are not public, so its scores cannot be computed.
        dict.fromkeys(("dev", "dev_nov23"), ("acc", "rouge", "bleurt", "judge"))
    )
    needs = (
        Need(
            "loose and strict accuracy",
            "pip install 'qabench[spacy]' && python -m spacy download en_core_web_sm",
            packages=("spacy", "en_core_web_sm"),
        ),
        Need("ROUGE"),
        Need(
            "BLEURT",
            "pip install 'qabench[bleurt]'",
            packages=("torch", "transformers", "sentencepiece"),
        ),
        Need(
            "LLM judge",
            "pip install 'qabench[judge]'; qabench fetch fanoutqa; set the key",
            packages=("openai",),
            files=("fanoutqa/eval/llm.py",),
            variables=("FANOUTQA_OPENAI_API_KEY",),
        ),
        Need(
            "the questions of dev",
            "qabench fetch fanoutqa",
            files=("fanoutqa/data/fanout-final-dev.json",),
        ),
    )
    prediction_fields = ("answer", "pages")
    commands = ("submit",)

    def read_rows(self, path: Path, config: str) -> Iterable[Row]:
        """Return the rows of a config, or of a user's file in the format of the authors' files.

        Raises:
            DataError: the file is not in the format or has no questions, or an id is repeated.
        """
        from qabench.loading_scripts.fanoutqa.parse import read_rows

        rows = list(read_rows(path, config))
        if not rows:
            raise DataError(f"{path} has no questions")
        ids = [row["id"] for row in rows]
        if len(set(ids)) < len(ids):
            counts = Counter(ids)
            repeated = next(id for id in ids if counts[id] > 1)
            raise DataError(
                f"{path}: the id {repeated!r} occurs more than once; ids must be unique"
            )
        return rows

    def question(self, row: Row) -> Question:
        """Return a row as a question, grouped by categories, evidence pages and type of answer."""
        groups = {
            "category": list(row["categories"]),
            "evidence": [f"{len(row['necessary_evidence'])} pages"],
        }
        answer = None
        if "answer" in row:
            # The answers to test questions are not public.
            answer = reference_of(row)
            groups["type"] = [type_name(answer)]
        return Question(row["id"], row["question"], text_of(answer), groups, row)

    def why_unscored(self, config: str | None) -> str | None:
        """Return the reason for test configs: the answers to test questions are not public."""
        if "test" in dataset_table(self.name).config(config).splits:
            return NOT_PUBLIC
        return None

    def groups_of(self, loaded: Questions, predictions: Predictions) -> Sequence[str]:
        """Return the default groups for answers, and "evidence" for pages."""
        fields = predictions.fields
        # A user's own questions may name no pages.
        questions_have_pages = all(question.row["necessary_evidence"] for question in loaded.rows)
        if "pages" not in fields or not questions_have_pages:
            return self.default_groups
        if "answer" not in fields:
            return ("evidence",)
        return (*self.default_groups, "evidence")

    def join(
        self,
        loaded: Questions,
        predictions: Predictions,
        groups: Sequence[str],
        options: Mapping[str, Any],
    ) -> Joined:
        """Join predictions to all questions, or with ``only_score_answered`` to answered questions.

        Raises:
            InputError: the questions have no public answers, which every group but "evidence"
                needs, or there are predictions for unknown questions.
        """
        if set(groups) != {"evidence"}:
            _check_public(loaded)
        joined = super().join(loaded, predictions, groups, options)
        if not options.get("only_score_answered"):
            return joined
        if joined.unknown:
            raise InputError(
                f"{len(joined.unknown)} predictions of {predictions.path} are for unknown questions: "
                f"{some(joined.unknown)}. With "
                "only_score_answered the official scorer fails on them: remove the lines"
            )
        # As in the official scorer, scores are in the order of the answers. The last digit of a
        # mean depends on the order.
        answered = {row.id: row for row in predictions.rows if row.id in joined.ids}
        return replace(joined, ids=list(answered), rows=list(answered.values()))

    def scorer(self, groups: Sequence[str], **options: Any) -> FanOutQAScorer:
        """Return the scorer for these groups of scores."""
        from qabench.benchmarks.fanoutqa.scorer import scorer_of

        return scorer_of(groups, **options)

    def asking(self, **arguments: Any) -> FanOutQAAsking:
        """Return how a model is asked closed-book."""
        from qabench.benchmarks.fanoutqa.prompts import asking_closed_book

        return asking_closed_book(**arguments)

    def tasks(self) -> Mapping[str, Callable[..., Any]]:
        """Return the functions that plan the three settings."""
        from qabench.benchmarks.fanoutqa import tasks

        return {
            "fanoutqa_closed_book": tasks.fanoutqa_closed_book,
            "fanoutqa_open_book": tasks.fanoutqa_open_book,
            "fanoutqa_evidence_provided": tasks.fanoutqa_evidence_provided,
        }

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of the signatures' fields."""
        from qabench.benchmarks.fanoutqa.official import DECLARATIONS

        return DECLARATIONS

    def read(self, source: str | Path | Sequence[Row], **options: Any) -> Predictions:
        """Read predictions, or a TREC run whose documents are page ids, URLs or titles."""
        if not isinstance(source, str | Path):
            return read_predictions(source, self.prediction_fields)
        data, name = read_bytes(source)
        columns = data.lstrip().partition(b"\n")[0].split()
        # A line of a TREC run has six columns, the second of which is the constant Q0.
        if len(columns) == 6 and columns[1] == b"Q0":
            return parse_run(data, name, "pages")
        return parse_predictions(data, name, self.prediction_fields)

    def logs(self) -> FanOutQALogs:
        """Return what is specific to FanOutQA in logs of runs."""
        from qabench.benchmarks.fanoutqa.logs import FanOutQALogs

        return FanOutQALogs(self)

    def judging(self) -> FanOutQAJudging:
        """Return the object for the judge's verdicts on answers."""
        from qabench.benchmarks.fanoutqa.judging import FanOutQAJudging

        return FanOutQAJudging(self)

    def numbers(self) -> FanOutQANumbers:
        """Return the object that computes the numbers of FanOutQA's data and leaderboard."""
        from qabench.benchmarks.fanoutqa.numbers import FanOutQANumbers

        return FanOutQANumbers(self)

    def report(self) -> Report:
        """Return what FanOutQA adds to reports: the scores in the format of the authors' scorer."""
        from qabench.benchmarks.fanoutqa.details import DETAILS
        from qabench.benchmarks.fanoutqa.scorer import official_shape
        from qabench.benchmarks.report import Report

        def shape(evaluation: Evaluation) -> Json:
            return official_shape([record.scores for record in evaluation.records])

        return Report(details=DETAILS, official_shape=shape)

    def questions(self, config: str | None) -> dict[str, tuple[str, Row]]:
        """Return the text and the row of each question by its id. The answers must be public."""
        _check_public(self.load(config))
        return super().questions(config)

    def evidence_pages(self, config: str | None) -> Iterable[Json]:
        """Return the Wikipedia pages that a config's questions need."""
        pages: list[Json] = []
        for question in self.load(config).rows:
            pages += question.row["necessary_evidence"]
        return pages


BENCHMARK = FanOutQABenchmark()


def _check_public(questions: Questions) -> None:
    """Raise InputError if the answers are not public."""
    if all("answer" in question.row for question in questions.rows):
        return
    table = dataset_table("fanoutqa")
    public = []
    for config in table.configs.values():
        if "test" not in config.splits:
            public.append(config.name)
    raise InputError(
        f"the answers of {table.title} {questions.config} are not public; its authors score submissions for their "
        f"leaderboard. Configs with answers: {', '.join(public)}"
    )
