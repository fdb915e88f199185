"""The official values of the fields of FanOutQA's signatures.

Official are the scores of the package ``fanoutqa`` (1.1) with the versions of packages that it
allows, and the prompts and parameters of the paper's experiments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from qabench.evaluation.signature import IRRELEVANT, Declaration, Field
from qabench.loading_scripts import dataset_table, file_digest
from qabench.loading_scripts.fanoutqa.parse import EARLIER_JUDGE, JUDGE
from qabench.text.lemmatizers import BY_NAME, OFFICIAL_MODEL, RELEASES

# The labels of the authors' prompts (``Prompt.label``). A test compares them with the pinned files.
JUDGE_PROMPT = "official-b60545761d84"
PROMPTS = {
    "closed-book": "official-421a2040e293",
    "open-book": "official-c8965c122d16",
    "open-book-gpt-3.5": "official-31ac787565ec",
    "open-book-text": "official-820758faab47",
    "evidence-provided": "official-1562cf34c9bf",
}

# Digests of the columns answer and question in the dataset's order. The answers of test are not
# public.
REFERENCES = {"6a912635232c": "dev", "91639e6d3916": "dev_nov23"}
QUESTIONS = {"1ced282b176c": "dev", "5c67b68ac0f2": "dev_nov23"}

AS_KANI = ", counted as kani counts"
"""The end of the name of a token counter that counts a message to an OpenAI model as the authors' chat library does."""


def _versions(pattern: str, low: tuple[int, ...], high: tuple[int, ...]) -> Callable[[str], bool]:
    """Return whether a value contains a version in ``low <= version < high`` (the first group)."""

    def accepts(value: str) -> bool:
        match = re.fullmatch(pattern, value)
        return match is not None and low <= _numbers(match[1]) < high

    return accepts


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number or 0) for number in version.split("."))


def _is_official_data(value: str) -> bool:
    table = dataset_table("fanoutqa")
    files = [file for name in _CONFIGS for (file,) in table.config(name).splits.values()]
    return value in {file_digest("fanoutqa", file) for file in files}


def _prompt_sentence(what: str) -> Callable[[str], str]:
    def says(value: str) -> str:
        name = "qabench's own" if value.startswith("qabench-") else value
        return f"{what}: {name}, not the authors'"

    return says


_CONFIGS = ("dev", "dev_nov23", "test", "test_nov23")
_ZERO = ("0", "0.0")
_NO_EFFECT = ("top_p", "top_k", "seed")  # at temperature 0
_SPACY_MODEL = re.compile(
    rf"{OFFICIAL_MODEL}-([\d.]+)\+spacy-([\d.]+)\+([0-9a-f]{{12}})({re.escape(BY_NAME)})?"
)


def _is_lemmatizer(value: str) -> bool:
    """Tell whether a lemmatizer is a release of the official model, by its digest, or a later one, by its version."""
    match = _SPACY_MODEL.fullmatch(value)
    if match is None or not (3, 7, 2) <= _numbers(match[2]) < (4,):
        return False
    if match[1] in RELEASES:
        return match[3] == RELEASES[match[1]]
    return match[4] is not None and max(map(_numbers, RELEASES)) < _numbers(match[1]) < (4,)


# part of what is evaluated
_MODEL = ("reasoning_effort", "reasoning_tokens", "effort", "context_length")

