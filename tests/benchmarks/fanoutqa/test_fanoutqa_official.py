"""All fields of all signatures are declared, and another value is a deviation."""

from __future__ import annotations

import pytest

from qabench.benchmarks.fanoutqa.official import DECLARATIONS, JUDGE_PROMPT, PROMPTS
from qabench.benchmarks.fanoutqa.questions import read_questions
from qabench.errors import InputError
from qabench.evaluation.signature import deviations, signature

RUN = {
    "benchmark": "fanoutqa",
    "config": "dev",
    "data": "b62a9797732c",
    "references": "0123456789ab",
    "only_score_answered": False,
    "setting": "open-book",
    "prompt": PROMPTS["open-book"],
    "protocol": "official",
    "search": "tools",
    "tokenizer": "the tokenizer of openai/gpt-4-0613, counted as kani counts",
    "wikipedia": "dated",
    "markdownify": "0.11.6",
    "retriever": "en_core_web_sm-3.8.0+spacy-3.8.18+1f0c2a3b",
    "temperature": 0.0,
    "claude_max_tokens": 512,
    "top_p": 0.9,
    "top_k": 5,
    "seed": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "best_of": 1,
    "reasoning_effort": "high",
    "reasoning_tokens": 100,
    "effort": "high",
}
OWN = {
    "fanout_run": {},
    "fanout_acc": {
        "normalizer": "fanoutqa-1+ftfy-6.3.1",
        "lemmatizer": "en_core_web_sm-3.8.0+spacy-3.8.18+1f0c2a3b",
    },
    "fanout_evidence": {},
    "fanout_rouge": {"rouge": "rouge-score-0.1.2", "stemmer": "porter"},
    "fanout_bleurt": {"bleurt": "transformers-5.1.0/lucadiliello/BLEURT-20@0f1e2d3c"},
    "fanout_judge": {
        "judge": "gpt-4o-2024-11-20",
        "judge_endpoint": "https://api.openai.com/v1",
        "judge_prompt": JUDGE_PROMPT,
        "judge_temperature": 0,
        "judge_seed": 31415,
        "judge_cache_key": "system",
    },
}
OWN["fanoutqa"] = {name: value for fields in OWN.values() for name, value in fields.items()}
IRRELEVANT = {"benchmark", "references", "setting", "top_p", "top_k", "seed", "judge_cache_key"}
IRRELEVANT |= {"reasoning_effort", "reasoning_tokens", "effort"}


@pytest.mark.parametrize("score", OWN)
def test_each_field_deviates_or_is_irrelevant(score: str) -> None:
    fields = RUN | OWN[score]
    assert deviations(signature(score, **fields), DECLARATIONS[score]) == []
    for name in fields:
        said = deviations(signature(score, **fields | {name: "something else"}), DECLARATIONS[score])
        assert len(said) == (name not in IRRELEVANT), (name, said)
    for name in ("max_tokens", "stop_seqs", "system_message", "logit_bias", "extra_body", "never_declared"):
        assert len(deviations(signature(score, **fields, **{name: "x"}), DECLARATIONS[score])) == 1


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("prompt", "qabench-0123456789ab", "prompt: qabench's own, not the authors'"),
        ("lemmatizer", "en_proxy_sm-1+spacy-3.8.18+1f", "lemmatizer: en_proxy_sm-1+spacy-3.8.18+1f instead of en_"),
        ("lemmatizer", "en_core_web_sm-3.8.0+spacy-3.6.0+1f", "lemmatizer: en_core_web_sm-3.8.0+spacy-3.6.0"),
        ("tokenizer", "the tokenizer org/model", "room in the context window was measured by the tokenizer org/model"),
        ("data", "eb5884cb6b06", "data: the questions are not those of the authors' repository"),
    ],
)
def test_sentences(field: str, value: object, said: str) -> None:
    line = signature("fanout_acc", **RUN | OWN["fanout_acc"] | {field: value})
    (found,) = deviations(line, DECLARATIONS["fanout_acc"])
    assert found.startswith(said)


def test_the_digest_of_dev_is_official(mirror: object) -> None:
    assert RUN["data"] == read_questions("dev").data_digest


def test_the_leaderboard_has_no_questions() -> None:
    with pytest.raises(InputError, match="no questions in 'leaderboard'; allowed: dev, test, dev_nov23"):
        read_questions("leaderboard")
