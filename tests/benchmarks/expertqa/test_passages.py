"""Answers from the web: equal to those of the authors' scripts, executed from the mirror on the
same pages.
"""

import json
import random
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock
from urllib.parse import quote

import numpy as np
import pytest
from expertqa_scripts import Splitter, executed, module

from qabench.benchmarks.expertqa import BENCHMARK, prompts
from qabench.benchmarks.expertqa.answers import Answering, Options, answering, cite_best_passages
from qabench.benchmarks.expertqa.fact_evidence import find_all, passages_for
from qabench.benchmarks.expertqa.passages import SearchResult, WebPassages, official_urls, split_page
from qabench.errors import InputError
from qabench.prompts.prompt import Prompt
from qabench.retrieval.web.fetch import NO_TEXT, READ, WebCache, WebPage
from qabench.retrieval.web.provider import PageLimits

WORDS = ["tide", "moon", "sun", "sea", "water", "gravity", "spring", "rises", "falls", "coast", "the", "of", "a", "by"]
REPLY = "The Moon pulls the sea [1]. Tides rise twice a day [2][3].\nSprings are higher [9]! Is that all?"


class HashEncoder:
    """Vectors of word counts: equal texts have equal vectors, and no model is needed."""

    name = "hashes"

    def queries(self, texts: Sequence[str]) -> Any:
        vectors = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32(word.encode()) % 64] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    passages = queries

    def score(self, query: str, passage: str) -> float:
        first, second = self.queries([query, passage])
        return round(float(first @ second), 5)


class PagesInMemory:
    """Stands for ``Web``: pages by URL, found by a function of the query."""

    def __init__(self, found: Callable[[str], list[str]], pages: dict[str, str], folder: Path) -> None:
        self.search = found
        self.pages = pages
        self.cache = WebCache(folder)
        self.extractor = "none"
        self.provider = SimpleNamespace(name="memory", pages=PageLimits())

    def read(self, urls: Sequence[str]) -> list[WebPage]:
        return [self._page(url) for url in urls]

    def _page(self, url: str) -> WebPage:
        if url not in self.pages:
            return WebPage(url, "connection failed")
        text = self.pages[url]
        return WebPage(url, READ if text.strip() else NO_TEXT, text)


def pages_of(seed: int) -> dict[str, str]:
    rng = random.Random(seed)
    texts = {f"https://e{n}.org/p": " ".join(rng.choices(WORDS, k=rng.randint(0, 900))) for n in range(6)}
    texts["https://e2.org/p"] = texts["https://e2.org/p"].replace(" sea ", "\nsea ").replace("moon", "moon\n\n")
    texts["https://e3.org/p"] = texts["https://e1.org/p"]  # a copy: its passages tie
    texts["https://e4.org/p"] = "Access to this page was Denied " * 50
    return texts


def found_for(query: str) -> list[str]:
    """The results of a search engine; [] for a query with "nothing"."""
    if "nothing" in query:
        return []
    number = zlib.crc32(query.encode()) % 3
    return [
        f"https://e{5 - number}.org/p#part", "https://support.google.com/about", "https://e1.org/paper.pdf",
        *(f"https://e{n}.org/p" for n in range(1 + number, 5)), "https://e0.org/p", "https://gone.org/",
    ]  # fmt: skip


