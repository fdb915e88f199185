"""fastbook-benchmark: retrieval questions over seven chapters of the fastai book."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.declared import Leaderboards, Need, Option, Setting
from qabench.data.prediction_files import PARQUET, read_bytes, table_delimiter
from qabench.data.predictions import known_names, parse_predictions
from qabench.data.rows import Row
from qabench.errors import InputError, unknown_name
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.scoring import Question, Questions

if TYPE_CHECKING:
    from qabench.benchmarks.fastbook.logs import FastbookLogs
    from qabench.benchmarks.fastbook.numbers import FastbookNumbers
    from qabench.benchmarks.fastbook.scorer import FastbookScorer
    from qabench.benchmarks.report import Report
    from qabench.data.predictions import Predictions
    from qabench.evaluation.signature import Declaration


_ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}


def _rouge() -> list[ScoreSpec]:
    specs = []
    for kind, title in _ROUGE.items():
        spec = ScoreSpec(
            f"{kind}.fscore",
            f"{title} F",
            f"F-measure of {title} between the model's answer and the gold answer.",
            "rouge",
            official=False,
        )
        specs.append(spec)
    return specs


def _mean(values: Sequence[float]) -> float:
    from qabench.benchmarks.fastbook.answer_components import mean_of

    return mean_of(values)


class FastbookBenchmark(Benchmark):
    """Retrieval questions over seven chapters of the fastai book."""

    name = "fastbook"
    title = "fastbook-benchmark"
    custom_config = "custom"
    settings = (Setting("rag", "fastbook_rag", "The question and the passages retrieved for it."),)
    part = "chapters"
    scores = (
        ScoreSpec(
            "mrr@k",
            "MRR@k",
            "1 / rank at which all components of the answer are retrieved; 0 if this rank is above k.",
            "retrieval",
            mean=_mean,
        ),
        ScoreSpec(
            "recall@k",
            "Recall@k",
            "Share of the answer's components retrieved in the top k.",
            "retrieval",
            mean=_mean,
        ),
        *_rouge(),
    )
    headline = ("recall@10", "recall")
    groups = {
        "retrieval": "Answer Component MRR@k and Recall@k",
        "rouge": "ROUGE F-measures of the answers; not a score of the benchmark's authors",
    }
    default_groups = ("retrieval",)
    groupings = {"chapter": "chapter"}
    leaderboards = Leaderboards(
        {"questions": ("retrieval",)}, settings=("rag bm25", "rag fts", "rag dense", "rag colbert")
    )
    needs = (
        Need("MRR@k and Recall@k"),
        Need("the questions", "qabench fetch fastbook", files=("fastbook-benchmark.json",)),
    )
    options = (
        Option(
            "k",
            "The cutoffs, separated by commas.",
            default="10",
            metavar="N,N",
            groups=("retrieval",),
            fields=("passages",),
        ),
        Option(
            "corpus",
            'The texts of the documents of a TREC run: JSONL, one {"docno", "text"} per line.',
            Path,
            method="read",
        ),
    )
    prediction_fields = ("passages", "answer")
    commands = ("retrieve",)

    def read_rows(self, path: Path, config: str) -> Iterable[Row]:
        """Return the questions of a config, or of a file like ``fastbook-benchmark.json``."""
        from qabench.loading_scripts.fastbook.parse import parse_question, read_questions

        return map(parse_question, read_questions(path))

    def question(self, row: Row) -> Question:
        """Return a row as a question. The reference is the gold answer."""
        groups = {"chapter": [str(row["chapter"])]}
        return Question(row["id"], row["question_text"], row["gold_standard_answer"], groups, row)

    def load(self, config: str | None, file: Path | None = None) -> Questions:
        """Return the questions of a config, or of a custom file."""
        if config not in (None, "questions", "sample"):
            raise unknown_name("fastbook has no questions in", config, ("questions", "sample"))
        return super().load(config, file)

    def groups_of(self, loaded: Questions, predictions: Predictions) -> Sequence[str]:
        """Return "retrieval", or "rouge" for predictions that are only answers."""
        fields = predictions.fields
        if "answer" in fields and "passages" not in fields:
            return ("rouge",)
        return self.default_groups

    def scorer(self, groups: Sequence[str], **options: Any) -> FastbookScorer:
        """Return the scorer for these groups of scores."""
        from qabench.benchmarks.fastbook.scorer import FastbookScorer

        return FastbookScorer(groups, **options)

    def tasks(self) -> Mapping[str, Callable[..., Any]]:
        """Return the function that plans a run."""
        from qabench.benchmarks.fastbook.tasks import fastbook_rag

        return {"fastbook_rag": fastbook_rag}

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of the signatures' fields."""
        from qabench.benchmarks.fastbook.official import DECLARATIONS

        return DECLARATIONS

    def read(
        self, source: str | Path | Sequence[Row], corpus: Path | None = None, **options: Any
    ) -> Predictions:
        """Read predictions with "passages" or "answer", or a TREC run with its corpus."""
        if not isinstance(source, str | Path):
            return super().read(source)
        from qabench.benchmarks.fastbook.runs import parse_corpus, parse_run_with_texts, with_lists

        data, name = read_bytes(source)
        field_names = known_names(self.prediction_fields)
        is_table = corpus is None and table_delimiter(data, name, field_names) is not None
        # A TREC run begins with the id of a query, so a file that begins like JSON is not a run.
        if is_table or data.startswith(PARQUET) or data.lstrip()[:1] in (b"[", b"{", b""):
            predictions = parse_predictions(data, name, self.prediction_fields)
            if is_table:
                return with_lists(predictions)
            return predictions
        if corpus is None:
            raise InputError(
                f"{name} is not JSON. If it is a TREC run, also give the corpus that was searched (--corpus FILE, one "
                '{"docno", "text"} per line)'
            )
        return parse_run_with_texts(data, name, parse_corpus(*read_bytes(corpus)))

    def logs(self) -> FastbookLogs:
        """Return what is specific to fastbook in logs of runs."""
        from qabench.benchmarks.fastbook.logs import FastbookLogs

        return FastbookLogs(self)

    def numbers(self) -> FastbookNumbers:
        """Return the object that computes statistics of the data, and published scores again."""
        from qabench.benchmarks.fastbook.numbers import FastbookNumbers

        return FastbookNumbers(self)

    def report(self) -> Report:
        """Return what fastbook adds to reports: the scores at each cutoff."""
        from qabench.benchmarks.fastbook.details import DETAILS
        from qabench.benchmarks.fastbook.scorer import sections
        from qabench.benchmarks.report import Report

        return Report(sections=sections, details=DETAILS)


BENCHMARK = FastbookBenchmark()
