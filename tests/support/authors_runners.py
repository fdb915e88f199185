"""FanOutQA's original runners as oracles, executed from the mirror with stand-ins for packages.

The files are read and executed only in tests, not copied. The stand-ins define the length of messages and
the existing pages; everything else is the authors' code, with the retriever of their package.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from expertqa_scripts import module


class PageError(Exception):
    """No page has the title."""


class DisambiguationError(Exception):
    """The page lists other pages."""

    def __init__(self, options: list[str]) -> None:
        self.options = options


class Engine:
    """A chat engine with a window; a message has 7 more tokens than its text, as kani counts for OpenAI."""

    def __init__(self, window: int, count: Callable[[str], int]) -> None:
        self.max_context_size = window
        self.message_len = lambda message: 7 + count(message.text)

    async def close(self) -> None:
        """Do nothing."""


class Searching:
    """A chat of kani's in which the model makes the calls of ``searches`` for its question row, then ends."""

    searches: Callable[[Any, Mapping[str, Any]], list[str]]

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def full_round(self, prompt: str) -> AsyncIterator[Any]:
        """Yield the results of the searches as messages, whose representation is their text."""
        for query in self.searches(self.question):  # type: ignore[attr-defined]
            result = self.search(query)  # type: ignore[attr-defined]
            yield type("Message", (), {"role": "function", "content": result, "__repr__": lambda self: self.content})()


class _Anything:
    """A stand-in base class, and a decorator that returns its function."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.engine = args[0] if args else None


def load(
    mirror: Path,
    file: str,
    monkeypatch: pytest.MonkeyPatch,
    corpus: Any = None,
    wiki: Any = None,
    chat: type = _Anything,
    runner: ModuleType | None = None,
) -> ModuleType:
    """The module of one of the authors' runners, such as "run_closedbook.py".

    ``corpus`` is their ``Corpus``, ``chat`` the base class of their chat, ``runner`` their ``bench/runner.py``.
    """
    message = SimpleNamespace(user=lambda text: SimpleNamespace(text=text))
    stand_ins = {
        "bench": module("bench"),
        "bench.runner": runner or module("bench.runner", Runner=_Anything, GenerationResult=dict, TOKEN_RESERVE=520),
        "fanout": module("fanout"),
        "fanout.retrieval": module("fanout.retrieval", Corpus=corpus),
        "fanout.wiki": module(
            "fanout.wiki", DatedPage=lambda _, title, redirect, preload: wiki.page(title), wikipedia=wiki
        ),
        "kani": module(
            "kani",
            ChatMessage=message,
            ChatRole=SimpleNamespace(ASSISTANT="assistant"),
            Kani=chat,
            ai_function=lambda: lambda function: function,
        ),
        "kani.engines": module("kani.engines"),
        "kani.engines.base": module("kani.engines.base", BaseEngine=_Anything),
        "mediawiki": module("mediawiki", PageError=PageError, DisambiguationError=DisambiguationError),
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, stand_in)
    path = mirror / "zhudotexe/fanoutqa/reference/paper_benchmarks" / file
    script = module(f"authors_{path.stem}")
    exec(compile(path.read_bytes(), str(path), "exec"), vars(script))
    return script


def run_openbook(
    mirror: Path, monkeypatch: pytest.MonkeyPatch, folder: Path, questions: str, engine: Engine, corpus: Any, wiki: Any
) -> Any:
    """Run the authors' ``run_openbook.py`` for gpt-4 with their ``bench/runner.py``; ``Searching`` is the chat.

    ``questions`` is the text of their file. Return {question id: the texts of all messages}.
    """
    (folder / "results").mkdir(parents=True)
    (folder / "fanout-final-test.json").write_text(questions, encoding="utf-8")
    load(mirror, "run_openbook.py", monkeypatch)  # the stand-ins
    engines = module("bench.engines", can_parallel=lambda _: False, get_engine=lambda name, ctx_size: engine)
    monkeypatch.setitem(sys.modules, "bench.engines", engines)
    monkeypatch.setitem(sys.modules, "fanout.utils", module("fanout.utils"))
    for name in ("bench.utils", "bench.runner"):
        path = mirror / "zhudotexe/fanoutqa/reference/paper_benchmarks" / f"{name.replace('.', '/')}.py"
        bench = module(name, __file__=str(folder / "bench" / path.name))
        exec(compile(path.read_bytes(), str(path), "exec"), vars(bench))
        monkeypatch.setitem(sys.modules, name, bench)
    script = load(mirror, "run_openbook.py", monkeypatch, corpus, wiki, Searching, sys.modules["bench.runner"])
    runner = script.OpenAIOpenBookRunner(bench_setting="openbook", model_name="gpt-4")

    async def run() -> None:
        runner.load()
        await runner.run(kani_cls=script.WikipediaKani)
        await runner.close()

    asyncio.run(run())
    lines = (folder / "results" / "extra-openbook-gpt-4.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row["extra"] for row in map(json.loads, lines)}


def their_corpus(contents: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The ``Corpus`` of the authors' package over pages by title, called with rows as in their runners.

    Its terms are lowercase words; that our terms are spaCy's lemmas is tested with ``Corpus``.
    """
    retrieval = pytest.importorskip("fanoutqa.retrieval", reason="needs the extra parity")
    monkeypatch.setattr(retrieval, "normalize", lambda text: str(text).lower())
    monkeypatch.setattr(retrieval, "wiki_content", lambda page: contents.get(page.title, ""))

    def corpus(documents: list[Mapping[str, Any]], doc_len: int) -> Any:
        return retrieval.Corpus([SimpleNamespace(**document) for document in documents], doc_len)

    return corpus
