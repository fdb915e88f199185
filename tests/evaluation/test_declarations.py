"""Another value of a field of a signature is a deviation, or it is irrelevant: FanOutQA, ExpertQA and fastbook."""

from typing import Any

import pytest

from qabench.benchmarks import benchmark
from qabench.evaluation.signature import deviations, signature
from qabench.loading_scripts import dataset_table, file_digest

SPACY = "en_core_web_sm-3.8.0+spacy-3.8.18+5477ed8d4ada"
((OFFICIAL_FILE,),) = dataset_table("fastbook").config("questions").splits.values()
# Official values of the fields whose declaration is a function.
VALUES: dict[str, dict[str, Any]] = {
    "fanoutqa": {
        "data": "b62a9797732c", "tokenizer": "the tokenizer of openai/gpt-4-0613, counted as kani counts",
        "markdownify": "0.11.6", "retriever": SPACY, "lemmatizer": SPACY, "normalizer": "fanoutqa-1+ftfy-6.3.1",
        "rouge": "rouge-score-0.1.2", "bleurt": "transformers-5.1.0/lucadiliello/BLEURT-20@0f1e2d3c",
    },
    "expertqa": {
        "data": "cc175f6fb1b0", "prompt": "official-1", "sentences": "spacy-3.8.18", "pages": "newspaper3k-0.2.8",
        "rouge": "rouge-score-0.1.2",
    },
    "fastbook": {"data": file_digest("fastbook", OFFICIAL_FILE), "repair": "ftfy-6.3.1"},
}  # fmt: skip
IRRELEVANT = {
    "fanoutqa": {"benchmark", "setting", "top_p", "top_k", "seed", "judge_cache_key", "context_length"}
    | {"reasoning_effort", "reasoning_tokens", "effort"}
    | {"references", "questions"},  # with "data", from which they follow
    "expertqa": {"benchmark", "model", "method", "passages", "seed", "bootstrap_seed"},
    "fastbook": {"chunker", "corpus", "method", "query", "model"},
}
# "counted" says whether the claims are the annotated ones.
IRRELEVANT_HERE = {"expertqa_evidence": {"config", "split"}, "expertqa_autoais": {"claims"}}
UNOFFICIAL = {"expertqa_faithfulness", "fastbook_rouge"}  # whose other fields do not matter
SCORES = [(name, score) for name in VALUES for score in benchmark(name).declarations()]


@pytest.mark.parametrize(("name", "score"), [pair for pair in SCORES if pair[1] not in UNOFFICIAL])
def test_each_changed_field_deviates_or_is_irrelevant(name: str, score: str) -> None:
    declaration = benchmark(name).declarations()[score]
    irrelevant = IRRELEVANT[name] | IRRELEVANT_HERE.get(score, set())
    fields: dict[str, Any] = dict.fromkeys(irrelevant & declaration.keys(), "x")
    for field, declared in declaration.items():
        if field in VALUES[name] or (isinstance(declared.official, tuple) and declared.official):
            fields[field] = VALUES[name].get(field) or declared.official[0]  # type: ignore[index]
    assert deviations(signature(score, **fields), declaration) == []
    if "lemmatizer" in fields:
        assert not declaration["lemmatizer"].accepts(SPACY.replace("3.8.18", "3.7.1"))
    for field in [*declaration, "never_declared"]:
        said = deviations(signature(score, **fields | {field: "something else"}), declaration)
        assert len(said) == (field not in irrelevant), (field, said)
