"""The official scorer, the package ``fanoutqa`` from PyPI, as an oracle.

Its module of scores imports BLEURT and an LLM client, which are not compared here and cannot be
installed everywhere: they are replaced by stand-ins, so that the compared code runs unchanged.
"""

import functools
import sys
from types import ModuleType
from typing import Any

import pytest


@functools.cache
def _official() -> ModuleType:
    pytest.importorskip("fanoutqa", reason="needs the extra parity")
    for name in ("bleurt", "bleurt.score", "kani", "kani.engines", "kani.engines.openai"):
        module = sys.modules.setdefault(name, ModuleType(name))
        for attribute in ("BleurtScorer", "Kani", "OpenAIEngine"):
            setattr(module, attribute, lambda *args, **kwargs: None)
    import fanoutqa.eval.scorer
    import fanoutqa.norm

    return fanoutqa


def official(spacy_model: str) -> ModuleType:
    """The package, with its lemmatizer set to a model."""
    import spacy

    package = _official()
    if package.norm.nlp.pipe is None:
        package.norm.nlp.pipe = spacy.load(spacy_model)
    return package


def scorer(spacy_model: str, questions: list[dict[str, Any]], answers: list[dict[str, Any]], **options: Any) -> Any:
    """The official ``Scorer`` for the source's questions and the answers of a file."""
    package = official(spacy_model)
    made = [package.models.DevQuestion.from_dict(question) for question in questions]
    return package.eval.scorer.Scorer(made, answers, **options)


@functools.cache
def _remembering(spacy_model: str) -> Any:
    return functools.cache(official(spacy_model).norm.normalize)


def remember_normal_forms(spacy_model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the official scorer normalize each distinct text once per process, which takes minutes
    instead of hours.
    """
    monkeypatch.setattr(official(spacy_model).eval.string, "normalize", _remembering(spacy_model))
