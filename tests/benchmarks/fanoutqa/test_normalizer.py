import hashlib
import json
import re
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import answer_styles
import ftfy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qabench
from qabench import load_dataset
from qabench.benchmarks.fanoutqa.accuracy import contains_word
from qabench.benchmarks.fanoutqa.normalizer import (
    THOUSANDS,
    NormalizedTextCache,
    Normalizer,
    after_lemmas,
    normalize,
    repair,
)
from qabench.benchmarks.fanoutqa.official import DECLARATIONS
from qabench.data.answers import loads
from qabench.errors import MissingExtra
from qabench.text import lemmatizers
from qabench.text.lemmatizers import SpacyLemmatizer

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


def deviation(lemmatizer: lemmatizers.Lemmatizer) -> str:
    """Return how a score with a lemmatizer deviates; "" for an official lemmatizer."""
    field, name = DECLARATIONS["fanout_acc"]["lemmatizer"], Normalizer(lemmatizer).signature()["lemmatizer"]
    return "" if field.accepts(name) else field.sentence("lemmatizer", name)


def spacy_model_of_version(folder: Path, version: str) -> lemmatizers.SpacyLemmatizer:
    """Write files that say that they are a version of the official model."""
    folder.mkdir()
    meta = {"lang": "en", "name": "core_web_sm", "version": version}
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / "tokenizer").write_bytes(b"another tokenizer")
    return lemmatizers.SpacyLemmatizer(str(folder))


def test_the_digests_of_releases_are_the_digests_of_their_files() -> None:
    listed = Path(__file__).with_name("en_core_web_sm.sha256").read_text().splitlines()
    for version, digest in lemmatizers.RELEASES.items():
        files = "".join(line.replace(f"{version}/", "") + "\n" for line in listed if f"  {version}/" in line)
        assert hashlib.sha256(files.encode()).hexdigest()[:12] == digest


@pytest.mark.skipif(find_spec("spacy") is None, reason="needs the extra spacy")
def test_a_model_is_official_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = spacy_model_of_version(tmp_path / "copied", "3.8.0")
    digest = lemmatizers.model_digest(tmp_path / "copied")
    assert copied.name.endswith(f"+{digest}")
    assert f"{digest} instead of en_core_web_sm" in deviation(copied)
    monkeypatch.setitem(lemmatizers.RELEASES, "3.8.0", digest)
    assert not deviation(copied)
    for readme in ("README.md", "LICENSE"):
        (tmp_path / "copied" / readme).write_text("Not a part of the model.")
    assert lemmatizers.model_digest(tmp_path / "copied") == digest
    (tmp_path / "copied" / "tokenizer").write_bytes(b"a third tokenizer")
    assert deviation(lemmatizers.SpacyLemmatizer(copied.model))


@pytest.mark.skipif(find_spec("spacy") is None, reason="needs the extra spacy")
def test_a_later_release_is_identified_by_name_and_version(tmp_path: Path) -> None:
    later = spacy_model_of_version(tmp_path / "later", "3.9.0")
    assert later.name.endswith(" (identified by name and version)")
    assert deviation(later).endswith(
        "(identified by name and version) instead of en_core_web_sm with spaCy 3.7.2 or later"
    )
    assert deviation(spacy_model_of_version(tmp_path / "never released", "3.7.9"))


def test_the_stand_in_of_the_official_model_is_not_official(spacy_model: str) -> None:
    lemmatizer = lemmatizers.SpacyLemmatizer(spacy_model)
    assert bool(deviation(lemmatizer)) == (lemmatizer.full_name != lemmatizers.OFFICIAL_MODEL)


def test_an_object_is_not_official_whatever_its_name(tmp_path: Path) -> None:
    class Liar:
        name = key = f"en_core_web_sm-3.8.0+spacy-3.8.18+{lemmatizers.RELEASES['3.8.0']}"

        def __call__(self, texts: Sequence[str]) -> list[str]:
            return ["wrong"] * len(texts)

    cache = NormalizedTextCache(tmp_path / "texts.sqlite")
    for lemmatizer in (Liar(), lemmatizers.thread_safe_lemmatizer(Liar()), lemmatizers.InOneThread(Liar())):
        assert (
            deviation(lemmatizer)
            == f"lemmatizer: object:{Liar.name} instead of en_core_web_sm with spaCy 3.7.2 or later"
        )
        assert Normalizer(lemmatizer, cache).batch(["Cats"]) == {"Cats": "wrong"}
    assert cache.get(Normalizer("simplemma").name + "/" + Liar.key, ["Cats"]) == {}


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
    monkeypatch.setenv("QABENCH_SPACY_MODEL", "folder")
    with pytest.raises(MissingExtra, match=r"'folder' needs spaCy, .* pip install 'qabench\[spacy\]'"):
        Normalizer("auto")


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

    def test_serves_the_normalizer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cache = NormalizedTextCache(tmp_path / "texts.sqlite")
        texts = [f"Running {i}" for i in range(1200)]
        first = Normalizer("simplemma", cache).batch(texts)

        def refuse(self: Any, texts: list[str]) -> list[str]:
            raise AssertionError(f"{len(texts)} texts were not in the cache")

        monkeypatch.setattr(lemmatizers.SimplemmaLemmatizer, "__call__", refuse)
        assert Normalizer("simplemma", cache).batch(texts) == first

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


# ``pytest.warns`` raises again what it does not match, such as warnings about sockets that other
# tests left open.
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


def test_progress_counts_texts() -> None:
    shown: list[tuple[int, int]] = []
    Normalizer("simplemma").batch(["a text", "another one", "a text"], lambda *counts: shown.append(counts))
    assert shown == [(2, 2)]