class Scripts:
    """The authors' scripts, where Google finds ``found_for`` a query, and ``pages`` can be
    downloaded.
    """

    def __init__(self, mirror: Path, pages: Mapping[str, str], reply: Callable[[str], str] = lambda prompt: "") -> None:
        self.mirror, self.pages, self.reply = mirror, pages, reply

    def run(self, name: str, examples: Sequence[Mapping[str, Any]], folder: Path) -> list[dict[str, Any]]:
        """The examples as the script writes them."""
        given, output = folder / "in.jsonl", folder / "out.jsonl"
        given.write_text("".join(json.dumps(example) + "\n" for example in examples), encoding="utf-8")
        output.write_text("")
        arguments = [name, "--input_file", str(given), "--output_file", str(output)]
        environment = {"OPENAI_API_KEY": "none", "CUSTOM_SEARCH_API_KEY": "none", "CUSTOM_SEARCH_CX": "none"}
        with mock.patch.object(sys, "argv", arguments), mock.patch.dict("os.environ", environment):
            folder_of = "fact_score" if name == "retrieve_evidence_for_claims.py" else "response_collection"
            space = executed(self.mirror, f"modeling/{folder_of}/{name}", self._modules(), "__main__")
            if "f" in space:
                space["f"].close()
        return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]

    def _modules(self) -> dict[str, Any]:
        splitter = SimpleNamespace(split_documents=self._split)
        modules = {
            "langchain.text_splitter": {"CharacterTextSplitter": lambda **_: splitter},
            "langchain.vectorstores": {"Chroma": SimpleNamespace(from_documents=self._stored)},
            "langchain.schema": {"Document": SimpleNamespace},
            "newspaper": {"Article": self._article},
            "openai": {"ChatCompletion": SimpleNamespace(create=self._completed)},
            "requests": {"get": self._result_page},
        }
        return {name: module(name, **attributes) for name, attributes in modules.items()}

    def _result_page(self, url: str) -> SimpleNamespace:
        query = url.removeprefix("https://www.google.com/search?q=")
        links = [f'<a href="/url?q={quote(found, safe="/:")}&sa=U">x</a>' for found in found_for(query)]
        return SimpleNamespace(text=f'<html><a href="/more">more</a>{"".join(links)}</html>')

    def _article(self, url: str) -> SimpleNamespace:
        def download() -> None:
            if url not in self.pages:
                raise OSError("it cannot be downloaded")

        return SimpleNamespace(download=download, parse=lambda: None, text=self.pages.get(url, ""))

    def _split(self, documents: Sequence[Any]) -> list[Any]:
        return [
            SimpleNamespace(page_content=text, metadata=document.metadata)
            for document in documents
            for text in split_page(document.page_content)
        ]

    def _stored(self, documents: Sequence[Any], embeddings: Any) -> SimpleNamespace:
        def retriever(search_kwargs: Mapping[str, int]) -> SimpleNamespace:
            def best(query: str) -> list[Any]:
                scores = [HashEncoder().score(query, document.page_content) for document in documents]
                order = np.argsort(-np.array(scores), kind="stable")[: search_kwargs["k"]]
                return [documents[i] for i in order]

            return SimpleNamespace(get_relevant_documents=best)

        return SimpleNamespace(as_retriever=retriever)

    def _completed(self, messages: Sequence[Mapping[str, str]], **_: Any) -> dict[str, Any]:
        return {"choices": [{"message": {"content": self.reply(messages[0]["content"])}}]}


def evidence(folder: Path, seed: int = 0) -> WebPassages:
    web: Any = PagesInMemory(found_for, pages_of(seed), folder)
    return WebPassages(web, HashEncoder())


def plain(claims: Any) -> list[tuple[str, list[str]]]:
    return [(claim["claim_string"], claim["evidence"]) for claim in claims]


