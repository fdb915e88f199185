"""Concurrent, cached chat client with retries.

A file lock keeps processes from paying twice.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.pool import ThreadPool
from typing import Any

from filelock import FileLock, Timeout

from qabench.data.rows import Json, without_none
from qabench.errors import InputError, unknown_name
from qabench.evaluation.scoring import Progress
from qabench.io.http import HttpClient, Retry
from qabench.io.http_error import HttpError, causes, first_line, message_in, status_error, text_of
from qabench.io.limits import Limits
from qabench.io.tables import quoted
from qabench.llm.cache import ReplyCache
from qabench.llm.endpoint import Endpoint, resolve_endpoint
from qabench.llm.exchange import MAX_REPLY_BYTES, ChatOutcome, ChatRequest, Reply, read_reply

SECONDS_BETWEEN_LOOKS = 0.2
LOOKS_BEFORE_WARNING = 6
NO_CREDIT = "insufficient_quota"  # OpenAI's code of a status 429 for which waiting does not help
FIRST_WAIT = 0.5  # seconds before the first retry
MAX_WAIT = 120.0  # seconds that a server can ask for
LEAST = {"concurrency": 1, "retries": 0, "timeout": 0.001, "max_calls": 0}
RESERVED = {"model", "messages", "stream", "n"}  # set by the client, not allowed as parameters
# Wrong key, no credit, or unknown model: every further call would fail in the same way.
FATAL = {401, 402, 404}
REQUESTS_OWN_FAULT = {400, 413, 422}  # such as a prompt that is too long: others may succeed
GIVEN_UP = "the endpoint refuses all calls ({})"
# The errors of clients have only the text of the system's error, on Linux and macOS.
NOBODY_THERE = re.compile(
    "Name or service not known|nodename nor servname|Temporary failure in name resolution|"
    "No address associated with hostname|All connection attempts failed|Connection refused|Connect call failed|"
    "No route to host|Network is unreachable"
)
BYTES_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4
EXPECTED_REPLY_TOKENS = 300
ESTIMATE = (
    f"tokens are estimated: {BYTES_PER_TOKEN} bytes of UTF-8 per token of the prompt, and {EXPECTED_REPLY_TOKENS} "
    "tokens per reply (or the limit of the request if it is lower)"
)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens, in any currency: of prompts (``input``) and of replies (``output``)."""

    input: float
    output: float

    def __post_init__(self) -> None:
        if not (self.input >= 0 and self.output >= 0):
            raise InputError(
                f"the prices per million tokens are {self.input} and {self.output}; allowed: 0 or more"
            )

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost of a number of tokens."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls that a run would make, and those in the cache.

    Estimated tokens and cost (None without prices).
    """

    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    def as_dict(self) -> Json:
        """Return the numbers as JSON data, without ``cost`` if it is unknown."""
        return without_none(asdict(self))


@dataclass(frozen=True, slots=True)
class Usage(Plan):
    """The calls that a run made, including ``retried`` ones, replies from the cache, tokens, and the cost."""

    retried: int


def usage_text(usage: Plan, cached: str = "") -> str:
    """Return calls, tokens and cost in words, with ``cached`` after the calls."""
    cost = "" if usage.cost is None else f", cost {usage.cost:.4f}"
    tokens = f"{usage.prompt_tokens:,} prompt tokens, {usage.completion_tokens:,} reply tokens"
    return f"{usage.calls:,} calls{cached}, {tokens}{cost}"


@dataclass(frozen=True)
class Caller:
    """A model at an endpoint, and the limits of calls to it.

    Attributes:
        concurrency: calls in flight.
        retries: of a call that fails for a transient reason.
        timeout: seconds for one call, from sending to the last byte.
        max_calls: calls of a client, including retries.
    """

    endpoint: Endpoint
    model: str
    concurrency: int = 20
    retries: int = 5
    timeout: float = 120.0
    max_calls: int | None = None
    prices: Prices | None = None

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise InputError(f"{name} is {value}; it must be at least {least}")

    def client(self, cache: ReplyCache | None = None) -> ChatClient:
        """Return a client with these limits and a cache of replies, or None for the user's."""
        return ChatClient(self, cache or ReplyCache())


