"""Deviations of FanOutQA's signatures in sentences."""

from __future__ import annotations

import pytest

from qabench.benchmarks.fanoutqa.official import DECLARATIONS
from qabench.evaluation.signature import deviations, signature


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
    fields = {"normalizer": "fanoutqa-1+ftfy-6.3.1", "lemmatizer": "en_core_web_sm-3.8.0+spacy-3.8.18+1f0c2a3b"}
    (found,) = deviations(signature("fanout_acc", **fields | {field: value}), DECLARATIONS["fanout_acc"])
    assert found.startswith(said)
