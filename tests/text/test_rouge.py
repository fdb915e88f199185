"""ROUGE finds no words in texts without Latin letters and digits: a score of 0 is explained."""

import pytest

import qabench
from qabench.benchmarks import benchmark
from qabench.text.rouge import has_no_words

TEXT = "これは正しい答えです。"


@pytest.mark.parametrize("name", ["expertqa", "fanoutqa", "fastbook"])
def test_a_rouge_of_0_by_the_tokenizer_is_named(name: str) -> None:
    ids = list(benchmark(name).questions("sample"))
    rows = [{"id": id, "answer": TEXT if id == ids[0] else "Water boils at 100 degrees."} for id in ids]
    expected = (
        "answers in which ROUGE finds no words, because its tokenizer reads only a-z and 0-9; "
        f"they score 0: 1 ({ids[0]})"
    )
    assert expected in qabench.evaluate_predictions(name, "sample", rows, scores=["rouge"]).problems


@pytest.mark.parametrize(
    ("text", "wordless"), [(TEXT, True), ("Москва", True), ("...", True), ("", False), (" ", False), ("2", False)]
)
def test_texts_without_words(text: str, wordless: bool) -> None:
    """The same texts have no tokens in ``rouge_score``."""
    from rouge_score.tokenizers import DefaultTokenizer

    assert has_no_words(text) == wordless
    assert bool(DefaultTokenizer(use_stemmer=False).tokenize(text)) == (not wordless and bool(text.strip()))