def caller_for(
    model: str, base_url: str | None = None, api_key: str | None = None, **limits: Any
) -> Caller:
    """Return the caller of a model at an endpoint (see ``resolve_endpoint``), with other fields.

    None is the default.

    Raises InputError: no model is given, a limit is unknown or out of range, or the base URL is
    invalid.
    """
    names = list(Caller.__dataclass_fields__)[2:]
    for name in limits.keys() - set(names):
        raise unknown_name("unknown limit", name, names)
    if not model:
        raise InputError("no evaluator model was given: set model=...")
    return Caller(resolve_endpoint(base_url, api_key), model, **without_none(limits))


def merged(defaults: Mapping[str, Any], parameters: Mapping[str, Any] | None) -> Json:
    """Return a request's parameters: the defaults, updated with the user's, where None removes one.

    Or InputError.
    """
    chosen = without_none({**defaults, **(parameters or {})})
    if reserved := RESERVED & set(chosen):
        raise InputError(f"parameters must not contain {', '.join(sorted(reserved))}")
    try:
        json.dumps(chosen)
    except (TypeError, ValueError) as error:
        raise InputError(f"parameters must be JSON data: {error}") from None
    return chosen


@dataclass(frozen=True, slots=True)
class Answered:
    """The text of a reply, or the reason why it is missing.

    ``cut_off`` if the reply reached the token limit.
    """

    text: str | None = None
    reason: str | None = None
    cut_off: bool = False

    @classmethod
    def of(cls, text: str, refusal: str | None = None, *, cut_off: bool = False) -> Answered:
        """Return the text of a reply. A refusal (not None) and an empty reply are reasons."""
        if refusal is not None:
            shown = quoted(refusal or text or "content filter", 120)
            return cls(reason=f"refused: {shown}")
        if not text.strip():
            return cls(reason="the reply is empty" + " (it was cut off)" * cut_off, cut_off=cut_off)
        return cls(text, cut_off=cut_off)


def answered(outcome: ChatOutcome) -> Answered:
    """Return the text of an outcome, or the reason why it is missing.

    Refusals and empty replies count as missing.
    """
    reply = outcome.reply
    if reply is None:
        return Answered(reason=outcome.reason or "no reply")
    refusal = reply.refusal or ("" if reply.finish_reason == "content_filter" else None)
    return Answered.of(reply.text, refusal, cut_off=reply.finish_reason == "length")


def models_of(outcomes: Sequence[ChatOutcome]) -> list[str]:
    """Return the models that the server reports, with their fingerprints."""
    replies = [outcome.reply for outcome in outcomes if outcome.reply and outcome.reply.model]
    return sorted({" ".join(filter(None, (reply.model, reply.fingerprint))) for reply in replies})


_guard = threading.Lock()