_COMMON: Declaration = {
    "benchmark": IRRELEVANT,  # the same in all signatures
    "config": Field(_CONFIGS, "config: {value} instead of the benchmark's questions", absent=True),
    "data": Field(
        _is_official_data,
        "data: the questions are not those of the authors' repository",
        absent=True,
    ),
    # With "data", they follow from the data and the number of questions asked.
    "references": Field(
        tuple(REFERENCES), "references: not those of dev or dev_nov23", absent=True, unless="data"
    ),
    "questions": Field(
        tuple(QUESTIONS), "questions: not those of dev or dev_nov23", absent=True, unless="data"
    ),
    "only_score_answered": Field(
        ("no",), "unanswered questions are left out instead of counting 0", absent=True
    ),
    "setting": IRRELEVANT,  # part of the score's name
    "prompt": Field(tuple(PROMPTS.values()), _prompt_sentence("prompt"), absent=True),
    "protocol": Field(("official",), "protocol: {value}'s own, not the authors'", absent=True),
    "search": Field(
        ("tools", "text"), "search: {value} instead of tool calls or <search> tags", absent=True
    ),
    "tokenizer": Field(
        lambda value: value.endswith(AS_KANI),
        "room in the context window was measured by {value}, not by OpenAI's tokenizer as in the authors' chat library",
        absent=True,
    ),
    "wikipedia": Field(
        ("dated",), "Wikipedia: {value} instead of the pages at the dataset's epoch", absent=True
    ),
    "markdownify": Field(
        _versions(r"([\d.]+)", (0, 11, 6), (0, 12)),
        "markdownify: {value} instead of 0.11.6",
        absent=True,
    ),
    "retriever": Field(
        _is_lemmatizer, "retriever: lemmas by {value} instead of en_core_web_sm", absent=True
    ),
    "temperature": Field(_ZERO, "temperature: {value} instead of 0", absent=True),
    "max_tokens": Field((), "max tokens: {value}, where the authors set no limit", absent=True),
    "claude_max_tokens": Field(
        ("512",),
        "max tokens: {value} instead of 512, the limit of the authors' engine",
        absent=True,
    ),
    "frequency_penalty": Field(_ZERO, absent=True),
    "presence_penalty": Field(_ZERO, absent=True),
    "best_of": Field(("1",), absent=True),
    "stop_seqs": Field((), "stop sequences: {value}, where the authors set none", absent=True),
    "system_message": Field((), "a system message was added", absent=True),
    "logit_bias": Field((), "a logit bias was set", absent=True),
    "extra_body": Field((), "additional parameters were sent to the model's server", absent=True),
    **dict.fromkeys((*_NO_EFFECT, *_MODEL), IRRELEVANT),
}
_ACCURACY: Declaration = {
    "normalizer": Field(
        _versions(r"fanoutqa-1\+ftfy-([\d.]+)", (6, 1, 3), (7, 0, 1)),
        "normalizer: {value} instead of ftfy 6.1.3 to 7",
    ),
    "lemmatizer": Field(
        _is_lemmatizer, "lemmatizer: {value} instead of en_core_web_sm with spaCy 3.7.2 or later"
    ),
}
_ROUGE: Declaration = {
    "rouge": Field(
        # rouge-score-rs equals rouge-score to the last bit. A test compares them.
        lambda value: (
            re.fullmatch(r"rouge-score-0\.1\.\d+|rouge-score-rs-[\d.]+", value) is not None
        ),
        "ROUGE: {value} instead of rouge-score 0.1.2",
    ),
    "stemmer": Field(("porter",)),
}
# A commit of the converted weights on the Hub, or a folder, whose name says so.
_BLEURT_20 = re.compile(
    r"transformers-[^/]+/lucadiliello/BLEURT-20@[0-9a-f]+"
    r"|(transformers|bleurt)-[^/]+/(.*/)?BLEURT-20@[0-9a-f]+ \(a folder, identified by its name\)"
)
_BLEURT: Declaration = {
    "bleurt": Field(
        lambda value: _BLEURT_20.fullmatch(value) is not None,
        "BLEURT: {value} instead of BLEURT-20",
    )
}
_JUDGE: Declaration = {
    # The authors' judge since 2025-02-28, and the one before, which PyPI's fanoutqa 1.1.1 still
    # has. Scores are ranked among the published results of the same judge.
    "judge": Field((JUDGE, EARLIER_JUDGE), "judge: {value} instead of {official}"),
    "judge_endpoint": Field(
        ("https://api.openai.com/v1",), "judge: a model at {value} instead of OpenAI's"
    ),
    "judge_prompt": Field((JUDGE_PROMPT,), _prompt_sentence("judge prompt")),
    "judge_temperature": Field(_ZERO, "judge temperature: {value} instead of 0"),
    "judge_seed": Field(("31415",), "judge seed: {value} instead of {official}"),
    "judge_cache_key": IRRELEVANT,  # only separates cached replies
}

DECLARATIONS: Mapping[str, Declaration] = {
    # The fields that all runs record, scored or not.
    "fanout_run": {
        **_COMMON,
        **{name: replace(_COMMON[name], absent=False) for name in ("prompt", "protocol")},
    },
    "fanout_acc": {**_COMMON, **_ACCURACY},
    "fanout_rouge": {**_COMMON, **_ROUGE},
    "fanout_bleurt": {**_COMMON, **_BLEURT},
    "fanout_judge": {**_COMMON, **_JUDGE},
    # Not a score of the authors: only the fields of the run can deviate from theirs. Its references
    # are pages.
    "fanout_evidence": {
        **_COMMON,
        "references": IRRELEVANT,
        "k": Field((), "evidence: only the first {value} pages count", absent=True),
    },
    # The metric fanoutqa has all of them. BLEURT and the judge are optional.
    "fanoutqa": {
        **{**_COMMON, **_ACCURACY, **_ROUGE},
        **{name: replace(field, absent=True) for name, field in {**_BLEURT, **_JUDGE}.items()},
    },
}
