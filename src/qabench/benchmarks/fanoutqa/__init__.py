"""FanOutQA: multi-hop, multi-document questions over Wikipedia."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from qabench.answers import UNANSWERED, loads, text_of, type_name
from qabench.benchmarks.base import UNKNOWN_TEXT, Benchmark, Leaderboards, Need, Option, Setting
from qabench.data.predictions import parse_predictions, parse_run, read_bytes, read_predictions, some
from qabench.data.rows import Json, Row
from qabench.errors import DataError, InputError, SourceError
from qabench.evaluation.score_spec import ScoreSpec, mean_in_order
from qabench.evaluation.scoring import Messages, Question, Questions
from qabench.loading_scripts import dataset_table

if TYPE_CHECKING:
    from qabench.benchmarks.fanoutqa.prompts import FanOutQAAsking
    from qabench.benchmarks.fanoutqa.scorer import FanOutQAScorer
    from qabench.benchmarks.reproduction import Reproduction
    from qabench.data.predictions import Joined, Predictions
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.signature import Declaration
    from qabench.loading_scripts.published import PublishedScore

TEST_QUESTIONS = 724  # published by Zhu et al. 2024
_KINDS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
_PARTS = {
    "fscore": ("F", "F-measure"),
    "precision": ("precision", "Precision"),
    "recall": ("recall", "Recall"),
}
_average = partial(ScoreSpec, mean=mean_in_order)
_graded = partial(_average, graded=True)


def _rouge(part: str) -> list[ScoreSpec]:
    short, name = _PARTS[part]
    about = f"{name} of {{}} between answer and reference."
    return [
        _average(
            f"{kind}.{part}", f"{title} {short}", about.format(title), "rouge", main=part == "fscore"
        )
        for kind, title in _KINDS.items()
    ]


class FanOutQABenchmark(Benchmark):
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
        ),
    )
    headline = ("acc.loose",)
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
        ),
        Option("only_score_answered", "Average only over the answered questions.", bool, False),
        Option(
            "bleurt_model",
            "A name on the Hub, or a folder. Default: QABENCH_BLEURT_MODEL, or BLEURT-20.",
        ),
        Option("judge_model", "The judge's model. Default: FANOUTQA_JUDGE_MODEL, or gpt-4o-2024-11-20."),
        Option(
            "judge_base_url",
            "An OpenAI-compatible server for the judge, or huggingface. Default: FANOUTQA_OPENAI_API_BASE, or OpenAI.",
            metavar="URL",
            secret=True,
        ),
        Option("judge_prompt", "The judge's prompt: official, qabench, auto, or a file.", str, "auto"),
        Option(
            "judge_max_calls", "The maximum number of calls to the judge; 0 only estimates them.", int
        ),
        Option(
            "judge",
            'More options of the judge, as JSON: {"timeout": 60, "concurrency": 4, "retries": 2, "llm_cache_key": "x", '
            '"prices": [2.5, 10], "parameters": {...}}. Prices are per million prompt and reply tokens.',
            metavar="JSON",
            secret=True,
        ),
        Option(
            "evidence_k", "Count only the first pages of each question, this many. Default: all.", int
        ),
    )
    resume_hints = {
        "tokenizer": "-T tokenizer=FILE with the tokenizer of the log, or make the same one available",
        "retriever": "-T lemmatizer=, or the same spaCy model (QABENCH_SPACY_MODEL)",
        "wikipedia": "-T wiki=FILE, or the same Wikipedia in the environment",
        "markdownify": "the same version of markdownify",
    }
    leaderboards = Leaderboards(dict.fromkeys(("dev", "dev_nov23"), ("acc", "rouge", "bleurt", "judge")))
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
    log_kinds = {"detail": {"evidence_read": (list, None)}, "arguments": {"judge": (dict, None)}}

    def load(self, config: str | None, file: Path | None = None) -> Questions:
        """Return the questions of a config, or of a file, whose name then stands for the config."""
        questions = super().load(config, file)
        return replace(questions, config=f"file:{file.name}") if file else questions

    def read_rows(self, path: Path, config: str) -> Iterable[Row]:
        """Return the rows of a config, also from a file in the format of the authors' files."""
        return _rows(path, config, path.stat().st_mtime_ns)

    def question(self, row: Row) -> Question:
        """Return a row as a question with its groups.

        They are its categories, its number of evidence pages, and its answer's type. The
        answers to test questions are not public.
        """
        groups = {
            "category": list(row["categories"]),
            "evidence": [f"{len(row['necessary_evidence'])} pages"],
        }
        answer = None
        if "answer" in row:
            answer = loads(row["answer"])
            groups["type"] = [type_name(answer)]
        return Question(row["id"], row["question"], text_of(answer), groups, row)

    def groups_of(self, loaded: Questions, predictions: Predictions) -> Sequence[str]:
        """Return the default groups of answers, and "evidence" of pages."""
        fields = {name for row in predictions.rows for name in row.fields}
        has_evidence = "pages" in fields and all(
            question.row["necessary_evidence"] for question in loaded.rows
        )
        of_answers = self.default_groups if "answer" in fields or not has_evidence else ()
        return (*of_answers, "evidence") if has_evidence else of_answers

    def join(
        self,
        loaded: Questions,
        predictions: Predictions,
        groups: Sequence[str],
        options: Mapping[str, Any],
    ) -> Joined:
        """Join predictions to the questions, or with ``only_score_answered`` to those that have one.

        Raises:
            InputError: questions without public answers (which only "evidence" does not need),
                or predictions for other questions.
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
        # The official order is the order of the answers. The last digit of a mean depends on it.
        last = {row.id: row for row in predictions.rows if row.id in joined.ids}
        return replace(joined, ids=list(last), rows=list(last.values()))

    def scorer(self, groups: Sequence[str], **options: Any) -> FanOutQAScorer:
        """Return the scorer of these groups."""
        from qabench.benchmarks.fanoutqa.scorer import scorer_of

        return scorer_of(groups, **options)

    def asking(self, **arguments: Any) -> FanOutQAAsking:
        """Return how a model is asked closed-book."""
        from qabench.benchmarks.fanoutqa.prompts import asking_closed_book

        return asking_closed_book(**arguments)

    def tasks(self) -> Mapping[str, Callable[..., Any]]:
        """Return the Inspect tasks of the three settings."""
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

    def counts(self, row: Row) -> Mapping[str, int]:
        """Return what a row adds to the numbers of ``qabench stats``."""
        pages = row["necessary_evidence"]
        return {
            "questions": 1,
            "pages of evidence": len(pages),
            "pages without a revid": sum(page["revid"] is None for page in pages),
            "pages without a pageid": sum(page["pageid"] is None for page in pages),
        }

    def read(self, source: str | Path | Sequence[Row], **options: Any) -> Predictions:
        """Read predictions, also TREC runs, whose document ids are page ids, URLs, or titles with underscores."""
        if not isinstance(source, str | Path):
            return read_predictions(source, self.prediction_fields)
        data, name = read_bytes(source)
        columns = data.lstrip().partition(b"\n")[0].split()
        if len(columns) == 6 and columns[1] == b"Q0":
            return parse_run(data, name, "pages")
        return parse_predictions(data, name, self.prediction_fields)

    def prediction(self, record: Record) -> Json:
        """Return the record's answer, and the pages that were read for it."""
        read = (
            {"pages": record.detail["evidence_read"]}
            if record.detail.get("evidence_read") is not None
            else {}
        )
        return {"answer": record.answer} | read

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the run's lemmatizer, and its judge with the replies in the cache only."""
        lemmatizer = run.arguments.get("lemmatizer")
        options = super().rescoring_options(run)
        if "bleurt" in options["groups"]:  # which needs a model
            options["groups"].remove("bleurt")
        if lemmatizer in ("auto", "spacy", "simplemma"):
            options["lemmatizer"] = lemmatizer
        judge = run.arguments.get("judge") or {}
        if "judge" in options["groups"]:
            allowed = ("model", "base_url", "parameters", "llm_cache_key")
            options["judge"] = {name: judge[name] for name in allowed if name in judge} | {
                "max_calls": 0
            }
            # A log may not name a file to read.
            options["judge_prompt"] = "qabench" if judge.get("prompt") == "qabench" else "auto"
        return options

    def rescored_prediction(self, record: Record) -> Json:
        """Return the answer.

        Without one, the question is unanswered, while null is the answer "None" in a file.
        """
        return self.prediction(record) | {
            "answer": UNANSWERED if record.answer is None else record.answer
        }

    def first_messages(
        self, setting: Setting, arguments: Mapping[str, Any], prompt: str | None
    ) -> Callable[[Row, Record], Sequence[Messages]]:
        """Return how the first message is rendered: pages of the evidence are not known."""
        from qabench.benchmarks.fanoutqa import prompts
        from qabench.tasks.prompts import check_label, origin_of

        origin = origin_of(prompt, arguments)
        if setting.name == "closed-book":
            candidates = [prompts.closed_book(origin)]
        elif setting.name == "open-book":
            strings = prompts.open_book(origin)
            candidates = [strings.tools, strings.tools_gpt_35, strings.text]
        else:
            candidates = [prompts.evidence_provided(origin)[0]]
        check_label(prompt, [candidate.label for candidate in candidates])
        if prompt:
            candidates = [candidate for candidate in candidates if candidate.label == prompt]

        def render(row: Row, record: Record) -> Sequence[Messages]:
            values = {"question": row["question"], "documents": UNKNOWN_TEXT}
            messages = []
            for candidate in candidates:
                needed = {name: values[name] for name in candidate.fields()}
                messages.append(candidate.messages(**needed))
            return messages

        return render

    def scored_replies(self, record: Record) -> list[str]:
        """Return the answer."""
        return [] if record.answer is None else [record.answer]

    def conditions_of_model(
        self, setting: Setting, arguments: Mapping[str, Any], model: Any
    ) -> Mapping[str, str]:
        """Return what counts the tokens of the model's prompts, where pages fill them."""
        if setting.name == "closed-book":
            return {}
        from qabench.benchmarks.fanoutqa.window import token_counter
        from qabench.io.workers import run_sync

        return {"tokenizer": run_sync(token_counter(model, arguments.get("tokenizer"))).name}

    def official_shape(self, evaluation: Evaluation) -> Json:
        """Return the scores in the format of the authors' scorer."""
        from qabench.benchmarks.fanoutqa.scorer import official_shape

        return official_shape([record.scores for record in evaluation.records])

    def questions(self, config: str | None) -> dict[str, tuple[str, Row]]:
        """Return the text and the row of each question by its id.

        The answers must be public.
        """
        _check_public(self.load(config))
        return super().questions(config)

    def evidence_pages(self, config: str | None) -> Iterable[Json]:
        """Return the Wikipedia pages that a config's questions need."""
        return [
            page for question in self.load(config).rows for page in question.row["necessary_evidence"]
        ]

    def published(self) -> list[PublishedScore]:
        """Return the scores of the authors' leaderboard."""
        from qabench.loading_scripts.fanoutqa.leaderboard import published_scores

        return published_scores()

    def reproduce(self) -> Reproduction:
        """Compare the statistics of the data, and check that leaderboard scores are means over all test questions."""
        from qabench.benchmarks.reproduction import Check

        reproduction = super().reproduce()
        try:
            # A question scores 0 or 1, so the mean times the number of test questions is an
            # integer.
            scores = [score for score in self.published() if score.metric in ("acc.strict", "gpt")]
        except SourceError as error:
            reproduction.notes.append(f"leaderboard: not computed. {error}")
        else:
            multiples = sum(
                abs(score.value * TEST_QUESTIONS - round(score.value * TEST_QUESTIONS)) < 1e-6
                for score in scores
            )
            name = f"leaderboard: strict accuracies and judge scores that are a multiple of 1/{TEST_QUESTIONS}"
            reproduction.checks.append(Check(name, len(scores), multiples))
        reproduction.notes.append(
            "The scores of the leaderboard are not computed: the reference answers of the test questions are not "
            "public. The authors score submissions, which `qabench fanoutqa submit` prepares."
        )
        return reproduction


BENCHMARK = FanOutQABenchmark()


@lru_cache(maxsize=1)
def _rows(path: Path, config: str, modified: int) -> list[Json]:
    """Return the rows of a file, which is parsed once for all systems that are scored on it.

    Raises DataError if the file is not in the format or has no questions, or an id is repeated.
    """
    from qabench.loading_scripts.fanoutqa.parse import read_rows

    rows = list(read_rows(path, config))
    if not rows:
        raise DataError(f"{path} has no questions")
    for id, count in Counter(row["id"] for row in rows).items():
        if count > 1:
            raise DataError(f"{path}: the id {id!r} occurs more than once; ids must be unique")
    return rows


def _check_public(questions: Questions) -> None:
    """Raise InputError if the answers are not public."""
    if all("answer" in each.row for each in questions.rows):
        return
    table = dataset_table("fanoutqa")
    public = [config.name for config in table.configs.values() if "test" not in config.splits]
    raise InputError(
        f"the answers of {table.title} {questions.config} are not public; its authors score submissions for their "
        f"leaderboard. Configs with answers: {', '.join(public)}"
    )