class ChatClient:
    """Sends requests to a model concurrently, and stores every reply in a cache.

    While this process calls a model of an endpoint, other processes wait, and then use its replies.
    """

    def __init__(self, caller: Caller, cache: ReplyCache) -> None:
        self.caller, self.endpoint, self.cache = caller, caller.endpoint, cache
        # Calls include retries. Tokens are counted for successful calls, by the server, or
        # else estimated.
        self.calls = self.prompt_tokens = self.completion_tokens = 0
        self.called: set[bytes] = set()
        seconds = caller.timeout
        limits = Limits(MAX_REPLY_BYTES, seconds, seconds)
        retry = Retry(caller.retries + 1, FIRST_WAIT, MAX_WAIT)
        self.http = HttpClient(limits, retry=retry, in_flight=caller.concurrency)
        self.unusable = self.endpoint.why_unusable  # why no further call can succeed
        self.reached = False  # the server has answered a call, possibly with an error
        self.answers = False  # the server has replied, or rejected a request because of its content
        self._counting = threading.Lock()

    def cached(self, requests: Sequence[ChatRequest]) -> dict[bytes, ChatOutcome]:
        """Return the outcomes of requests whose replies are in the cache, by key.

        An empty reply is not reused: the model is asked again.
        """
        replies = self.cache.find(self._by_key(requests))
        self.cache.close()
        return {
            key: ChatOutcome(reply, cached=True) for key, reply in replies.items() if not reply.is_empty
        }

    def plan(self, requests: Sequence[ChatRequest], prices: Prices | None = None) -> Plan:
        """Return the calls that ``complete`` would make, without making them.

        ``prices`` replace those of the caller.
        """
        by_key = self._by_key(requests)
        cached = self.cached(requests)
        rest = [request for key, request in by_key.items() if key not in cached]
        prompts, replies = sum(map(prompt_tokens, rest)), sum(map(reply_tokens, rest))
        chosen = prices or self.caller.prices
        cost = chosen.cost(prompts, replies) if chosen else None
        return Plan(len(rest), len(cached), prompts, replies, cost)

    def usage(self, outcomes: Sequence[ChatOutcome]) -> Usage:
        """Return the usage of all calls of this client, which had these outcomes."""
        prompts, replies = self.prompt_tokens, self.completion_tokens
        cached = sum(outcome.cached for outcome in outcomes)
        cost = self._cost(prompts, replies)
        retried = self.calls - len(self.called)
        return Usage(self.calls, cached, prompts, replies, cost, retried)

    def complete(
        self,
        requests: Sequence[ChatRequest],
        progress: Progress | None = None,
        *,
        first_alone: bool = False,
    ) -> list[ChatOutcome]:
        """Return one outcome per request, which all have one model, in order. Equal requests are sent once.

        With ``first_alone``, the first call of the client is a probe: the others wait for it, and are
        not sent if the server does not answer it.

        If interrupted, it does not wait for the calls in flight. Replies received so far are in the
        cache.

        Raises:
            MissingExtra: calls are needed and the openai package is not installed.
        """
        by_key = self._by_key(requests)
        outcomes: dict[bytes, ChatOutcome] = {}

        report = progress or (lambda done, in_all: None)

        def missing() -> list[tuple[bytes, ChatRequest]]:
            for key, reply in self.cache.find(by_key.keys() - outcomes.keys()).items():
                if not reply.is_empty:
                    outcomes[key] = ChatOutcome(reply, cached=True)
            report(len(outcomes), len(by_key))
            return [item for item in by_key.items() if item[0] not in outcomes]

        try:
            if rest := missing():
                session = self.endpoint.openai_client(self.http.session)
                # The threads are daemons: an interrupted process ends without them.
                size = min(self.caller.concurrency, len(rest))
                with self._turn(rest[0][1].model), ThreadPool(size) as threads:
                    work = partial(self._outcome, session)
                    rest = missing()
                    if first_alone and rest and not self.answers:
                        key, outcome = work(rest.pop(0))
                        outcomes[key] = outcome
                        if outcome.reply is None and not self.answers and not self.unusable:
                            self.unusable = f"the endpoint does not answer ({outcome.reason})"
                        report(len(outcomes), len(by_key))
                    for key, outcome in threads.imap_unordered(work, rest):
                        outcomes[key] = outcome
                        report(len(outcomes), len(by_key))
        except BaseException:
            self.http.close()  # ends the waits between attempts
            raise
        finally:
            self.cache.close()
        return [outcomes[request.key(self.endpoint.base_url)] for request in requests]

    def _by_key(self, requests: Sequence[ChatRequest]) -> dict[bytes, ChatRequest]:
        return {request.key(self.endpoint.base_url): request for request in requests}

    def _cost(self, prompts: int, replies: int) -> float | None:
        return self.caller.prices.cost(prompts, replies) if self.caller.prices else None

    @contextmanager
    def _turn(self, model: str) -> Iterator[None]:
        """Wait until no other process calls the model. All threads of a process share its turn."""
        judge = hashlib.sha256(f"{self.endpoint.base_url} {model}".encode()).hexdigest()[:16]
        path = self.cache.path.with_name(f"{self.cache.path.name}.{judge}.lock")
        lock = FileLock(path, thread_local=False, is_singleton=True)  # counts its users here
        for attempt in itertools.count(1):
            try:
                with _guard:
                    lock.acquire(timeout=0)
                break
            except Timeout:
                if attempt == LOOKS_BEFORE_WARNING:
                    message = f"another process is calling {model}: waiting until it has ended, to use its replies"
                    warnings.warn(message, stacklevel=2)
            except OSError:  # a folder that cannot be written. The cache cannot be used either
                break
            time.sleep(SECONDS_BETWEEN_LOOKS)
        try:
            yield
        finally:
            with _guard:
                lock.release()

    def _outcome(self, session: Any, item: tuple[bytes, ChatRequest]) -> tuple[bytes, ChatOutcome]:
        """Return the key of a request and its outcome, after retries."""
        key, request = item
        try:
            reply = self.http.retrying(lambda: self._call(session, key, request))
        except HttpError as error:
            return key, ChatOutcome(reason=str(error))
        reply = self.cache.store(key, request, reply)
        prompts, replies = reply.prompt_tokens, reply.completion_tokens
        with self._counting:
            self.prompt_tokens += prompt_tokens(request) if prompts is None else prompts
            self.completion_tokens += reply_tokens(request) if replies is None else replies
        return key, ChatOutcome(reply)

    def _call(self, session: Any, key: bytes, request: ChatRequest) -> Reply:
        """Return the reply to one call, or raise HttpError."""
        import openai

        with self._counting:
            if self.unusable:
                raise HttpError("not sent", self.unusable)
            if self.caller.max_calls is not None and self.calls >= self.caller.max_calls:
                limit = f"the limit of {self.calls} calls (max_calls) was reached"
                raise HttpError("not sent", limit)
            self.calls += 1
            self.called.add(key)
        try:
            response = session.chat.completions.with_raw_response.create(**request.body())
        except openai.APIStatusError as error:
            self.reached = True
            self.answers = self.answers or error.status_code in REQUESTS_OWN_FAULT
            raise self._rejection(error.response) from error
        except Exception as error:  # whatever a server's answer causes in openai or httpx2
            failure = reason_of(error)
            # An argument that openai does not know stays unknown.
            failure.transient &= isinstance(error, openai.APIConnectionError)
            # a server that has answered before may come back
            failure.unreachable = failure.unreachable and not self.reached
            if failure.unreachable:
                self.unusable = GIVEN_UP.format(failure)
            raise failure from None
        self.reached = True
        reply = read_reply(text_of(response.http_response))
        self.answers = True
        return reply

    def _rejection(self, response: Any) -> HttpError:
        """Return the error of a response without success."""
        body = text_of(response)
        error = status_error(response, body, "HTTP")
        if error.status in FATAL or NO_CREDIT in body:
            error.transient = False
            self.unusable = GIVEN_UP.format(error)
        if error.status in (401, 403) and self.endpoint.withheld:
            error.detail += f"; {self.endpoint.withheld}"
        return error


