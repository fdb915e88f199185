"""ExpertQA: expert questions, answers of six systems, and claim-level annotations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.declared import Leaderboards, Need, Option, Setting
from qabench.benchmarks.expertqa.scores import SCORES

if TYPE_CHECKING:
    from qabench.benchmarks.expertqa.answers import Answering
    from qabench.benchmarks.expertqa.judging import ExpertQAJudging
    from qabench.benchmarks.expertqa.logs import ExpertQALogs
    from qabench.benchmarks.expertqa.numbers import ExpertQANumbers
    from qabench.benchmarks.expertqa.scorer import ExpertqaScorer
    from qabench.benchmarks.report import Report
    from qabench.data.predictions import Predictions
    from qabench.evaluation.scoring import Questions
    from qabench.evaluation.signature import Declaration

# The NLTK data with which long evidence and claims are split into sentences.
PUNKT = "tokenizers/punkt_tab"
_PASSAGES = ("ranker", "encoder")
_CORPUS = (
    "-T corpus=FILE.jsonl with passages in the column 'text' (with -T ranker=dense also the extra dense); or "
    "-T retriever=lucene:DIR, opensearch:URL/INDEX or elasticsearch:URL/INDEX."
)
_SEARCH = (
    "-T search=searxng and QABENCH_SEARXNG_URL; or -T search=google, CUSTOM_SEARCH_API_KEY and CUSTOM_SEARCH_CX; or "
    "-T search=FILE.toml. The extra web; and the extra dense, unless -T ranker=bm25 or -T ranker=api."
)
# Maps a setting to what the model is given, what is required, and the arguments that are rejected
# because they have no effect.
_SETTINGS = {
    "closed": (
        "The question alone; citations from memory.",
        "",
        (*_PASSAGES, "retriever", "corpus", "search", "k"),
    ),
    "retrieve-read": ("The question and the best passages of a corpus.", _CORPUS, ("search",)),
    "retrieve-read-web": (
        "The question and the best passages of the web pages that a search engine finds for it.",
        _SEARCH,
        ("retriever", "corpus"),
    ),
    "post-hoc": (
        "As closed; each claim gets its best passage of a corpus.",
        _CORPUS,
        ("search", "k"),
    ),
    "post-hoc-web": (
        "As closed; each claim gets its best passage of the web pages that a search engine finds for the claim.",
        _SEARCH,
        ("retriever", "corpus", "k"),
    ),
}


def _settings() -> tuple[Setting, ...]:
    settings = []
    for name, (about, requires, without) in _SETTINGS.items():
        setting = Setting(
            name,
            "expertqa",
            about,
            {"method": name},
            requires,
            without,
            ("qabench/answer_with_citations",),
        )
        settings.append(setting)
    return tuple(settings)


class ExpertQABenchmark(Benchmark):
    """Expert questions, answers of six systems, and claim-level annotations."""

    name = "expertqa"
    title = "ExpertQA"
    settings = _settings()
    part = "fields"
    scores = SCORES
    headline = ("autoais_macro", "autoais_agreement.accuracy", "rougeL", "fact_score", "evidence")
    groups = {
        "rouge": "ROUGE between answer and reference answer.",
        "autoais": "AutoAIS: the share of claims that their evidence entails, from labels of the claims.",
        "autoais_agreement": "Agreement of labels of claims with the experts, on the annotated claims.",
        "fact_score": "Mean fact score of claims.",
        "fact_score_agreement": "Agreement of fact scores with the experts, on the annotated claims.",
    }
    default_groups = tuple(groups)
    groupings = {"field": "field", "question type": "type of question", "system": "system"}
    leaderboards = Leaderboards(
        {"main": ("autoais",), "lfqa_random": ("rouge",), "lfqa_domain": ("rouge",)}
    )
    needs = (
        Need("ROUGE and agreement with experts"),
        Need(
            "AutoAIS labels",
            "pip install 'qabench[autoais]' && python -m nltk.downloader punkt_tab",
            packages=("torch", "transformers", "sentencepiece", "nltk"),
            nltk_data=(PUNKT,),
        ),
        Need("claims", "pip install 'qabench[spacy]'", packages=("spacy",)),
        Need(
            "atomic claims of fact scores",
            "pip install 'qabench[spacy]' nltk && python -m spacy download en_core_web_sm && "
            "python -m nltk.downloader punkt_tab",
            packages=("spacy", "en_core_web_sm", "nltk"),
            nltk_data=(PUNKT,),
        ),
        Need("the prompts of runs", "qabench fetch expertqa", files=("prompts/qa_prompt.txt",)),
    )
    options = (
        Option(
            "split",
            "A split of the config. Default: test, if it has one.",
            choices=("train", "validation", "test"),
            method="load",
        ),
        Option(
            "unlabeled",
            "How a claim that counts but has no label is treated: as N (official), or left out.",
            default="N",
            choices=("N", "exclude"),
            groups=("autoais", "autoais_agreement"),
            fields=("claims",),
        ),
    )
    prediction_fields = ("answer", "claims")
    id_fields = ("id", "example_id")
    commands = ("claims", "attribute", "facts")

    def load(
        self, config: str | None, file: Path | None = None, split: str | None = None
    ) -> Questions:
        """Return the questions of a split."""
        from qabench.benchmarks.expertqa.questions import load_questions

        return load_questions(config, split, file)

    def load_for(
        self, predictions: Predictions, config: str | None, file: Path | None = None, **options: Any
    ) -> Questions:
        """Return the questions of a config, or the predictions if they contain a user's own claims.

        They do if the config is ``own``. If neither config nor split is named, they do if some
        claim has a label or a fact score, and no id is the id of a question of ExpertQA. With a
        ``file`` of questions, they never do.
        """
        from qabench.benchmarks.expertqa.own import OWN, are_own, own_questions

        is_own = False
        if file is None:
            is_unnamed = config is None and options.get("split") is None
            is_own = config == OWN or (is_unnamed and are_own(predictions))
        if is_own:
            return own_questions(predictions)
        return self.load(config, file, **options)

    def scorer(self, groups: Sequence[str], **options: Any) -> ExpertqaScorer:
        """Return the scorer for these groups of scores."""
        from qabench.benchmarks.expertqa.scorer import ExpertqaScorer

        return ExpertqaScorer(groups, **options)

    def asking(self, **arguments: Any) -> Answering:
        """Return how questions are answered."""
        from qabench.benchmarks.expertqa.answers import answering

        return answering(**arguments)

    def tasks(self) -> Mapping[str, Callable[..., Any]]:
        """Return the function that plans a run with any method."""
        from qabench.benchmarks.expertqa.tasks import expertqa

        return {"expertqa": expertqa}

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of the signatures' fields."""
        from qabench.benchmarks.expertqa.official import DECLARATIONS

        return DECLARATIONS

    def logs(self) -> ExpertQALogs:
        """Return what is specific to ExpertQA in logs of runs."""
        from qabench.benchmarks.expertqa.logs import ExpertQALogs

        return ExpertQALogs(self)

    def judging(self) -> ExpertQAJudging:
        """Return the object for a model's verdicts on claims and the experts' verdicts."""
        from qabench.benchmarks.expertqa.judging import ExpertQAJudging

        return ExpertQAJudging(self)

    def numbers(self) -> ExpertQANumbers:
        """Return the object that computes statistics of the data, and AutoAIS from its labels."""
        from qabench.benchmarks.expertqa.numbers import ExpertQANumbers

        return ExpertQANumbers(self)

    def report(self) -> Report:
        """Return how reports of ExpertQA show claims, passages and pages."""
        from qabench.benchmarks.expertqa.details import DETAILS
        from qabench.benchmarks.report import Report

        return Report(details=DETAILS)


BENCHMARK = ExpertQABenchmark()
