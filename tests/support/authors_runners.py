"""FanOutQA's original runners as oracles, executed from the mirror with stand-ins for packages.

The files are read and executed only in tests, not copied. The stand-ins define the length of messages and
the existing pages; everything else is the authors' code, with the retriever of their package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class PageError(Exception):
    """No page has the title."""


class DisambiguationError(Exception):
    """The page lists other pages."""

    def __init__(self, options: list[str]) -> None:
        self.options = options


class Engine:
    """A chat engine with a window; the length of a message is that of its text."""

    def __init__(self, window: int, count: Callable[[str], int]) -> None:
        self.max_context_size = window
        self.message_len = lambda message: count(message.text)


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(members)
    return module


class _Anything:
    """A stand-in base class, and a decorator that returns its function."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.engine = args[0] if args else None


def load(mirror: Path, file: str, monkeypatch: pytest.MonkeyPatch, corpus: Any = None, wiki: Any = None) -> ModuleType:
    """The module of one of the authors' runners.

    Args:
        mirror: the mirror. file: such as "run_closedbook.py". monkeypatch: removes the stand-ins after the test.
        corpus: their ``Corpus``. wiki: what ``DatedPage(...)`` calls with the title, and ``search``.
    """
    message = SimpleNamespace(user=lambda text: SimpleNamespace(text=text))
    stand_ins = {
        "bench": _module("bench"),
        "bench.runner": _module(
            "bench.runner", Runner=_Anything, GenerationResult=dict, TOKEN_RESERVE=520, argstokwargs=None, parser=None
        ),
        "fanout": _module("fanout"),
        "fanout.retrieval": _module("fanout.retrieval", Corpus=corpus),
        "fanout.wiki": _module(
            "fanout.wiki",
            DatedPage=lambda _, title, redirect, preload: wiki.page(title),
            wikipedia=wiki,
        ),
        "kani": _module(
            "kani",
            ChatMessage=message,
            ChatRole=None,
            Kani=_Anything,
            ToolCall=None,
            ai_function=lambda: lambda function: function,
        ),
        "kani.engines": _module("kani.engines"),
        "kani.engines.base": _module("kani.engines.base", BaseEngine=_Anything, Completion=None),
        "mediawiki": _module("mediawiki", PageError=PageError, DisambiguationError=DisambiguationError),
    }
    for name, module in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, module)
    path = mirror / "zhudotexe/fanoutqa/reference/paper_benchmarks" / file
    runner = _module(f"authors_{path.stem}")
    exec(compile(path.read_bytes(), str(path), "exec"), vars(runner))
    return runner


def their_corpus(contents: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The ``Corpus`` of the authors' package over pages by title, called with rows as in their runners.

    Its terms are lowercase words; that our terms are spaCy's lemmas is tested with ``Corpus``.
    """
    retrieval = pytest.importorskip("fanoutqa.retrieval", reason="needs the extra parity")
    monkeypatch.setattr(retrieval, "normalize", str.lower)
    monkeypatch.setattr(retrieval, "wiki_content", lambda page: contents.get(page.title, ""))

    def corpus(documents: list[Mapping[str, Any]], doc_len: int) -> Any:
        return retrieval.Corpus([SimpleNamespace(**document) for document in documents], doc_len)

    return corpus
