"""All messages equal those of the authors' runners, byte for byte."""

import ast
import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from benchmark_tasks import fanoutqa_closed_book, fanoutqa_open_book
from expertqa_scripts import module
from hypothesis import example, given
from hypothesis import strategies as st
from inspect_ai import eval as evaluate
from inspect_ai.model import ChatMessageTool, get_model
from question_rows import question_rows
from scripted_model import call, run, scripted
from scripted_wiki import isolate

from qabench.adapters.inspect_ai.conversation import InspectConversation
from qabench.adapters.inspect_ai.language_model import InspectModel
from qabench.benchmarks.conversation import TokenCounter
from qabench.benchmarks.fanoutqa import evidence, open_book, prompts
from qabench.benchmarks.fanoutqa.judge import judge_for
from qabench.benchmarks.fanoutqa.official import AS_KANI, DECLARATIONS, PROMPTS
from qabench.benchmarks.fanoutqa.window import counter_of
from qabench.data.answers import loads, text_of
from qabench.errors import DigestMismatch, QabenchError
from qabench.evaluation.signature import deviations
from qabench.retrieval.wiki.page import PageMissing, WikiPage

WORDS = ["the", "of", "moon", "tide", "river", "1998", "population,", "city", "club", "season.", "born", "won\n\n"]


# FanOutQA's original runners as oracles, executed from the mirror with stand-ins for packages,
# which define the length of messages and the existing pages. Everything else is the authors' code,
# with the retriever of their package.


class PageError(Exception):
    """No page has the title."""


class DisambiguationError(Exception):
    """The page lists other pages."""

    def __init__(self, options: list[str]) -> None:
        self.options = options


class Engine:
    """A chat engine with a window; a message has 7 more tokens than its text, as kani counts for
    OpenAI.
    """

    def __init__(self, window: int, count: Callable[[str], int]) -> None:
        self.max_context_size = window
        self.message_len = lambda message: 7 + count(message.text)

    async def close(self) -> None:
        """Do nothing."""


class Searching:
    """A chat of kani's in which the model makes the calls of ``searches`` for its question row,
    then ends.
    """

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

    ``corpus`` is their ``Corpus``, ``chat`` the base class of their chat, ``runner`` their
    ``bench/runner.py``.
    """
    message = SimpleNamespace(user=lambda text: SimpleNamespace(text=text))
    stand_ins = {
        "bench": module("bench"),
        "bench.runner": runner or module("bench.runner", Runner=_Anything, GenerationResult=dict, TOKEN_RESERVE=520),
        "fanout": module("fanout"),
        "fanout.retrieval": module("fanout.retrieval", Corpus=corpus),
        "fanout.wiki": module("fanout.wiki", DatedPage=lambda _, title, **more: wiki.page(title), wikipedia=wiki),
        "kani": module(
            "kani", ChatMessage=message, ChatRole=SimpleNamespace(ASSISTANT="assistant"), Kani=chat,
            ai_function=lambda: lambda function: function,
        ),
        "kani.engines": module("kani.engines"),
        "kani.engines.base": module("kani.engines.base", BaseEngine=_Anything),
        "mediawiki": module("mediawiki", PageError=PageError, DisambiguationError=DisambiguationError),
    }  # fmt: skip
    for name, stand_in in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, stand_in)
    path = mirror / "zhudotexe/fanoutqa/reference/paper_benchmarks" / file
    script = module(f"authors_{path.stem}")
    exec(compile(path.read_bytes(), str(path), "exec"), vars(script))
    return script


def run_openbook(
    mirror: Path, monkeypatch: pytest.MonkeyPatch, folder: Path, questions: str, engine: Engine, corpus: Any, wiki: Any
) -> Any:
    """Run the authors' ``run_openbook.py`` for gpt-4 with their ``bench/runner.py``; ``Searching``
    is the chat. ``questions`` is the text of their file. Return {question id: the texts of all
    messages}.
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
    """The ``Corpus`` of the authors' package over pages by title, called with rows as in their
    runners.

    Its terms are lowercase words; that our terms are spaCy's lemmas is tested with ``Corpus``.
    """
    retrieval = pytest.importorskip("fanoutqa.retrieval", reason="needs the extra parity")
    monkeypatch.setattr(retrieval, "normalize", lambda text: str(text).lower())
    monkeypatch.setattr(retrieval, "wiki_content", lambda page: contents.get(page.title, ""))

    def corpus(documents: list[Mapping[str, Any]], doc_len: int) -> Any:
        return retrieval.Corpus([SimpleNamespace(**document) for document in documents], doc_len)

    return corpus


