"""The official values of the fields of ExpertQA's signatures.

``qabench.evaluation.signature`` compares with them.

Source: the scripts of the authors' repository. See the formulas' modules. The same declarations
apply to the metrics (whose signatures do not have a config or an answering system), files of
predictions, and runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

from qabench.benchmarks.expertqa import agreement, factscore
from qabench.benchmarks.expertqa.agreement import scored_part
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.data.sources import available
from qabench.evaluation.signature import IRRELEVANT, Declaration, Field, digest
from qabench.loading_scripts import dataset_table, file_digest, source_table

LABELER = "google/t5_xxl_true_nli_mixture"
FACT_JUDGE, ATOMIC_MODEL = "gpt-3.5-turbo", "text-davinci-003"
LFQA_CONFIGS = ("lfqa_random", "lfqa_domain")
ANNOTATED_CONFIGS = ("main", "all_evidences", "autoais", "factscores")
_optional = partial(Field, absent=True)  # a field that only some signatures have


def _starts_with(*prefixes: str) -> Callable[[str], bool]:
    return lambda value: value.startswith(prefixes)


def _is_pinned(value: str) -> bool:
    """Tell whether a digest is of a file of the dataset."""
    configs = dataset_table("expertqa").configs.values()
    return any(
        value == file_digest("expertqa", path) for config in configs for path in config.files
    )


def _digest(config: str, fields: tuple[str, ...]) -> str | None:
    """Return the digest of a config's references as metrics have it, or None if its file is not on this machine.

    It covers these fields of claims. Without any, it is of the test split's reference answers.
    """
    splits = dataset_table("expertqa").config(config).splits
    (path,) = splits.get("test") or splits["train"]
    if not available(source_table("expertqa")[path]):
        return None
    rows = load_questions(config).rows
    if not fields:
        return digest(row.reference for row in rows)
    return digest(scored_part([row.row for row in rows], fields))


def _references(configs: tuple[str, ...], fields: tuple[str, ...] = ()) -> Field:
    """Declare that a metric's references are the references of a whole config."""
    digest_of = cache(_digest)
    return _optional(
        lambda value: any(value == digest_of(config, fields) for config in configs),
        f"references: not those of all questions of {' or '.join(configs)} (of the files on this machine)",
    )


_DATA: dict[str, Field] = {
    "data": _optional(_is_pinned, "data: not a file of the dataset (digest {value})"),
    "benchmark": IRRELEVANT,
}
_SYSTEM: dict[str, Field] = {
    "model": IRRELEVANT,
    "method": IRRELEVANT,
    "prompt": _optional(_starts_with("official-"), "prompt: {value}, not the authors'"),
    "protocol": _optional(("official",), "protocol: {value}, not the authors'"),
    "temperature": _optional(
        ("default", "1", "1.0"), "temperature: {value}; the authors sent none"
    ),
    "max_tokens": _optional(("2048",)),
    # the authors sampled without one, so every seed gives one of their possible results
    "seed": IRRELEVANT,
    "k": _optional(("5",), "{value} passages instead of {official}"),
    "ranker": _optional(("lucene-bm25",), "passages ranked by {value} instead of Lucene's BM25"),
    "corpus": _optional(("sphere",), "corpus: {value}; the authors' is Sphere"),
    "passages": IRRELEVANT,
    "sentences": _optional(
        _starts_with("spacy-"), "sentences split by {value} instead of spaCy's sentencizer"
    ),
    "web": _optional(("google",), "web search: {value} instead of Google"),
    "results": _optional(("10",), "{value} search results instead of {official}"),
    "pages": _optional(
        _starts_with("newspaper3k"), "web pages read with {value} instead of newspaper3k"
    ),
    "chunks": _optional(
        ("1000/200",), "web pages split into {value} characters instead of {official}"
    ),
    "page_ranker": _optional(
        ("text-embedding-ada-002",), "passages of web pages ranked by {value} instead of {official}"
    ),
}
_ANNOTATED = _DATA | {
    "config": _optional(
        ANNOTATED_CONFIGS,
        "config: {value}; the authors score all annotated answers (main or autoais)",
    ),
    "split": _optional(("train",), "split: {value}, a part of the annotated answers"),
}
# Labels and fact scores are parts of predictions, which only state where they come from: they are
# never official.
_LABELS = _optional(
    (), f"labels: {{value}}, which is not verified; the authors' are by {LABELER} in float32"
)
_FACT_SCORES = _optional(
    (),
    f"fact scores: {{value}}, which is not verified; the authors' verdicts are by {FACT_JUDGE} with their prompt, and "
    f"their atomic claims by {ATOMIC_MODEL} (withdrawn) with post-processing by en_core_web_sm",
)
_UNLABELED = Field(("N",), "claims without a label are left out")

DECLARATIONS: Mapping[str, Declaration] = {
    "expertqa_lfqa": _DATA
    | _SYSTEM
    | {
        "references": _references(LFQA_CONFIGS),
        "config": _optional(LFQA_CONFIGS),
        "split": _optional(("test",)),
        "rouge": Field(
            _starts_with("rouge-score-"), "ROUGE: {value} instead of the package rouge-score"
        ),
        "stemmer": Field(("none",)),
        "bootstrap": Field(("1000",), "{value} bootstrap samples instead of {official}"),
        # The authors do not set it, so every seed gives one of their possible results.
        "bootstrap_seed": IRRELEVANT,
    },
    "expertqa_autoais": _ANNOTATED
    | _SYSTEM
    | {
        "references": _references(ANNOTATED_CONFIGS, agreement.FIELDS),
        "unlabeled": _UNLABELED,
        "counted": _optional(
            ("annotated",),
            "claims counted: {value}; the authors count those that experts found completely supported and worth a "
            "citation",
        ),
        "labels": _LABELS,
    },
    "expertqa_autoais_agreement": _ANNOTATED
    | {
        "references": _references(ANNOTATED_CONFIGS, agreement.FIELDS),
        "unlabeled": _UNLABELED,
        "labels": _LABELS,
    },
    "expertqa_fact_score": _ANNOTATED | _SYSTEM | {"fact_scores": _FACT_SCORES},
    "expertqa_factscore_agreement": _ANNOTATED
    | {
        "references": _references(ANNOTATED_CONFIGS, factscore.FIELDS),
        "threshold": Field(("0.5",)),
        "fact_scores": _FACT_SCORES,
    },
}
