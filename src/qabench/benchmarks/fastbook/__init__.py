"""fastbook-benchmark: retrieval questions over seven chapters of the fastai book."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark, Leaderboards, Need, Option, Setting
from qabench.data.predictions import DELIMITERS, PARQUET, parse_predictions, read_bytes
from qabench.data.rows import Json, Row
from qabench.errors import InputError, unknown_name
from qabench.evaluation.records import MISSING
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.scoring import Messages, Question, Questions

if TYPE_CHECKING:
    from qabench.benchmarks.fastbook.scorer import FastbookScorer
    from qabench.benchmarks.reproduction import Reproduction
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.records import ExtraSection
    from qabench.evaluation.signature import Declaration


def _mean(values: Sequence[float]) -> float:
    from qabench.benchmarks.fastbook.answer_components import mean_of

    return mean_of(values)


class FastbookBenchmark(Benchmark):
    """Retrieval questions over seven chapters of the fastai book."""

    name = "fastbook"
    title = "fastbook-benchmark"
    groups_without_model = ("retrieval",)
    log_kinds = {
        "detail": {
            "passages": ([{"text": str}], None),
            "components": ([{"rank": int | None}], None),
            "k": int | None,
        },
        "arguments": {"k": int | None},
    }
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
        *(
            ScoreSpec(
                f"{kind}.fscore",
                f"{title} F",
                f"F-measure of {title} between the model's answer and the gold answer.",
                "rouge",
                official=False,
            )
            for kind, title in (("rouge1", "ROUGE-1"), ("rouge2", "ROUGE-2"), ("rougeL", "ROUGE-L"))
        ),
    )
    headline = ("recall@10", "recall")
    groups = {
        "retrieval": "Answer Component MRR@k and Recall@k",
        "rouge": "ROUGE F-measures of the answers; not a score of the benchmark's authors",
    }
    default_groups = ("retrieval",)
    counted_by = "chapter"
    groupings = {"chapter": "chapter"}
    leaderboards = Leaderboards(
        {"questions": ("retrieval",)}, settings=("rag bm25", "rag fts", "rag dense", "rag colbert")
    )
    needs = (
        Need("MRR@k and Recall@k"),
        Need("the questions", "qabench fetch fastbook", files=("fastbook-benchmark.json",)),
    )
    options = (
        Option("k", "The cutoffs, separated by commas.", default="10", metavar="N,N"),
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
        """Return the questions of a config, also from a file like ``fastbook-benchmark.json``."""
        from qabench.loading_scripts.fastbook.parse import parse_question, read_questions

        return map(parse_question, read_questions(path))

    def question(self, row: Row) -> Question:
        """Return a row as a question. The reference is the gold answer."""
        groups = {"chapter": [str(row["chapter"])]}
        return Question(row["id"], row["question_text"], row["gold_standard_answer"], groups, row)

    def load(self, config: str | None, file: Path | None = None) -> Questions:
        """Return the questions of a config, or of a custom file, which has the config "custom" in signatures."""
        if config not in (None, "questions", "sample"):
            raise unknown_name("fastbook has no questions in", config, ("questions", "sample"))
        loaded = super().load(config, file)
        return replace(loaded, config="custom") if file else loaded

    def groups_of(self, loaded: Questions, predictions: Predictions) -> Sequence[str]:
        """Return "retrieval", or "rouge" for predictions that are only answers."""
        fields = {name for row in predictions.rows for name in row.fields}
        return ("rouge",) if "answer" in fields and "passages" not in fields else self.default_groups

    def scorer(self, groups: Sequence[str], **options: Any) -> FastbookScorer:
        """Return the scorer of these groups of scores."""
        from qabench.benchmarks.fastbook.scorer import FastbookScorer

        return FastbookScorer(groups, **options)

    def tasks(self) -> Mapping[str, Callable[..., Any]]:
        """Return the Inspect task."""
        from qabench.benchmarks.fastbook.tasks import fastbook_rag

        return {"fastbook_rag": fastbook_rag}

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of the signatures' fields."""
        from qabench.benchmarks.fastbook.official import DECLARATIONS

        return DECLARATIONS

    def counts(self, row: Row) -> Mapping[str, int]:
        """Return what a row adds to the numbers of ``qabench stats``."""
        if "answer_context" not in row:
            return {"characters": len(row["text"])} if "text" in row else {"rows": 1}
        parts = row["answer_context"]
        return {
            "questions": 1,
            "answer components": len(parts),
            "answer components without context": sum(not part["context"] for part in parts),
            "explicit_context false": sum(not part["explicit_context"] for part in parts),
            "extraneous_answer true": sum(part["extraneous_answer"] for part in parts),
        }

    def read(
        self, source: str | Path | Sequence[Row], corpus: Path | None = None, **options: Any
    ) -> Predictions:
        """Read predictions with "passages" or "answer", or a TREC run and the corpus with its documents."""
        if not isinstance(source, str | Path):
            return super().read(source)
        data, name = read_bytes(source)
        is_table = corpus is None and Path(name).suffix.lower() in DELIMITERS
        if is_table or data.startswith(PARQUET) or data.lstrip()[:1] in (b"[", b"{", b""):
            return parse_predictions(data, name, self.prediction_fields)
        if corpus is None:
            raise InputError(
                f"{name} is not JSON. If it is a TREC run, also give the corpus that was searched (--corpus FILE, one "
                '{"docno", "text"} per line)'
            )
        from qabench.benchmarks.fastbook.runs import parse_corpus, parse_run_with_texts

        return parse_run_with_texts(data, name, parse_corpus(*read_bytes(corpus)))

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the run's groups of scores and its cutoff."""
        return super().rescoring_options(run) | {"k": run.arguments.get("k", 10)}

    def prediction(self, record: Record) -> Json:
        """Return {"answer", "passages"}: the model's answer, and the texts of the retrieved passages, best first."""
        passages = [passage["text"] for passage in record.detail.get("passages") or ()]
        # An empty list means that nothing was retrieved, which scores 0. No list means no retrieval.
        retrieved = "passages" in record.detail and record.status_of("retrieval") != MISSING
        return {"answer": record.answer} | ({"passages": passages} if retrieved else {})

    def first_messages(
        self, setting: Setting, arguments: Mapping[str, Any], prompt: str | None
    ) -> Callable[[Row, Record], Sequence[Messages]]:
        """Return how the message is rendered, with the passages in the record."""
        from qabench.benchmarks.fastbook.prompt import messages

        def render(row: Row, record: Record) -> Sequence[Messages]:
            texts = [passage["text"] for passage in record.detail.get("passages") or ()]
            return [messages(texts[: arguments.get("k") or None], row["question_text"])]

        return render

    def scored_replies(self, record: Record) -> list[str]:
        """Return the answer."""
        return [] if record.answer is None else [record.answer]

    def reproduce(self) -> Reproduction:
        """Recompute the published numbers."""
        from qabench.benchmarks.fastbook.reproduce import reproduce

        return reproduce(super().reproduce())

    def report_sections(self, evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
        """Return the scores at each cutoff, for labels and evaluations on one config."""
        from qabench.benchmarks.fastbook.scorer import sections

        return sections(evaluations)


BENCHMARK = FastbookBenchmark()