def words_in(text: str) -> int:
    return len(text.split())


class LowerCase:
    """A fast normalizer."""

    def __call__(self, text: str) -> str:
        return text.lower()

    def batch(self, texts: Any) -> dict[str, str]:
        return {text: text.lower() for text in texts}


async def count_words(text: str) -> int:
    return words_in(text)


COUNTER = TokenCounter("words", count_words, message_tokens=7)
CONVERSATION: Any = SimpleNamespace(
    at_most=lambda count, what: nullcontext(),
    with_calls=lambda reply, calls: InspectConversation.with_calls(CONVERSATION, reply, calls),
)


def content_of(title: str, paragraphs: int = 6) -> str:
    """A synthetic page about its title."""
    rng = random.Random(title)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(20, 90))) + f" {title}." for _ in range(paragraphs)]
    return "\n\n".join([f"# {title}", *lines])


class Wiki:
    """Synthetic pages, for the authors' search (``page``, ``search``) and ours."""

    name = "dated"
    ours = False

    def content(self, page: Any) -> str:
        return content_of(WikiPage.of(page).title)

    def search(self, query: str, results: int = 10) -> Any:
        titles = [f"{query} {i}" for i in range(3)]
        return [WikiPage(title) for title in titles] if self.ours else titles

    def page(self, title: str) -> Any:
        if title == "Missing page":
            raise PageError
        if title == "Mercury":
            raise DisambiguationError(["Mercury (element)", "Mercury (planet)"])
        return SimpleNamespace(title=title.capitalize(), pageid=7)

    def lookup(self, title: str) -> WikiPage | list[str]:
        try:
            return WikiPage(self.page(title).title, 7)
        except PageError:
            raise PageMissing(WikiPage(title), "no such page") from None
        except DisambiguationError as error:
            return error.options


@pytest.fixture
def our_wiki(monkeypatch: pytest.MonkeyPatch) -> Wiki:
    wiki = Wiki()
    wiki.ours = True
    for user in (evidence, open_book):
        monkeypatch.setattr(user, "wikipedia", lambda *_: wiki)
    return wiki


def test_prompts_are_the_declared_ones(mirror: Path) -> None:
    found = {
        "closed-book": prompts.closed_book("official"),
        "open-book": prompts.open_book("official").tools,
        "open-book-gpt-3.5": prompts.open_book("official").tools_gpt_35,
        "open-book-text": prompts.open_book("official").text,
        "evidence-provided": prompts.evidence_provided("official")[0],
    }
    assert {name: prompt.label for name, prompt in found.items()} == PROMPTS
    assert (prompts.judge_prompt("official").label,) == DECLARATIONS["fanout_judge"]["judge_prompt"].official


@pytest.mark.parametrize(("config", "count"), [("dev", 310), ("test", 724)])
def test_closed_book(
    mirror: Path, monkeypatch: pytest.MonkeyPatch, config: str, count: int, compared: Callable[[str], None]
) -> None:
    runner = load(mirror, "run_closedbook.py", monkeypatch).ClosedBookRunner()
    samples = fanoutqa_closed_book(config).dataset
    for row, sample in zip(question_rows(config), samples, strict=True):
        assert sample.input == runner.get_prompt(row)
    assert len(samples) == count
    compared(f"{count} messages of {config}")


