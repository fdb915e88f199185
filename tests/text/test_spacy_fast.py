"""The fast path through a spaCy pipeline against the pipeline itself, text by text."""

import os
import signal

import answer_styles
import pytest

from qabench import load_dataset
from qabench.answers import loads
from qabench.text.lemmatizers import SpacyLemmatizer

ODD_TEXTS = [
    "", " ", "\n\n \t", "a", "they ain't gonna let's c'm on y'all gotta", "there's a cat, and there were cats being",
    "i saw it; it saw me. you do, he does, they had done",
    "\U0001f600 caf\u00e9 \u00bd 1/2 10km 3.5m u.s.a. e.g. http://a.b/c?d=e", "word " * 3000, "x" * 5000,
]  # fmt: skip


@pytest.fixture
def texts() -> list[str]:
    rows = load_dataset("fanoutqa", "sample", split="validation")
    questions = [{"answer": loads(row["answer"])} for row in rows]
    made = [text for style in answer_styles.STYLES for text in answer_styles.answers(questions, style)]
    # The lemmatizer gets repaired, lowercase text.
    return ODD_TEXTS + list(rows["question"]) + [t.lower().encode("utf-8", "ignore").decode() for t in made]


def test_equals_the_pipeline_on_each_text(spacy_model: str, texts: list[str]) -> None:
    import spacy

    nlp = spacy.load(spacy_model)
    expected = [" ".join(token.lemma_ for token in nlp(text)) for text in texts]
    lemmatizer = SpacyLemmatizer(spacy_model, workers=1)
    assert lemmatizer(texts) == expected
    assert lemmatizer(texts[::-1]) == expected[::-1]  # from the cache, in other batches
    assert SpacyLemmatizer(spacy_model, workers=2)(texts * 30) == expected * 30


# ``pytest.warns`` raises again what it does not match, such as warnings about sockets that other tests left open.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_killed_process_causes_a_warning(spacy_model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qabench.io.workers._run", _die)
    lemmatizer = SpacyLemmatizer(spacy_model, workers=2)
    texts = [f"{i} cats were running" for i in range(5000)]
    with pytest.warns(UserWarning, match="was killed"):
        assert lemmatizer(texts)[7] == "7 cat be run"


def _die(task: list[int]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_other_pipelines_have_no_fast_path(spacy_model: str, texts: list[str]) -> None:
    import spacy

    from qabench.text.spacy_fast import FastLemmas

    nlp = spacy.load(spacy_model, exclude=["ner"])
    assert FastLemmas.of(nlp) is not None
    nlp.get_pipe("attribute_ruler").add([[{"ENT_TYPE": "PERSON"}]], {"LEMMA": "somebody"})
    assert FastLemmas.of(nlp) is None and FastLemmas.of(spacy.blank("en")) is None


def test_name_and_key_need_no_spacy_pipeline(spacy_model: str) -> None:
    lemmatizer = SpacyLemmatizer(spacy_model)
    assert lemmatizer.name.startswith(f"{lemmatizer.full_name}-") and "_lemmas" not in vars(lemmatizer)
