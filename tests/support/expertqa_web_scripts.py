"""ExpertQA's retrieve_and_read.py and post_hoc_cite.py, executed from a mirror on pages and a model in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock
from urllib.parse import quote

import numpy as np
from expertqa_scripts import executed, module

Split = Callable[[str], Sequence[str]]
Score = Callable[[str, str], float]


class Scripts:
    """The authors' scripts.

    ``results`` are the URLs that Google's page for a query links to, ``pages`` the texts of those that can be
    downloaded. ``split`` stands for langchain's splitter, and ``score`` ranks a passage for a query.
    """

    def __init__(
        self,
        mirror: Path,
        results: Callable[[str], Sequence[str]],
        pages: Mapping[str, str],
        split: Split,
        score: Score,
        reply: Callable[[str], str] = lambda prompt: "",
    ) -> None:
        self.mirror = mirror
        self.results, self.pages, self.split, self.score, self.reply = results, pages, split, score, reply

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
        links = [f'<a href="/url?q={quote(found, safe="/:")}&sa=U">x</a>' for found in self.results(query)]
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
            for text in self.split(document.page_content)
        ]

    def _stored(self, documents: Sequence[Any], embeddings: Any) -> SimpleNamespace:
        def retriever(search_kwargs: Mapping[str, int]) -> SimpleNamespace:
            def best(query: str) -> list[Any]:
                scores = [self.score(query, document.page_content) for document in documents]
                order = np.argsort(-np.array(scores), kind="stable")[: search_kwargs["k"]]
                return [documents[i] for i in order]

            return SimpleNamespace(get_relevant_documents=best)

        return SimpleNamespace(as_retriever=retriever)

    def _completed(self, messages: Sequence[Mapping[str, str]], **_: Any) -> dict[str, Any]:
        return {"choices": [{"message": {"content": self.reply(messages[0]["content"])}}]}
