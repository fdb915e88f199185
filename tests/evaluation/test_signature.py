"""Every option that changes a score or request changes a signature; every changed field deviates,
or has a reason.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.model import GenerateConfig
from scripted_model import scripted

from qabench import evaluate_predictions
from qabench.adapters.inspect_ai.replies import WITHOUT_EFFECT
from qabench.benchmarks import benchmark, benchmark_names
from qabench.benchmarks.felm import BENCHMARK
from qabench.evaluation.signature import deviations, signature
from qabench.loading_scripts import FOLDER, dataset_table
from qabench.runs.log import read_run
from qabench.runs.task_options import task_options

SELECTS = "selects questions: fewer than all are a deviation of their own"
DATA = "changes the questions, so the fields config and data"
NO_CALLS = "an address, file or model of an engine: the field corpus, ranker or model; tested with the engine"
REASONS = {
    **dict.fromkeys(("ids", "category", "domains", "fields", "chapters"), SELECTS),
    **dict.fromkeys(("config", "questions", "split"), DATA),
    **dict.fromkeys(("retriever", "corpus", "search", "ranker", "encoder", "k", "wiki"), NO_CALLS),
    "scores": "changes which scores there are",
    "judge": "the judge's model, endpoint and prompt are fields of its score",
    "lemmatizer": "the field lemmatizer names the one that was found",
    "context_length": "part of the model that is evaluated",
    "max_turns": "the field turns, where it cuts; test_turns",
    "tokenizer": "the field tokenizer names it; tested with the settings that fill the window",
    "find": "needs an index; the field find",
    "retriever_model": "needs PyTorch; the field retriever_model",
    "official_quirks": "the fields shown and suffix, where it has an effect",
    "reply_format": "read by the scorer: the field replies",
    "prompt": "without the authors' files, the only prompt is qabench's",
    "protocol": "without the authors' files, the only protocol is qabench's",
}
# (benchmark, setting, option) -> another value than the default
CHANGED: Mapping[tuple[str, str, str], Any] = {
    ("fanoutqa", "closed-book", "lemmatizer"): "simplemma",
    ("felm", "raw", "claims"): True,
    ("felm", "raw", "reply_format"): "vicuna",
    ("felm", "cot-cons", "num_cons"): 2,
    ("fastbook", "rag", "method"): "fts",
    ("fastbook", "rag", "query"): "keywords",
    ("fastbook", "rag", "k"): 5,
}
UNCHANGED = {"fail_on_refusal": "it never reaches the model", "num_choices": "tasks read the first choice"}


def signed(name: str, setting: str, folder: Path, **options: Any) -> dict[str, str]:
    chosen = benchmark(name).setting(setting)
    generation = {key: options.pop(key) for key in list(options) if key in GenerateConfig.model_fields}
    arguments = {**chosen.arguments, "config": "sample", **options}
    if "prompt" in {option.name for option in task_options(benchmark(name), chosen)}:
        arguments.setdefault("prompt", "qabench")
    (log,) = inspect_eval(
        f"qabench/{chosen.task}", model=scripted(lambda messages: "Answer: 1"), task_args=arguments, limit=1,
        log_dir=str(folder), display="none", **generation,
    )  # fmt: skip
    assert log.status == "success", log.error
    return read_run(log.location).signatures


def test_every_option_is_changed_or_has_a_reason() -> None:
    for name in benchmark_names():
        for setting in benchmark(name).settings:
            for option in task_options(benchmark(name), setting):
                changed = {key[2] for key in CHANGED if key[0] == name}
                explained = {*changed, *REASONS, benchmark(name).part}
                assert option.name in explained, (name, setting.name, option.name)
                assert option.about and "see " not in option.about and "`" not in option.about, (name, option)


@pytest.mark.parametrize("key", CHANGED, ids="-".join)
def test_another_value_has_another_signature(key: tuple[str, str, str], tmp_path: Path) -> None:
    name, setting, option = key
    base = {"lemmatizer": "auto"} if option == "lemmatizer" else {}
    before = signed(name, setting, tmp_path, **base)
    after = signed(name, setting, tmp_path, **{option: CHANGED[key]})
    if option == "lemmatizer":  # "auto" is simplemma without spaCy's model
        assert "lemmatizer:simplemma" in after["acc"]
    else:
        assert all(before[group] != after[group] for group in before), (before, after)


@pytest.mark.parametrize(
    ("name", "setting"), [("fanoutqa", "closed-book"), ("felm", "raw"), ("expertqa", "closed"), ("fastbook", "rag")]
)
def test_generation_options_change_the_signature(name: str, setting: str, tmp_path: Path) -> None:
    before = signed(name, setting, tmp_path)
    for option, value in {"temperature": 0.7, "max_tokens": 77, "top_p": 0.5, "system_message": "Be brief."}.items():
        after = signed(name, setting, tmp_path, **{option: value})
        groups = [group for group in before if group not in ("run", "retrieval")]
        assert groups and all(before[group] != after[group] for group in groups), (option, before, after)


def test_every_generation_option_is_recorded_or_has_a_reason() -> None:
    changing = set(GenerateConfig.model_fields) - WITHOUT_EFFECT - set(UNCHANGED)
    assert {"temperature", "max_tokens", "top_p", "top_k", "stop_seqs", "extra_body", "fallback_models"} <= changing


# Options of `qabench score`: (benchmark, option) -> predictions of the sample and another value
# than the default.
CAREFUL = FOLDER / "fanoutqa/sample/generations/careful.jsonl"
REPLIES = [{"id": question.id, "reply": "Answer: 1"} for question in BENCHMARK.load("sample").rows]
SCORE_CHANGED: Mapping[tuple[str, str], tuple[Any, Any]] = {
    ("fanoutqa", "only_score_answered"): (CAREFUL, True),
    ("fanoutqa", "evidence_k"): ([{"id": "463f5c17d453c3d3", "pages": ["Saturn"]}], 1),
    ("felm", "reply_format"): (REPLIES, "vicuna"),
    ("felm", "evaluator"): (REPLIES, "vicuna-33b"),
}
SCORE_REASONS = {
    "lemmatizer": REASONS["lemmatizer"],
    "bleurt_model": "the field model of BLEURT's signature; tests/models",
    **dict.fromkeys(("judge_model", "judge_base_url", "judge_prompt"), "fields of the judge's signature; test_judge"),
    "judge": "parameters and cache key are fields of the judge's signature; test_judge",
    "judge_max_calls": "questions without a verdict are a deviation of their own",
    "unlabeled": "the field unlabeled; test_expertqa_predictions",
    "split": DATA,
    "corpus": "the texts of a run's documents: their scores, as any predictions",
    "k": "names the scores",
}


def test_every_option_of_score_is_changed_or_has_a_reason() -> None:
    for name in benchmark_names():
        for option in benchmark(name).options:
            assert (name, option.name) in SCORE_CHANGED or option.name in SCORE_REASONS, (name, option.name)


@pytest.mark.parametrize("key", SCORE_CHANGED, ids="-".join)
def test_another_value_of_score_has_another_signature(key: tuple[str, str]) -> None:
    name, option = key
    predictions, value = SCORE_CHANGED[key]
    before = evaluate_predictions(name, "sample", predictions).signatures
    after = evaluate_predictions(name, "sample", predictions, **{option: value}).signatures
    assert before != after


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
    "fastbook": {"data": dataset_table("fastbook").file_digest(OFFICIAL_FILE), "repair": "ftfy-6.3.1"},
}  # fmt: skip
IRRELEVANT = {
    "fanoutqa": {"benchmark", "setting", "top_p", "top_k", "seed", "judge_cache_key", "context_length"}
    | {"reasoning_effort", "reasoning_tokens", "effort"}
    | {"references", "questions"},  # with "data", from which they follow
    "expertqa": {"benchmark", "model", "method", "passages", "seed", "bootstrap_seed"},
    "fastbook": {"chunker", "corpus", "method", "query", "model"},
}
UNOFFICIAL = {"fastbook_rouge"}  # whose other fields do not matter
SCORES = [(name, score) for name in VALUES for score in benchmark(name).declarations()]


@pytest.mark.parametrize(("name", "score"), [pair for pair in SCORES if pair[1] not in UNOFFICIAL])
def test_each_changed_field_deviates_or_is_irrelevant(name: str, score: str) -> None:
    declaration = benchmark(name).declarations()[score]
    irrelevant = IRRELEVANT[name]
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
