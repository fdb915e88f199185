from __future__ import annotations

import re
import warnings
from pathlib import Path

import ftfy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qabench
from qabench.benchmarks.fanoutqa.accuracy import contains_word
from qabench.benchmarks.fanoutqa.official import DECLARATIONS
from qabench.errors import MissingExtra
from qabench.text import Normalizer, lemmatizers, normalize
from qabench.text.normalize import THOUSANDS, NormalizedTextCache, after_lemmas, repair

ANY_TEXT = st.text(st.characters(exclude_categories=()))
PLAIN = st.text(st.sampled_from("ab &;<>\n\t\r\x00\x1b\x7f0,.é\u2019\ufb01#39ltamp[]m\u2013\u2026â€œ\u009d\x85\u2028"))
NUMBERS = st.text(st.sampled_from("0129,. a\u0663"))


@given(ANY_TEXT | PLAIN)
def test_repair_equals_ftfy(text: str) -> None:
    assert repair(text) == ftfy.fix_text(text)


@given(NUMBERS | ANY_TEXT)
def test_thousands_are_the_official_pattern(text: str) -> None:
    official = re.sub(r"(\d+,)+\d+(\.\d+)?", lambda match: match[0].replace(",", ""), text)
    assert THOUSANDS.sub(lambda match: match[0].replace(",", ""), text) == official


@given(ANY_TEXT | st.text(",.?!:; \n\u00a0\u2028a"))
def test_after_lemmas_is_the_official_pair_of_patterns(text: str) -> None:
    assert after_lemmas(text) == re.sub(r"\s+", " ", re.sub(r"[,.?!:;]", "", text))


@given(st.text("ab_-é\u0301 1.\u00b2"), st.text("ab_-é\u0301 1.\u00b2") | ANY_TEXT)
def test_contains_word_is_a_search_between_boundaries(string: str, text: str) -> None:
    for haystack in (text, text + string, f"{string} {text}", f"a{string}{text}"):
        assert contains_word(string, haystack) == bool(re.search(rf"\b{re.escape(string)}\b", haystack))


def test_the_steps_in_order() -> None:
    text = "The  Pop. was\n1,234,567.50; don\u2019t"
    assert normalize(text, "simplemma") == "the pop be 123456750 do not"
    assert qabench.normalize("", "simplemma") == ""
    assert normalize(None, "simplemma") == "none"


def test_a_batch_normalizes_each_text_once() -> None:
    seen: list[str] = []

    class Shouting:
        name = key = "shouting"

        def __call__(self, texts: list[str]) -> list[str]:
            seen.extend(texts)
            return [text.upper() for text in texts]

    forms = Normalizer(Shouting()).batch(["A", "a", "b", "a", 1, "1"])
    assert forms == {"A": "A", "a": "A", "b": "B", "1": "1"}
    assert seen == ["a", "b", "1"]


def test_auto_without_a_model_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QABENCH_SPACY_MODEL", raising=False)
    monkeypatch.setattr(lemmatizers, "find_spec", lambda name: None)
    lemmatizers._warn_of_fallback.cache_clear()
    with pytest.warns(UserWarning, match=r"may differ from the official one.*spacy download en_core_web_sm"):
        normalizer = Normalizer("auto")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        normalizer = Normalizer("auto")
    assert normalizer.signature()["lemmatizer"].startswith("simplemma-")
    assert not DECLARATIONS["fanout_acc"]["lemmatizer"].accepts(normalizer.lemmatizer.name)


def test_spacy_without_spacy_is_an_error_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lemmatizers, "find_spec", lambda name: None)
    lemmatizers._spacy.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install 'qabench\[spacy\]'"):
        Normalizer("spacy")


def test_a_missing_model_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="needs the extra spacy")
    monkeypatch.setenv("QABENCH_SPACY_MODEL", str(tmp_path / "nowhere"))
    with pytest.raises(MissingExtra, match=r"nowhere.*meta\.json"):
        Normalizer("auto")


class TestCache:
    def test_entries_depend_on_normalizer_and_text(self, tmp_path: Path) -> None:
        cache = NormalizedTextCache(tmp_path / "texts.sqlite")
        cache.put("one", {"A": "a", "B\ud800": "b"})
        again = NormalizedTextCache(tmp_path / "texts.sqlite")
        assert again.get("one", ["A", "B\ud800", "C"]) == {"A": "a", "B\ud800": "b"}
        assert again.get("two", ["A"]) == {}

    def test_serves_the_normalizer(self, tmp_path: Path) -> None:
        cache = NormalizedTextCache(tmp_path / "texts.sqlite")
        texts = [f"Running {i}" for i in range(1200)]
        first = Normalizer("simplemma", cache).batch(texts)

        class Refusing:
            name, official = Normalizer("simplemma").lemmatizer.name, False
            key = Normalizer("simplemma").lemmatizer.key

            def __call__(self, texts: list[str]) -> list[str]:
                raise AssertionError(f"{len(texts)} texts were not in the cache")

        assert Normalizer(Refusing(), cache).batch(texts) == first

    def test_is_bounded(self, tmp_path: Path) -> None:
        cache = NormalizedTextCache(tmp_path / "texts.sqlite", max_bytes=200_000)
        for i in range(100):
            cache.put("key", {f"{i} {j}": "form " * 20 for j in range(100)})
        assert cache.path.stat().st_size < 600_000
        assert len(cache.get("key", [f"99 {j}" for j in range(100)])) == 100

    @pytest.mark.parametrize("content", [b"this is no database at all" * 100, None])
    def test_a_broken_cache_causes_a_warning(self, tmp_path: Path, content: bytes | None) -> None:
        path = tmp_path / "texts.sqlite"
        path.write_bytes(content) if content else path.mkdir()
        cache = NormalizedTextCache(path)
        with pytest.warns(UserWarning, match="cannot be used"):
            assert Normalizer("simplemma", cache).batch(["Cats"]) == {"Cats": "cat"}
        assert Normalizer("simplemma", cache).batch(["Cats"]) == {"Cats": "cat"}

    def test_can_be_switched_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("QABENCH_TEXT_CACHE", "0")
        assert NormalizedTextCache.default() is None