@pytest.mark.parametrize("config", ["dev", "test"])
def test_open_book_prompts(mirror: Path, monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    script = load(mirror, "run_openbook.py", monkeypatch)
    tools, text = script.OpenAIOpenBookRunner(), script.OpenBookRunner()
    tools.model_name = "gpt-4o"
    gpt_35 = script.OpenAIOpenBookRunner()
    gpt_35.model_name = "gpt-3.5-turbo-1106"
    ours = prompts.open_book("official")
    for row in question_rows(config):
        assert ours.tools_gpt_35.filled(question=row["question"]) == gpt_35.get_prompt(row)
        assert ours.tools.filled(question=row["question"]) == tools.get_prompt(row)
        assert ours.text.filled(question=row["question"]) == text.get_prompt(row)
    assert ours.tool == script.WikipediaKani.search.__doc__


def test_judge(mirror: Path, compared: Callable[[str], None]) -> None:
    path = mirror / "zhudotexe/fanoutqa/fanoutqa/eval/llm.py"
    tree = ast.parse(path.read_bytes())
    names: dict[str, Any] = {}
    function = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    exec(compile(ast.Module(function, []), str(path), "exec"), names)
    (system,) = (n.value for n in tree.body if isinstance(n, ast.Assign) and "factuality_system" in ast.unparse(n))
    rows = question_rows("dev")
    answers = [f"Answer {{answer}} {i}\n" * (i % 400) for i in range(len(rows))]
    references = [loads(row["answer"]) for row in rows]
    requests = judge_for(prompt="official").requests([row["question"] for row in rows], references, answers)
    for i, request in requests.items():
        text = names["factuality_prompt"](rows[i]["question"], text_of(references[i]), answers[i][:4000])
        assert request.messages == (("system", ast.literal_eval(system)), ("user", text))
    assert len(requests) == 310
    compared(f"{len(requests)} messages to the judge")


def test_evidence_provided(
    mirror: Path, monkeypatch: pytest.MonkeyPatch, our_wiki: Wiki, compared: Callable[[str], None]
) -> None:
    rows = question_rows("dev")
    pages = {page["title"]: content_of(page["title"]) for row in rows for page in row["necessary_evidence"]}
    corpus = their_corpus(pages, monkeypatch)
    script = load(mirror, "run_wiki_provided.py", monkeypatch, corpus)
    strings = prompts.evidence_provided("official")
    normalizer: Any = LowerCase()
    cut = 0
    for row in rows:
        window = 520 + random.Random(row["id"]).randint(300, 6000)
        runner = script.WikiProvidedRunner()
        runner.engine = Engine(window, words_in)
        theirs = runner.get_prompt(row, window - 520)
        ranked, _ = evidence.rank_evidence(row["question"], row["necessary_evidence"], normalizer, official=True)

        def fill(n: int) -> str:
            return evidence.fill(*strings, row["question"], ranked[:n])  # noqa: B023

        texts = [fragment.content for fragment in ranked]
        n, _ = asyncio.run(evidence.how_many_fit(texts, window - 520 - COUNTER.message_tokens, COUNTER, fill))
        assert fill(n) == theirs, row["id"]
        cut += n < len(texts)
    assert 50 < cut < 310  # windows of both kinds: too small for all fragments, and large enough
    compared(f"{len(rows)} messages with evidence, {cut} of them filling the window")


@pytest.mark.parametrize("window", [400, 1200])
def test_search_results(
    mirror: Path,
    monkeypatch: pytest.MonkeyPatch,
    our_wiki: Wiki,
    tmp_path: Path,
    compared: Callable[[str], None],
    window: int,
) -> None:
    """The authors' ``bench/runner.py`` drives their search, so pages are ranked by what it passes:
    the whole row.
    """
    file = mirror / "zhudotexe/fanoutqa/fanoutqa/data/fanout-final-test.json"
    rows = json.loads(file.read_text(encoding="utf-8"))[:150]
    titles = {page["title"].capitalize() for row in rows for page in row["necessary_evidence"]}
    corpus = their_corpus({title: content_of(title) for title in titles}, monkeypatch)

    def searches(row: Any) -> list[str]:
        return [row["necessary_evidence"][0]["title"], "Missing page", "Mercury"]

    monkeypatch.setattr(Searching, "searches", lambda self, row: searches(row), raising=False)
    engine = Engine(window, words_in)
    theirs = run_openbook(mirror, monkeypatch, tmp_path, json.dumps(rows), engine, corpus, Wiki())
    samples = {sample.id: sample for sample in fanoutqa_open_book("test", context_length=window).dataset}
    normalizer: Any = LowerCase()
    strings = prompts.open_book("official")
    for row in rows:
        query = samples[row["id"]].metadata["row"]["query"]
        ours = open_book.OpenBookSearch(
            CONVERSATION, query, window // 2, COUNTER, normalizer, lambda *_: None, our_wiki, strings
        )
        assert [asyncio.run(ours.search(title)) for title in searches(row)] == theirs[row["id"]], row["id"]
    compared(f"{3 * len(rows)} results of searches")


def test_text_searches_are_recognized_as_upstream(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load(mirror, "run_openbook.py", monkeypatch)
    script.ToolCall = SimpleNamespace(from_function=lambda name, query: query)
    script.ChatMessage = SimpleNamespace(assistant=lambda content, tool_calls: (content, tool_calls))
    script.Completion = lambda message: message
    for said in (
        "<search>Paris</search>",
        "<search>Paris</search> and <search>Rome</search>",
        "I look. <search>Paris</search>",
        "<search></search>x</search>",
        "<search>a\nb</search>",
        "<search>never ends",
        "Paris",
    ):
        engine = SimpleNamespace(predict=None, max_context_size=1, token_reserve=0)

        async def predict(*_: Any, **__: Any) -> Any:
            return SimpleNamespace(message=SimpleNamespace(text=said))  # noqa: B023

        engine.predict = predict
        content, query = asyncio.run(script.SearchEngine(engine, strict=True).predict([]))
        found = open_book._SEARCH.match(said)
        assert ([found[1]] if found else None) == query
        assert (said[: found.end()] if found else said) == content


def test_a_whole_run_in_text(mirror: Path, our_wiki: Wiki, tmp_path: Path) -> None:
    """The messages to the model, and the recorded ones, with the authors' protocol."""
    seen: list[list[str]] = []
    replies = ["<search>paris</search> It says 7.", " <search>Missing page</search>", "Let me <search>x</search>"]

    def script(messages: Any) -> str:
        seen.append([message.text for message in messages])
        return replies[len(seen) - 1]

    task = fanoutqa_open_book("dev", ids=question_rows("dev")[0]["id"], search="text", context_length=3000)
    (sample,) = run(task, script, tmp_path).samples or []
    assert sample.error is None
    strings = prompts.open_book("official")
    assert seen[0] == [strings.text.filled(question=sample.metadata["question"])]
    assert seen[1][1] == "<search>paris</search>"
    assert seen[1][2].startswith("<document>\n<title>Paris</title>\n<fragment>")
    assert seen[2][-1].startswith("No page with that title exists.")
    assert seen[2][-1].endswith("\n".join(f"<search>Missing page {i}</search>" for i in range(3)))
    # A search counts only at the start of a reply.
    score = (sample.scores or {})["fanoutqa"]
    assert score.answer == "Let me <search>x</search>"
    for part in ("|protocol:official|", f"|prompt:{PROMPTS['open-book-text']}|", "|search:text|", "|wikipedia:dated|"):
        assert part in score.metadata["signatures"]["acc"]
    assert "max_tokens" not in score.metadata["signatures"]["acc"]


def test_a_full_window_drops_the_oldest_messages(mirror: Path, our_wiki: Wiki, tmp_path: Path) -> None:
    seen: list[int] = []

    def script(messages: Any, tools: Any) -> Any:
        seen.append(len(messages))
        assert [tool.name for tool in tools] == ["search"]
        assert tools[0].description == prompts.open_book("official").tool
        assert tools[0].parameters.model_dump(exclude_none=True) == {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        }
        return call("search", query=f"page {len(seen)}") if len(seen) < 5 else ""

    task = fanoutqa_open_book("dev", ids=question_rows("dev")[0]["id"], search="tools", context_length=1500)
    (sample,) = run(task, script, tmp_path).samples or []
    assert sample.error is None
    assert seen[:2] == [1, 3] and max(seen) < 9  # the question is dropped, too
    # The last message with text is the answer, even if the model did not write it.
    assert (sample.scores or {})["fanoutqa"].answer == sample.messages[-2].text != ""


def test_the_room_and_the_time_of_a_question(mirror: Path, our_wiki: Wiki, tmp_path: Path) -> None:
    task = fanoutqa_open_book("dev", ids=question_rows("dev")[0]["id"], search="text", context_length=460)
    (sample,) = run(task, lambda _: "x", tmp_path).samples or []
    # kani keeps 450 tokens free for the reply by default.
    assert sample.error and "but the window has room for 10" in sample.error.message
    runner = mirror / "zhudotexe/fanoutqa/reference/paper_benchmarks/run_openbook.py"
    assert f"timeout={open_book.SECONDS_PER_QUESTION})" in runner.read_text(encoding="utf-8")


def kani_keeps(tokens: list[int], room: int) -> int | None:
    """The number of newest messages that kani 0.7.2 sends (``Kani.get_prompt``); None if it raises
    MessageTooLong.
    """
    left = room
    for count, length in enumerate(reversed(tokens)):
        if length > room:
            return None
        left -= length
        if left < 0:
            return count
    return len(tokens)


@example([[31, 409, 225, 264]], 398)  # kani never looks at the first result, which is too long
@example([[31, 100, 90, 200]], 398)  # the two newest results fit
@example([[31, 380]], 398)  # the only result fits without its call
@given(st.lists(st.lists(st.integers(1, 450), min_size=1, max_size=4), min_size=1, max_size=5), st.integers(200, 900))
def test_the_newest_messages_are_those_of_kani(turns: list[list[int]], room: int) -> None:
    """A turn is a reply and the results of its calls; a result without its call is not sent."""
    messages: list[Any] = []
    for n, turn in enumerate(turns):
        reply = call("search", query="x").message
        reply.tool_calls = [replace(reply.tool_calls[0], id=f"{n}.{i}") for i in range(len(turn) - 1)]
        messages += [reply, *(ChatMessageTool(content="w", tool_call_id=one.id) for one in reply.tool_calls)]
    tokens = [length for turn in turns for length in turn]
    history = open_book._History(CONVERSATION, messages, room, COUNTER, dict(enumerate(tokens)))
    kept = kani_keeps(tokens, room)
    if kept is None:
        with pytest.raises(QabenchError, match="but the window has room for"):
            asyncio.run(history.newest())
        return
    first, *others = asyncio.run(history.newest())
    calls = [call.id for message in (first, *others) for call in getattr(message, "tool_calls", None) or ()]
    results = [message.tool_call_id for message in (first, *others) if message.role == "tool"]
    # OpenAI rejects a call without its result, and a result without its call
    assert calls == results
    theirs = messages[len(messages) - kept :]
    whole = next((i for i, message in enumerate(theirs) if message.role == "assistant"), None)
    if whole is not None:
        assert [first, *others] == theirs[whole:]
    # kani sends results without their call; we send as many of them as fit next to it, and at least
    # one
    else:
        assert others == messages[-len(others) :] and 1 <= len(others) <= kept
        assert len(others) == 1 or sum(tokens[-len(others) :]) + turns[-1][0] <= room


def test_failed_calls_are_worded_as_in_kani(mirror: Path, our_wiki: Wiki, tmp_path: Path) -> None:
    replies = [call("read", title="x"), call("search", query="Missing page"), call("search", title="x")]
    replies += [call("search", query=7), "done"]
    offered: list[int] = []

    def script(messages: Any, tools: Any) -> Any:
        offered.append(len(tools))
        return replies[len(offered) - 1]

    task = fanoutqa_open_book("test", ids=question_rows("test")[0]["id"], search="tools", context_length=9000)
    (sample,) = run(task, script, tmp_path).samples or []
    assert sample.error is None
    results = [message.text for message in sample.messages if message.role == "tool"]
    assert results[0] == "The function 'read' is not defined. Only use the provided functions."
    assert results[1].startswith("No page with that title exists.")
    # Recorded from kani 0.7.2 with pydantic 2.6.4.
    assert results[2] == (
        "2 validation errors for search\nquery\n  Missing required argument [type=missing_argument, "
        "input_value=ArgsKwargs((), {'title': 'x'}), input_type=ArgsKwargs]\n"
        "    For further information visit https://errors.pydantic.dev/2.6/v/missing_argument\n"
        "title\n  Unexpected keyword argument [type=unexpected_keyword_argument, input_value='x', input_type=str]\n"
        "    For further information visit https://errors.pydantic.dev/2.6/v/unexpected_keyword_argument"
    )
    assert results[3] == (
        "1 validation error for search\nquery\n  Input should be a valid string [type=string_type, input_value=7, "
        "input_type=int]\n    For further information visit https://errors.pydantic.dev/2.6/v/string_type"
    )
    assert offered == [1, 1, 1, 1, 0]  # none after two errors in a row


def test_gpt_35_gets_its_own_prompt(mirror: Path, our_wiki: Wiki, tmp_path: Path) -> None:
    seen: list[str] = []
    model = scripted(lambda messages: seen.append(messages[0].text) or "x", "gpt-3.5-turbo-1106")
    task = fanoutqa_open_book("dev", ids=question_rows("dev")[0]["id"], search="tools", context_length=9000)
    (log,) = evaluate(task, model=model, log_dir=str(tmp_path), display="none", log_realtime=False)
    (sample,) = log.samples or []
    assert seen == [prompts.open_book("official").tools_gpt_35.filled(question=sample.metadata["question"])]
    line = (sample.scores or {})["fanoutqa"].metadata["signatures"]["acc"]
    assert f"|prompt:{PROMPTS['open-book-gpt-3.5']}|" in line
    # Words are not counted as kani counts tokens.
    sentence = "room in the context window was measured by the provider of scripted/gpt-3.5-turbo-1106, not by OpenAI's"
    assert any(sentence in deviation for deviation in deviations(line, DECLARATIONS["fanout_acc"]))


def test_tokens_are_counted_as_kani_counts_them(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openai = pytest.importorskip("inspect_ai.model._providers.openai", reason="needs the extra judge")

    async def count(self: Any, text: str) -> int:
        return words_in(text)

    monkeypatch.setattr(openai.OpenAIAPI, "count_text_tokens", count)
    counter = asyncio.run(counter_of(InspectModel(get_model("openai/gpt-4-0613", api_key="k")), None))
    assert (counter.name, asyncio.run(counter.message("a b c"))) == ("the tokenizer of openai/gpt-4-0613" + AS_KANI, 10)
    another = asyncio.run(counter_of(InspectModel(get_model("openai/my-model", api_key="k")), None))
    assert (another.name, another.message_tokens) == ("the provider of openai/my-model", 0)
    strings = prompts.open_book("official")
    search: Any = open_book.OpenBookSearch(CONVERSATION, "", 1, COUNTER, None, None, None, strings)  # type: ignore[arg-type]
    # The description, "//", "type search = (_: {", "query: string,", "}) => any;", and 16 for
    # markup.
    assert asyncio.run(search.tool_tokens()) == words_in(strings.tool) + 1 + 5 + 2 + 3 + 16
    reply, result = call("search", query="a b").message, ChatMessageTool(content="c d", function="search")
    history = open_book._History(CONVERSATION, [reply, result], 1000, COUNTER)
    asyncio.run(history.newest())
    assert history.tokens == {0: 7 + 1 + 3, 1: 7 + 2 + 1}  # search, {"query": "a b"}; c d, search


def test_a_changed_file_is_an_error(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(tmp_path, monkeypatch)
    source = Path("zhudotexe/fanoutqa") / prompts.CLOSED_BOOK_FILE
    (tmp_path / "m" / source).parent.mkdir(parents=True)
    (tmp_path / "m" / source).write_bytes((mirror / source).read_bytes() + b"\n")
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path / "m"))
    for prompt in ("auto", "official"):
        with pytest.raises(DigestMismatch, match=r"run_closedbook\.py"):
            fanoutqa_closed_book("sample", prompt=prompt)
    assert "qabench" in str(fanoutqa_closed_book("sample", prompt="qabench").metadata)
