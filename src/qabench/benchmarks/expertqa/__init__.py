"""ExpertQA: expert questions, answers of six systems, and claim-level annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import truediv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.benchmarks.base import UNKNOWN_TEXT, Benchmark, Leaderboards, Need, Option, Setting
from qabench.data.rows import Json, Row
from qabench.evaluation.score_spec import ScoreSpec

if TYPE_CHECKING:
    from qabench.benchmarks.expertqa.answers import Answering
    from qabench.benchmarks.expertqa.scorer import ExpertqaScorer
    from qabench.benchmarks.reproduction import Reproduction
    from qabench.data.predictions import Predictions
    from qabench.evaluation import Evaluation, Record
    from qabench.evaluation.scoring import Messages, Questions
    from qabench.evaluation.signature import Declaration

PUNKT = "tokenizers/punkt_tab"  # splits sentences of long evidence and of claims
_PASSAGES = ("ranker", "encoder")
_CORPUS = (
    "-T corpus=FILE.jsonl with passages in the column 'text' (with -T ranker=dense also the extra dense); or "
    "-T retriever=lucene:DIR, opensearch:URL/INDEX or elasticsearch:URL/INDEX."
)
_SEARCH = (
    "-T search=searxng and QABENCH_SEARXNG_URL; or -T search=google, CUSTOM_SEARCH_API_KEY and CUSTOM_SEARCH_CX; or "
    "-T search=FILE.toml. The extra web; and the extra dense, unless -T ranker=bm25 or -T ranker=api."
)
_SETTINGS = {  # name -> what the model is given, what is required, and the arguments without effect
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
    "post-hoc": ("As closed; each claim gets its best passage of a corpus.", _CORPUS, ("search", "k")),
    "post-hoc-web": (
        "As closed; each claim gets its best passage of the web pages that a search engine finds for the claim.",
        _SEARCH,
        ("retriever", "corpus", "k"),
    ),
}


_MEASURES: dict[str, Callable[..., Any]] = {
    "precision": lambda tp, tn, fp, fn: tp / (tp + fp),
    "recall": lambda tp, tn, fp, fn: tp / (tp + fn),
    "F1": lambda tp, tn, fp, fn: 2 * tp / (2 * tp + fp + fn),
}


def _accuracy(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    return (tp + tn) / _total(tp, tn, fp, fn)


def _total(tp: float, tn: float, fp: float, fn: float) -> float:
    return tp + tn + fp + fn


def _numpy_mean(values: Sequence[float]) -> float:
    import numpy as np

    return float(np.mean(values))


def _ratio(name: str, title: str, about: str, columns: tuple[str, str], **options: Any) -> ScoreSpec:
    return ScoreSpec(
        name,
        title,
        about,
        columns=columns,
        unit="claims",
        partial=True,
        function=truediv,
        size=lambda part, whole: whole,
        item=truediv,
        **options,
    )


def _rouge(kind: str) -> ScoreSpec:
    title = kind.replace("rouge", "ROUGE-")
    about = (
        f"F-measure of {title} between answer and reference answer: the median over 1,000 bootstrap samples of the "
        "mean over questions, as in evaluate's metric rouge, with seed 0."
    )

    def median(values: Sequence[float]) -> float:
        from qabench.benchmarks.expertqa.lfqa import median_of_means

        return median_of_means(kind, values)

    return ScoreSpec(
        kind, title, about, "rouge", mean=median, item_title=title, main=kind != "rougeLsum"
    )


def _autoais(suffix: str, title: str, *abouts: str) -> tuple[ScoreSpec, ScoreSpec]:
    """Return AutoAIS as a mean over answers, and over all claims."""
    macro, micro, main = f"autoais_macro{suffix}", f"autoais_micro{suffix}", not suffix
    columns = (f"claims_supported{suffix}", f"claims_counted{suffix}")
    over_answers = ScoreSpec(
        macro,
        f"{title} (mean over answers)",
        abouts[0],
        "autoais",
        unit="answers",
        columns=(macro,),
        mean=_numpy_mean,
        graded=True,
        partial=True,
        item_title="Share of counted claims that are supported",
        main=main,
    )
    return over_answers, _ratio(
        micro, f"{title} (over all claims)", abouts[1], columns, group="autoais", main=main
    )


def _agreement(group: str, name: str, model_says: str, positive: str) -> list[ScoreSpec]:
    """Return accuracy, and precision, recall and F1 of both classes."""
    columns = tuple(f"{group}.{count}" for count in ("tp", "tn", "fp", "fn"))
    # Exchanging tp and tn, and fp and fn, makes the other class the positive one.
    inverse = tuple(columns[position] for position in (1, 0, 3, 2))
    options: dict[str, Any] = {
        "group": group,
        "unit": "claims",
        "size": _total,
        "item": _accuracy,
        "item_title": "Share of claims labeled as by the experts",
        "partial": True,
    }
    title = f"Agreement of {name}: accuracy"
    about = f"Share of claims for which {model_says} if and only if the experts chose {positive}."
    specs = [
        ScoreSpec(
            f"{group}.accuracy",
            title,
            about,
            columns=columns,
            function=_accuracy,
            graded=True,
            **options,
        )
    ]
    for key, label, counts in (
        (positive, positive, columns),
        (f"not_{positive}", f"not {positive}", inverse),
    ):
        specs += [
            ScoreSpec(
                f"{group}.{key}.{measure}".lower(),
                f"Agreement of {name}: {measure} of {label}",
                f"{measure[0].upper()}{measure[1:]} of the class {label} among the experts' labels.",
                columns=counts,
                function=function,
                main=measure == "F1",
                **options,
            )
            for measure, function in _MEASURES.items()
        ]
    return specs


_OF_OTHER_PAPERS = (  # name, column, group, title and description. See the module citations for the papers
    (
        "citation_recall",
        "citation_recall",
        "autoais",
        "Citation recall",
        "Mean over answers of the share of claims that their evidence entails, as in ALCE: a claim without "
        "evidence is not entailed.",
    ),
    (
        "citation_precision",
        "citation_precision",
        "autoais",
        "Citation precision",
        "Mean over answers of the share of pieces of evidence that an entailed claim needs, or that entail it "
        "alone, as in ALCE.",
    ),
    (
        "response_ratio",
        "responds",
        "fact_score",
        "Response ratio",
        "Share of answers that have atomic facts and do not abstain, as in FActScore.",
    ),
    (
        "facts_per_answer",
        "facts_per_answer",
        "fact_score",
        "Facts per answer",
        "Mean number of atomic facts of the answers that respond, as in FActScore.",
    ),
)

SCORES = (
    *_autoais(
        "",
        "AutoAIS",
        "Mean over answers of the share of counted claims that are entailed by their evidence.",
        "Share of all counted claims that are entailed by their evidence.",
    ),
    *_autoais(
        "_without_abstentions",
        "AutoAIS without abstaining answers",
        "Same as autoais_macro, without the answers that abstain.",
        "Same as autoais_micro, without the answers that abstain.",
    ),
    *_agreement("autoais_agreement", "AutoAIS", "the label is Y", "Complete"),
    *_agreement("fact_score_agreement", "fact score", "the fact score is at least 0.5", "Correct"),
    _ratio(
        "fact_score",
        "Fact score",
        "Mean over claims of the share of their atomic claims that a model finds true.",
        ("fact_score_sum", "claims_with_fact_score"),
        group="fact_score",
        graded=True,
        official=False,
    ),
    _ratio(
        "fact_score_readable",
        "Fact score of readable verdicts",
        "Same as fact_score, over the verdicts that say true or false. The authors count most others as true.",
        ("fact_score_readable_sum", "claims_with_fact_score_readable"),
        group="fact_score",
        graded=True,
        official=False,
    ),
    *map(_rouge, ("rouge1", "rouge2", "rougeL", "rougeLsum")),
    _ratio(
        "evidence",
        "Claims with evidence",
        "Share of claims that have evidence, whether or not it supports them.",
        ("claims_with_evidence", "claims"),
        group="autoais",
        official=False,
    ),
    ScoreSpec(
        "abstains",
        "Answers that abstain",
        "Share of answers that contain one of the authors' phrases of abstention, such as \"I don't know\".",
        "autoais",
        unit="answers",
        partial=True,
        higher_is_better=False,
        official=False,
        main=False,
    ),
    *(
        ScoreSpec(
            name,
            title,
            about,
            group,
            unit="answers",
            columns=(column,),
            partial=True,
            official=False,
            main=False,
        )
        for name, column, group, title, about in _OF_OTHER_PAPERS
    ),
)


class ExpertQABenchmark(Benchmark):
    """Expert questions, answers of six systems, and claim-level annotations."""

    name = "expertqa"
    title = "ExpertQA"
    settings = tuple(
        Setting(
            name,
            "expertqa",
            about,
            {"method": name},
            requires,
            without,
            ("qabench/answer_with_citations",),
        )
        for name, (about, requires, without) in _SETTINGS.items()
    )
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
    model_fields = ("labels",)
    log_kinds = {
        "detail": {
            "claims": ([{"text": str, "evidence": [str], "label": str | None}], None),
            "attribution": ([str], None),
        }
    }
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
        ),
    )
    prediction_fields = ("answer", "claims")
    id_fields = ("id", "example_id")
    commands = ("claims", "attribute", "facts")

    def load(self, config: str | None, file: Path | None = None, split: str | None = None) -> Questions:
        """Return the questions of a split (see ``qabench.benchmarks.expertqa.questions.load_questions``)."""
        from qabench.benchmarks.expertqa.questions import load_questions

        return load_questions(config, split, file)

    def load_for(
        self, predictions: Predictions, config: str | None, file: Path | None = None, **options: Any
    ) -> Questions:
        """Return the questions of a config, or the lines themselves.

        These are the questions of the config ``own``, and without a config if the lines have claims with
        labels or fact scores, and ids of no annotated question.
        """
        from qabench.benchmarks.expertqa.own import OWN, are_own, own_questions

        if config == OWN and file is None:
            return own_questions(predictions)
        if config is None and file is None and options.get("split") is None and are_own(predictions):
            return own_questions(predictions)
        return self.load(config, file, **options)

    def scorer(self, groups: Sequence[str], **options: Any) -> ExpertqaScorer:
        """Return the scorer of these groups of scores."""
        from qabench.benchmarks.expertqa.scorer import ExpertqaScorer

        return ExpertqaScorer(groups, **options)

    def asking(self, **arguments: Any) -> Answering:
        """Return how questions are answered."""
        from qabench.benchmarks.expertqa.answers import answering

        return answering(**arguments)

    def tasks(self) -> Mapping[str, Callable[..., Any]]:
        """Return the Inspect task of all methods."""
        from qabench.benchmarks.expertqa.tasks import expertqa

        return {"expertqa": expertqa}

    def declarations(self) -> Mapping[str, Declaration]:
        """Return the official values of the signatures' fields."""
        from qabench.benchmarks.expertqa.official import DECLARATIONS

        return DECLARATIONS

    def counts(self, row: Row) -> Mapping[str, int]:
        """Return what a row adds to the numbers of ``qabench stats``."""
        from qabench.loading_scripts.expertqa.parse import LABELS

        answers = row.get("answers", ())
        claims = [claim for answer in answers for claim in answer["claims"] or ()]
        counts = Counter(f"usefulness: {answer['usefulness']}" for answer in answers)
        for name in filter("usefulness".__ne__, LABELS):
            counts.update(f"{name}: {claim[name]}" for claim in claims)
        without_evidence = sum(not claim["evidence"] for claim in claims)
        return {
            "rows": 1,
            "answers": len(answers),
            "claims": len(claims),
            "claims without evidence": without_evidence,
            **counts,
        }

    def rescoring_options(self, run: Evaluation) -> dict[str, Any]:
        """Return the run's split, and how claims without a label are treated in runs."""
        return {"split": run.arguments.get("split"), "unlabeled": "exclude"}

    def first_messages(
        self, setting: Setting, arguments: Mapping[str, Any], prompt: str | None
    ) -> Callable[[Row, Record], Sequence[Messages]]:
        """Return how the first message is rendered: passages that the model was given are not known."""
        from qabench.benchmarks.expertqa.answers import prompt_text
        from qabench.tasks.prompts import check_label, origin_of

        template = prompt_text(setting.name, origin_of(prompt, arguments))
        check_label(prompt, [template.label])

        def render(row: Row, record: Record) -> Sequence[Messages]:
            values = {"question": row["question"], "field": row["field"] or ""}
            values |= {"context": UNKNOWN_TEXT, "passages": UNKNOWN_TEXT}
            return [template.messages(**{name: values[name] for name in template.fields()})]

        return render

    def prediction(self, record: Record) -> Json:
        """Return the answer.

        If any, its claims with evidence and labels, and what marks cite.
        """
        fields: dict[str, Any] = {"answer": record.answer}
        if claims := record.detail.get("claims"):
            fields["claims"] = [
                {"claim": claim["text"], "evidence": claim["evidence"], "label": claim.get("label")}
                for claim in claims
            ]
        if attribution := record.detail.get("attribution"):
            fields["attribution"] = list(attribution)
        return fields

    def rescored_prediction(self, record: Record) -> Json:
        """Return the prediction of a record of a run, whose answer was split into claims, perhaps none."""
        claims: Json = {} if record.answer is None else {"claims": []}
        return claims | self.prediction(record)

    def reproduce(self) -> Reproduction:
        """Recompute the published numbers."""
        from qabench.benchmarks.expertqa.reproduce import reproduce

        return reproduce(super().reproduce())


BENCHMARK = ExpertQABenchmark()
