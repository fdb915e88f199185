"""The official values of the fields of ExpertQA's signatures, some of them from ``official.json``.

``qabench.evaluation.signature`` compares signatures with these values.

Source: the scripts in the authors' repository. The modules with the formulas name them. The same
declarations apply to metrics (whose signatures have neither a config nor an answering system),
files of predictions, and runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from qabench.benchmarks.expertqa import agreement, factscore
from qabench.benchmarks.expertqa.agreement import scored_part
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.data.sources import available
from qabench.evaluation.signature import Declaration, Field, digest, read_declarations
from qabench.loading_scripts import dataset_table, pinned_digests

LFQA_CONFIGS = ("lfqa_random", "lfqa_domain")
ANNOTATED_CONFIGS = ("main", "all_evidences", "autoais", "factscores")


def _digest(config: str, fields: tuple[str, ...]) -> str | None:
    """Return the digest that metrics compute of a config's references, or None without its file.

    The digest covers the given fields of all claims, or the reference answers if no fields are
    given. The split is test if the config has it.
    """
    splits = dataset_table("expertqa").config(config).splits
    (path,) = splits.get("test") or splits["train"]
    if not available(dataset_table("expertqa").sources[path]):
        return None
    questions = load_questions(config).rows
    if not fields:
        return digest(question.reference for question in questions)
    rows = [question.row for question in questions]
    return digest(scored_part(rows, fields))


def _references(configs: tuple[str, ...], fields: tuple[str, ...] = ()) -> Field:
    """Declare that a metric's references are official if they are those of a whole config."""
    digest_of = cache(_digest)
    return Field(
        lambda value: any(value == digest_of(config, fields) for config in configs),
        f"references: not the references of all questions of {' or '.join(configs)} (of the files on this machine)",
        absent=True,
    )


# Labels and fact scores are part of predictions. Which model made them is only stated there and
# cannot be checked, so they are never official.
_DECLARED = read_declarations(
    Path(__file__).with_name("official.json"),
    {"data": pinned_digests("expertqa"), "config": ANNOTATED_CONFIGS},
)
_DATA, _SYSTEM, _LABELS = (_DECLARED[name] for name in ("data", "system", "labels"))
_ANNOTATED = _DATA | _DECLARED["annotated"]
_AUTOAIS = {"references": _references(ANNOTATED_CONFIGS, agreement.FIELDS), **_LABELS}

DECLARATIONS: Mapping[str, Declaration] = {
    "expertqa_lfqa": {
        **_DATA,
        **_SYSTEM,
        "references": _references(LFQA_CONFIGS),
        "config": Field(LFQA_CONFIGS, absent=True),
        **_DECLARED["lfqa"],
    },
    "expertqa_autoais": _ANNOTATED | _SYSTEM | _AUTOAIS | _DECLARED["counted"],
    "expertqa_autoais_agreement": _ANNOTATED | _AUTOAIS,
    "expertqa_fact_score": _ANNOTATED | _SYSTEM | _DECLARED["facts"],
    "expertqa_factscore_agreement": {
        **_ANNOTATED,
        "references": _references(ANNOTATED_CONFIGS, factscore.FIELDS),
        **_DECLARED["threshold"],
        **_DECLARED["facts"],
    },
}
