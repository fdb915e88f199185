"""FanOutQA: multi-hop, multi-document questions over Wikipedia."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from qabench.answers import UNANSWERED
from qabench.benchmarks.base import Benchmark, Need, Option, Setting
from qabench.data.predictions import (
    parse_predictions,
    parse_run,
    read_bytes,
    read_predictions,
    source_name,
)
from qabench.errors import SourceError
from qabench.evaluation.metric import Metric, evidence_metrics, mean_in_order
from qabench.loading_scripts import source_table

if TYPE_CHECKING:
    from qabench.benchmarks.reproduction import Reproduction
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation, Record
    from qabench.loading_scripts.published import PublishedScore

_KINDS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
_PARTS = {
    "fscore": ("F", "F-measure"),
    "precision": ("precision", "Precision"),
    "recall": ("recall", "Recall"),
}
_average = partial(Metric, mean=mean_in_order)
_graded = partial(_average, graded=True)


def _rouge(part: str) -> list[Metric]:
    short, name = _PARTS[part]
    about = f"{name} of {{}} between answer and reference."
    return [
        _average(
            f"{kind}.{part}",
            f"{title} {short}",
            about.format(title),
            "rouge",
            main=part == "fscore",
        )
        for kind, title in _KINDS.items()
    ]


class FanOutQA(Benchmark):
    """Multi-hop, multi-document questions over Wikipedia."""

    name = "fanoutqa"
    title = "FanOutQA"
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
    generation_fields = MappingProxyType({"claude_max_tokens": "max_tokens"})
    part = "category"
    metrics = (
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
        _average("bleurt", "BLEURT", "Learned similarity between answer and reference.", "bleurt"),
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
        *evidence_metrics("necessary"),
    )
    headline = ("acc.loose",)
    failures_official = True
    families = {
        "acc": "loose and strict accuracy",
        "rouge": "ROUGE-1, ROUGE-2 and ROUGE-L",
        "bleurt": "BLEURT",
        "judge": "the verdicts of an LLM judge",
        "evidence": "recall and precision of the evidence pages that were read",
    }
    default_families = ("acc", "rouge")
    groupings = {
        "category": "category",
        "type": "type of answer",
        "evidence": "number of evidence documents",
        "hops": "number of hops",
    }
    options = (
        Option(
            "lemmatizer",
            "The lemmatizer of the accuracy; only spacy is official.",
            str,
            "auto",
            ("auto", "spacy", "simplemma"),
        ),
        Option("only_score_answered", "Average only over the answered questions.", bool, False),
        Option(
            "ignore_unknown",
            "With only_score_answered, ignore answers to unknown questions.",
            bool,
            False,
        ),
        Option(
            "bleurt_model", "A BLEURT model: a name on the Hub or a folder. Default: BLEURT-20."
        ),
        Option(
            "judge_model", "The judge's model. Default: FANOUTQA_JUDGE_MODEL, or gpt-4o-2024-11-20."
        ),
        Option(
            "judge_base_url",
            "An OpenAI-compatible server for the judge, or huggingface. Default: OpenAI.",
            metavar="URL",
        ),
        Option(
            "judge_prompt", "The judge's prompt: official, qabench, auto, or a file.", str, "auto"
        ),
        Option(
            "judge_max_calls",
            "The maximum number of calls to the judge; 0 only estimates them.",
            int,
        ),
        Option(
            "judge_prices",
            "The judge's prices per million prompt and reply tokens, such as 2.5,10.",
            metavar="IN,OUT",
        ),
        Option(
            "judge",
            'More options of the judge, as JSON: {"timeout": 60, "concurrency": 4, "retries": 2, "llm_cache_key": "x", '
            '"parameters": {...}}.',
            metavar="JSON",
        ),
        Option(
            "evidence_k",
            "Count only the first pages of each question, this many. Default: all.",
            int,
        ),
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
    model_fields = ("judge", "judge_endpoint", "judge_prompt", "judge_cache_key", "bleurt")

    def evaluate(self, config: str | None, predictions: Predictions, **options: Any) -> Evaluation:
        """Score predictions; see ``qabench.benchmarks.fanoutqa.evaluate.evaluate``."""
        from qabench.benchmarks.fanoutqa.evaluate import evaluate

        return evaluate(self, config, predictions, **options)

    def read(self, source: str | Path | Sequence[Mapping[str, Any]], **options: Any) -> Predictions:
        """Read predictions, also TREC runs, whose document ids are page ids, URLs, or titles with underscores."""
        if not isinstance(source, str | Path):
            return read_predictions(source, self.prediction_fields)
        data, name = read_bytes(source), source_name(source)
        columns = data.lstrip().partition(b"\n")[0].split()
        if len(columns) == 6 and columns[1] == b"Q0":
            return parse_run(data, name, "pages")
        return parse_predictions(data, name, self.prediction_fields)

    def prediction(self, record: Record) -> dict[str, Any]:
        """Return the record's answer, and the pages that were read for it."""
        read = {"pages": record.detail["evidence_read"]} if "evidence_read" in record.detail else {}
        return {"answer": record.answer} | read

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the run's lemmatizer, and its judge with the replies in the cache only."""
        lemmatizer = run.arguments.get("lemmatizer")
        options: dict[str, Any] = {
            "families": [
                name for name in ("acc", "rouge", "judge", "evidence") if name in run.signatures
            ]
        }
        if lemmatizer in ("auto", "spacy", "simplemma"):
            options["lemmatizer"] = lemmatizer
        judge = run.arguments.get("judge") or {}
        if "judge" in options["families"]:
            allowed = ("model", "base_url", "parameters", "llm_cache_key")
            options["judge"] = {name: judge[name] for name in allowed if name in judge} | {
                "max_calls": 0
            }
            # A log may not name a file to read.
            options["judge_prompt"] = "qabench" if judge.get("prompt") == "qabench" else "auto"
        return options

    def rescored_prediction(self, record: Record) -> dict[str, Any]:
        """Return the answer; without one, the question is unanswered, while null is the answer "None" in a file."""
        return self.prediction(record) | {
            "answer": UNANSWERED if record.answer is None else record.answer
        }

    def official_shape(self, evaluation: Evaluation) -> dict[str, Any]:
        """Return the scores in the format of the authors' scorer."""
        from qabench.benchmarks.fanoutqa.evaluate import official_shape

        return official_shape([record.scores for record in evaluation.records])

    def questions(self, config: str | None) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """Return the text and the row of each question by its id; the answers must be public."""
        from qabench.benchmarks.fanoutqa.questions import read_questions, with_answers

        return {
            row["id"]: (row["question"], row) for row in with_answers(read_questions(config)).rows
        }

    def evidence_pages(self, config: str | None) -> Iterable[dict[str, Any]]:
        """Return the Wikipedia pages that a config's questions need."""
        from qabench.benchmarks.fanoutqa.questions import read_questions

        return [page for row in read_questions(config).rows for page in row["necessary_evidence"]]

    def published(self) -> list[PublishedScore]:
        """Return the scores of the authors' leaderboard."""
        from qabench.loading_scripts.fanoutqa.leaderboard import published_scores

        return published_scores()

    def reproduce(self) -> Reproduction:
        """Compare the statistics of the data, and check that leaderboard scores are means over all test questions."""
        from qabench.benchmarks.published import published
        from qabench.benchmarks.reproduction import Check, data_checks
        from qabench.loading_scripts.fanoutqa.stats import PUBLISHED_QUESTIONS

        reproduction = data_checks("fanoutqa", self.statistics)
        try:
            # A question scores 0 or 1, so the mean times the number of test questions is an
            # integer.
            scores = [
                score for score in published("fanoutqa") if score.metric in ("acc.strict", "gpt")
            ]
        except SourceError as error:
            reproduction.notes.append(f"leaderboard: not computed. {error}")
        else:
            questions = PUBLISHED_QUESTIONS["test"]
            multiples = sum(
                abs(score.value * questions - round(score.value * questions)) < 1e-6
                for score in scores
            )
            name = f"leaderboard: strict accuracies and judge scores that are a multiple of 1/{questions}"
            reproduction.checks.append(Check(name, len(scores), multiples))
        paths = [path.split("/") for path in source_table("fanoutqa")]
        settings = Counter(
            path[1] for path in paths if len(path) == 3 and path[1].endswith("-generations")
        )
        reproduction.notes.append(
            "The scores of the leaderboard are not computed: the reference answers of the test questions are not "
            f"public. The authors publish the answers of {max(settings.values())} systems ({settings.total()} files in "
            "leaderboard-submissions/*-generations); they score submissions, which `qabench fanoutqa submit` prepares."
        )
        return reproduction


BENCHMARK = FanOutQA()
