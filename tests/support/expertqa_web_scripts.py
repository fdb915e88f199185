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

    Args:
        mirror: with their files.
        results: (query) -> URLs that Google's page links to.
        pages: URL -> text; a page that is not there cannot be downloaded.
        split: stands for langchain's splitter.
        score: (query, passage) -> similarity, for the order of the vector store; ties in the order of the passages.
        reply: (prompt) -> the model's reply.
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
        names = ("embeddings", "embeddings.openai", "chat_models", "chains", "prompts")
        langchain: dict[str, dict[str, Any]] = {key: {} for key in names} | {
            "text_splitter": {"CharacterTextSplitter": lambda **_: SimpleNamespace(split_documents=self._split)},
            "vectorstores": {"Chroma": SimpleNamespace(from_documents=self._stored)},
            "schema": {"Document": SimpleNamespace},
        }
        return {f"langchain.{name}": module(f"langchain.{name}", **parts) for name, parts in langchain.items()} | {
            "langchain": module("langchain"),
            "newspaper": module("newspaper", Article=self._article),
            "newspaper.article": module("newspaper.article"),
            "openai": module("openai", ChatCompletion=SimpleNamespace(create=self._completed)),
            "tenacity": module("tenacity", retry=lambda **_: lambda function: function),
            "requests": module("requests", get=self._result_page),
        }

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