def prompt_tokens(request: ChatRequest) -> int:
    """Return the estimated number of tokens of a prompt.

    Real tokenizers need a download and differ by model.
    """
    sizes = [len(text.encode("utf-8", "replace")) for _, text in request.messages]
    return sum(-(-size // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE for size in sizes)


def reply_tokens(request: ChatRequest) -> int:
    """Return the estimated number of tokens of a reply."""
    limits = [request.parameters.get(name) for name in ("max_tokens", "max_completion_tokens")]
    return min([EXPECTED_REPLY_TOKENS, *(limit for limit in limits if isinstance(limit, int))])


def reason_of(error: BaseException) -> HttpError:
    """Return the failure of a call that a library made: a status with its message, or the connection's.

    Its text is the same for equal failures. It is ``unreachable`` if nobody is at the address.
    """
    chain = list(causes(error))
    for link in chain:
        if isinstance(link, HttpError):  # of the transport
            return link
        if isinstance(status := getattr(link, "status_code", None), int):
            message = next(filter(None, map(_body_message, chain)), "") or _message(link)
            return HttpError(f"HTTP {status}", message, status=status)
    url = next(filter(None, map(_url, chain)), "")
    reason = _message(chain[-1]) or type(chain[-1]).__name__
    if any("Timeout" in type(link).__name__ for link in chain):
        reason = "no reply in time"
    nobody = any(NOBODY_THERE.search(str(link)) for link in chain)
    return HttpError(reason, url, transient=True, unreachable=nobody)


def _body_message(error: BaseException) -> str:
    return message_in(getattr(error, "body", None))


def _message(error: BaseException) -> str:
    # Inspect's own message begins with the whole request.
    text = getattr(error, "provider_message", None) or getattr(error, "message", None) or error
    return _body_message(error) or first_line(str(text))


def _url(error: BaseException) -> str:
    with suppress(AttributeError, RuntimeError):  # httpx raises if there is no request
        return str(error.request.url)  # type: ignore[attr-defined]
    return ""
