"""The official values of the fields of FanOutQA's signatures.

Official scores are those of the package ``fanoutqa`` 1.1 with the package versions that it allows.
Official prompts and parameters are those of the paper's experiments. ``official.json`` has the
values that need no code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from qabench.evaluation.signature import Declaration, read_declarations
from qabench.loading_scripts import pinned_digests
from qabench.loading_scripts.fanoutqa.parse import EARLIER_JUDGE, JUDGE
from qabench.text.lemmatizers import OFFICIAL_MODEL, RELEASES

# The labels of the authors' prompts (``Prompt.label``). A test compares them with the pinned files.
PROMPTS = {
    "closed-book": "official-421a2040e293",
    "open-book": "official-c8965c122d16",
    "open-book-gpt-3.5": "official-31ac787565ec",
    "open-book-text": "official-820758faab47",
    "evidence-provided": "official-1562cf34c9bf",
}

AS_KANI = ", counted as kani counts"
"""The suffix of a token counter's name if it counts like kani, the authors' chat library."""


def _versions(pattern: str, low: tuple[int, ...], high: tuple[int, ...]) -> Callable[[str], bool]:
    """Return a check that a value has this pattern, with a version in [low, high) as first group."""

    def accepts(value: str) -> bool:
        match = re.fullmatch(pattern, value)
        return match is not None and low <= _numbers(match[1]) < high

    return accepts


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number or 0) for number in version.split("."))


def _prompt_sentence(name: str, value: str) -> str:
    prompt = value
    if value.startswith("qabench-"):
        prompt = "qabench's own"
    return f"{name.replace('_', ' ')}: {prompt}, not the authors'"


_CONFIGS = ("dev", "dev_nov23", "test", "test_nov23")
_SPACY_MODEL = re.compile(rf"{OFFICIAL_MODEL}-([\d.]+)\+spacy-([\d.]+)\+([0-9a-f]{{12}})")


def _is_lemmatizer(value: str) -> bool:
    """Tell whether a lemmatizer is a release of the official model with a known digest."""
    # Name and version are not enough, because any model can have them.
    match = _SPACY_MODEL.fullmatch(value)
    if match is None or not (3, 7, 2) <= _numbers(match[2]) < (4,):
        return False
    return match[3] == RELEASES.get(match[1])


# ``official.json`` declares some fields as irrelevant and does not say why: top_p, top_k and seed
# have no effect at temperature 0, and the others are part of the system that is evaluated.
_DECLARED = read_declarations(
    Path(__file__).with_name("official.json"),
    {
        "config": _CONFIGS,
        "data": pinned_digests("fanoutqa", *_CONFIGS),
        "prompt": tuple(PROMPTS.values()),
        "tokenizer": lambda value: value.endswith(AS_KANI),
        # The ranges of versions are those of the package's metadata: markdownify~=0.11.6,
        # ftfy>=6.1.3,<=7.0.0 and spacy>=3.7.2,<4.0.0.
        "markdownify": _versions(r"([\d.]+)", (0, 11, 6), (0, 12)),
        "retriever": _is_lemmatizer,
        "normalizer": _versions(r"fanoutqa-1\+ftfy-([\d.]+)", (6, 1, 3), (7, 0, 1)),
        "lemmatizer": _is_lemmatizer,
        "judge": (JUDGE, EARLIER_JUDGE),
    },
)
for _section, _name in (("common", "prompt"), ("judge", "judge_prompt")):
    _field = _DECLARED[_section][_name]
    _DECLARED[_section][_name] = replace(_field, says=partial(_prompt_sentence, _name))
_COMMON = _DECLARED["common"]
# Runs always record prompt and protocol, so in signatures of runs these fields must be present.
# Files of predictions have neither.
_RUN = dict(_COMMON)
for _name in ("prompt", "protocol"):
    _RUN[_name] = replace(_COMMON[_name], absent=False)
# In signatures of the metric fanoutqa, the fields of BLEURT and the judge may be absent, because
# the metric computes these scores only on request.
_OPTIONAL = {}
for _name, _field in (_DECLARED["bleurt"] | _DECLARED["judge"]).items():
    _OPTIONAL[_name] = replace(_field, absent=True)

DECLARATIONS: Mapping[str, Declaration] = {
    # All runs record these fields, even if they are not scored.
    "fanout_run": _RUN,
    "fanout_acc": _COMMON | _DECLARED["accuracy"],
    "fanout_rouge": _COMMON | _DECLARED["rouge"],
    "fanout_bleurt": _COMMON | _DECLARED["bleurt"],
    "fanout_judge": _COMMON | _DECLARED["judge"],
    # The authors have no such score, so only the fields of the run can deviate.
    "fanout_evidence": _COMMON | _DECLARED["evidence"],
    "fanoutqa": _COMMON | _DECLARED["accuracy"] | _DECLARED["rouge"] | _OPTIONAL,
}
