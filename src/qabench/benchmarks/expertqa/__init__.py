"""ExpertQA: expert questions, answers of six systems, and claim-level annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark, Need, Option, Setting
from qabench.benchmarks.expertqa.metrics import FAMILIES, METRICS

if TYPE_CHECKING:
    from qabench.benchmarks.reproduction import Reproduction
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.official import Declaration
    from qabench.io.tables import Table

_PASSAGES = ("ranker", "encoder", "chunk_size", "overlap")
_CORPUS = (
    "-T corpus=FILE.jsonl with passages in the column 'text' (with -T ranker=dense also the extra dense); or "
    "--retriever lucene:DIR, opensearch:URL/INDEX or elasticsearch:URL/INDEX."
)
_SEARCH = (
    "-T search=searxng and QABENCH_SEARXNG_URL; or -T search=google, CUSTOM_SEARCH_API_KEY and CUSTOM_SEARCH_CX; or "
    "-T search=FILE.toml. The extra web; and the extra dense, unless -T ranker=bm25 or -T ranker=api."
)


class ExpertQA(Benchmark):
    """Expert questions, answers of six systems, and claim-level annotations."""

    name = "expertqa"
    title = "ExpertQA"
    settings = (
        Setting(
            "closed",
            "expertqa",
            "The question alone; citations from memory.",
            {"method": "closed"},
            without=(*_PASSAGES, "retriever", "corpus", "index", "search", "k"),
        ),
        Setting(
            "retrieve-read",
            "expertqa",
            "The question and the best passages of a corpus.",
            {"method": "retrieve-read"},
            requires=_CORPUS,
            without=("search",),
        ),
        Setting(
            "retrieve-read-web",
            "expertqa",
            "The question and the best passages of the web pages that a search engine finds for it.",
            {"method": "retrieve-read-web"},
            requires=_SEARCH,
            without=("retriever", "corpus", "index"),
        ),
        Setting(
            "post-hoc",
            "expertqa",
            "As closed; each claim gets its best passage of a corpus.",
            {"method": "post-hoc"},
            requires=_CORPUS,
            without=("search", "k"),
        ),
        Setting(
            "post-hoc-web",
            "expertqa",
            "As closed; each claim gets its best passage of the web pages that a search engine finds for the claim.",
            {"method": "post-hoc-web"},
            requires=_SEARCH,
            without=("retriever", "corpus", "index", "k"),
        ),
    )
    retriever_setting = "retrieve-read"
    part = "fields"
    metrics = METRICS
    headline = ("autoais_macro", "autoais_agreement.accuracy", "rougeL", "fact_score", "evidence")
    families = {
        "rouge": "ROUGE between answer and reference answer.",
        "autoais": "AutoAIS: the share of claims that their evidence entails, from labels of the claims.",
        "autoais_agreement": "Agreement of labels of claims with the experts, on the annotated claims.",
        "fact_score": "Mean fact score of claims.",
        "fact_score_agreement": "Agreement of fact scores with the experts, on the annotated claims.",
    }
    default_families = FAMILIES
    groupings = {"field": "field", "question type": "type of question", "system": "system"}
    needs = (
        Need("ROUGE and agreement with experts"),
        Need("AutoAIS labels", "pip install 'qabench[autoais]'", packages=("torch", "transformers", "sentencepiece")),
        Need(
            "claims",
            "pip install 'qabench[spacy]' && python -m spacy download en_core_web_sm",
            packages=("spacy", "en_core_web_sm"),
        ),
        Need("the prompts of runs", "qabench fetch expertqa", files=("prompts/qa_prompt.txt",)),
    )
    model_fields = ("labels",)
    options = (
        Option(
            "split", "A split of the config. Default: test, if it has one.", choices=("train", "validation", "test")
        ),
        Option(
            "unlabeled",
            "How a claim that counts but has no label is treated: as N (official), or left out.",
            default="N",
            choices=("N", "exclude"),
        ),
    )
    prediction_fields = ("answer", "claims")
    commands = ("claims", "attribute", "facts", "faithfulness")

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of each signature's fields, by the signature's name."""
        from qabench.benchmarks.expertqa.official import DECLARATIONS

        return DECLARATIONS

    def evaluate(self, config: str | None, predictions: Predictions, **options: Any) -> Evaluation:
        """Score predictions; see ``qabench.benchmarks.expertqa.predictions.evaluate``."""
        from qabench.benchmarks.expertqa.predictions import evaluate

        return evaluate(self, config, predictions, **options)

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the run's split, and how claims without a label are treated in runs."""
        return {"split": run.arguments.get("split"), "unlabeled": "exclude"}

    def prediction(self, record: Record) -> dict[str, Any]:
        """Return the fields of a prediction that would get the record's scores."""
        from qabench.benchmarks.expertqa.prediction import prediction

        return prediction(record)

    def statistics(self, config: str, splits: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Table]:
        """Return the tables of ``qabench stats``."""
        from qabench.loading_scripts.expertqa.stats import tables

        return tables(config, splits)

    def reproduce(self) -> Reproduction:
        """Recompute the published numbers."""
        from qabench.benchmarks.expertqa.reproduce import reproduce

        return reproduce()


BENCHMARK = ExpertQA()