def ours(claims: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return [(claim["claim"], claim["evidence"]) for claim in claims]


def upstream_claims(mirror: Path, system: str, answer: dict[str, Any]) -> tuple[str, list[tuple[str, list[str]]]]:
    """The answer and claims from split_ans_to_claims.py."""
    pytest.importorskip("spacy", reason="needs the extra spacy")
    (found,) = Splitter(mirror).answers([{"answers": {system: answer}}])
    claims = [one if isinstance(one, dict) else vars(one) for one in found[system]["claims"]]
    return found[system]["answer_string"], plain(claims)


def test_retrieve_read_is_the_authors(mirror: Path, tmp_path: Path, compared: Callable[[str], None]) -> None:
    questions = ["Why are there tides?", "When is spring tide?", "What of nothing?", "Who falls daily by sea"]
    for seed in range(4):
        asked: list[str] = []
        reply = lambda prompt: asked.append(prompt) or REPLY  # noqa: B023, E731
        scripts = Scripts(mirror, pages_of(seed), reply)
        rows = [
            {"question": one, "annotator_id": "1", "answers": {}, "metadata": {"field": "Geography"}}
            for one in questions
        ]
        theirs = scripts.run("retrieve_and_read.py", rows, tmp_path)
        how = Answering("retrieve-read-web", prompts.web_prompt(), "official", evidence(tmp_path / str(seed), seed), 5)
        prompts_sent = iter(asked)
        for question, row in zip(questions, theirs, strict=True):
            ((_, answer),) = row["answers"].items()
            asked_row = {"question": question, "field": "Geography"}
            read = how.to_read(asked_row)
            if not read.passages:
                assert answer == answer | {"answer_string": "I don't know.", "attribution": []}
                continue
            assert how.messages(asked_row, read.passages) == (("user", next(prompts_sent)),)
            assert [one["url"] for one in answer["attribution"]] == [one.source for one in read.passages]
            claimed, _ = how.claimed(REPLY, read)
            assert (claimed.answer, ours(claimed.claims)) == upstream_claims(mirror, "rr_gs_gpt4", answer)
        assert next(prompts_sent, None) is None
    compared(f"{4 * len(questions)} questions, prompts, passages and claims of retrieve_and_read.py")


def test_post_hoc_is_the_authors(mirror: Path, tmp_path: Path, compared: Callable[[str], None]) -> None:
    claims = ["The tide rises [1].", "The moon and the sun [2][3].", "Tiny", "Nobody knows of nothing.", "Sea water!"]
    scripts = Scripts(mirror, pages_of(1))
    gpt4 = {"answer_string": " ".join(claims), "attribution": [], "claims": [{"claim_string": one} for one in claims]}
    row = {"question": "Why?", "annotator_id": "1", "answers": {"gpt4": gpt4}, "metadata": {"field": "Geography"}}
    (theirs,) = scripts.run("post_hoc_cite.py", [row], tmp_path)
    answer = theirs["answers"]["post_hoc_gs_gpt4"]
    how = Answering("post-hoc-web", prompts.OWN_CLOSED, "official", evidence(tmp_path / "web", 1), 5)
    assert how.evidence is not None
    claimed, found = cite_best_passages(claims, how.evidence)
    assert (claimed.answer, ours(claimed.claims)) == upstream_claims(mirror, "post_hoc_gs_gpt4", answer)
    assert [bool(claim["evidence"]) for claim in claimed.claims] == [True, True, False, True]
    assert [search["query"] for search in found.searches] == [one for one in claims if len(one) > 5]
    compared(f"{len(claims)} claims of post_hoc_cite.py")


def test_evidence_of_claims_is_the_authors(mirror: Path, tmp_path: Path, compared: Callable[[str], None]) -> None:
    texts = ["The tide rises.", "The moon and the sun.", "Nobody knows of nothing.", "Sea water is salty."]
    claims = [{"claim_string": "...", "atomic_claims": texts[:1]}, {"claim_string": "...", "atomic_claims": texts[1:]}]
    row = {"question": "Why?", "annotator_id": "1", "metadata": {"field": "Geography"}}
    row["answers"] = {"gpt4": {"answer_string": "...", "attribution": [], "claims": claims}}
    (theirs,) = Scripts(mirror, pages_of(1)).run("retrieve_evidence_for_claims.py", [row], tmp_path)
    wanted = [text for claim in theirs["answers"]["gpt4"]["claims"] for text in claim["atomic_evidences"]]
    evidence_found = find_all(texts, passages_for(evidence(tmp_path / "web", 1)), lambda *counts: None)
    assert [evidence_found[text] for text in texts] == wanted and wanted.count("") == 1
    compared(f"{len(texts)} pieces of evidence of retrieve_evidence_for_claims.py")


def test_urls_as_the_authors_keep_them() -> None:
    results = ["https://b.org/x#y", "https://a.org", "https://b.org/x", "https://a.org/f.pdf", "https://google.com/"]
    scholar = "https://scholar.google.com/scholar_url?url=https://c.org/paper&hl=en"
    urls, skipped = official_urls([*results, scholar, "https://scholar.google.com/scholar?q=x"])
    assert urls == ["https://a.org", "https://b.org/x", "https://c.org/paper"]
    assert [(page.url, page.outcome) for page in skipped] == [
        ("https://a.org/f.pdf", "PDF"),
        ("https://google.com/", "a page of Google"),
        ("https://scholar.google.com/scholar?q=x", "a page of Google"),
    ]


def test_the_splitter_is_langchains() -> None:
    splitters = pytest.importorskip("langchain_text_splitters", reason="needs the extra parity")
    rng = random.Random(0)
    for _ in range(500):
        text = "".join(rng.choices(["a", "bb", "ccccc", " ", "  ", "\n", " \n"], k=rng.randint(0, 60)))
        size = rng.randint(1, 30)
        overlap = rng.randint(0, size)
        theirs = splitters.CharacterTextSplitter(separator=" ", chunk_size=size, chunk_overlap=overlap)
        assert split_page(text, size, overlap) == theirs.split_text(text)


def test_missing_options_name_the_fix() -> None:
    for method in [setting.name for setting in BENCHMARK.settings][1:]:
        with pytest.raises(InputError, match="add -T search=searxng" if "web" in method else "add -T corpus=FILE"):
            answering(method, "qabench")
    wrongs: list[tuple[str, Options, str]] = [
        ("retrieve-read", Options(corpus="x.jsonl", ranker="magic"), "unknown ranker 'magic'; allowed: bm25"),
        ("retrieve-read", Options(corpus="x.jsonl", encoder="x"), "an encoder has no effect with ranker=bm25"),
    ]
    for method, options, says in wrongs:
        with pytest.raises(InputError, match=says):
            answering(method, "qabench", options=options)


def test_a_custom_prompt_ranks_by_the_question_alone() -> None:
    asked: list[tuple[str, str, int]] = []
    recorder: Any = SimpleNamespace(find=lambda *query: asked.append(query) or SearchResult(()))
    row = {"question": "Why?", "field": "Law"}
    for method in ("retrieve-read-web", "post-hoc-web"):
        Answering(method, Prompt("qabench", "{question}"), "qabench", recorder, 3).to_read(row)
    assert asked == [("Why?", "Why?", 3)]
