"""Concurrent chat client with retries and a cache of replies.

A file lock lets only one process at a time call a model, so that no reply is paid for twice.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.pool import ThreadPool
from typing import Any

from filelock import FileLock, Timeout

from qabench.data.rows import Json, without_none
from qabench.errors import InputError
from qabench.evaluation.scoring import Progress
from qabench.io.http import HttpClient, Retry
from qabench.io.http_error import FATAL, HttpError, reason_of, status_error, text_of
from qabench.io.limits import Limits
from qabench.io.redaction import write_line
from qabench.llm.cache import ReplyCache
from qabench.llm.caller import Caller, Prices
from qabench.llm.exchange import MAX_REPLY_BYTES, ChatOutcome, ChatRequest, Reply, read_reply
from qabench.llm.token_estimates import prompt_tokens, reply_tokens

# How often a process checks whether another one, which calls the same model, has finished.
SECONDS_BETWEEN_LOOKS = 0.2
LOOKS_BEFORE_WARNING = 6
# OpenAI sends this code with a status 429 for which waiting does not help.
NO_CREDIT = "insufficient_quota"
# Seconds before the first retry.
FIRST_WAIT = 0.5
# A request fails at once if the server asks for a longer wait, in seconds.
MAX_WAIT = 120.0
# The client sets these, so they are not allowed as parameters.
RESERVED = {"model", "messages", "stream", "n"}
# Status codes for a mistake in one request, such as a prompt that is too long. Other requests may
# succeed.
REQUESTS_OWN_FAULT = {400, 413, 422}
GIVEN_UP = "the endpoint refuses all calls ({})"
WAITING = (
    "qabench: waiting for the replies in flight, which are kept (press Ctrl-C again to stop now)"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The calls that a run would make, and the replies that are in the cache.

    Tokens and cost are estimates. Without prices, the cost is None.
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
    """The calls that a run made, including the ``retried`` ones, with tokens and cost.

    Replies from the cache are counted separately.
    """

    retried: int


def usage_text(usage: Plan, cached: str = "") -> str:
    """Return calls, tokens and cost in words, with ``cached`` after the calls."""
    cost = "" if usage.cost is None else f", cost {usage.cost:.4f}"
    tokens = f"{usage.prompt_tokens:,} prompt tokens, {usage.completion_tokens:,} reply tokens"
    return f"{usage.calls:,} calls{cached}, {tokens}{cost}"


def merged(defaults: Mapping[str, Any], parameters: Mapping[str, Any] | None) -> Json:
    """Return a request's parameters: the defaults, updated with the user's.

    None as a user's value removes a parameter.

    Raises:
        InputError: a parameter is reserved, or a value is not JSON data.
    """
    chosen = without_none({**defaults, **(parameters or {})})
    if reserved := RESERVED & set(chosen):
        raise InputError(f"parameters must not contain {', '.join(sorted(reserved))}")
    try:
        json.dumps(chosen)
    except (TypeError, ValueError) as error:
        raise InputError(f"parameters must be JSON data: {error}") from None
    return chosen


def models_of(outcomes: Sequence[ChatOutcome]) -> list[str]:
    """Return the models that the server reports, with their fingerprints."""
    models = set()
    for outcome in outcomes:
        reply = outcome.reply
        if reply and reply.model:
            models.add(" ".join(filter(None, (reply.model, reply.fingerprint))))
    return sorted(models)


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
        # Why no further call can succeed, or None.
        self.unusable = self.endpoint.why_unusable
        # Whether the server has answered a call, possibly with an error.
        self.reached = False
        # Whether the server has replied, or has rejected a request because of its content.
        self.answers = False
        # Whether Ctrl-C was pressed.
        self.is_stopped = False
        # The number of requests whose replies are still to come or to be stored.
        self.in_flight = 0
        self._counting = threading.Condition()

    def cached(self, requests: Sequence[ChatRequest]) -> dict[bytes, ChatOutcome]:
        """Return, by key, the outcomes of the requests that have a nonempty reply in the cache."""
        replies = self.cache.find(self._by_key(requests))
        self.cache.close()
        outcomes = {}
        for key, reply in replies.items():
            if not reply.is_empty:
                # After an empty reply, the model is asked again.
                outcomes[key] = ChatOutcome(reply, cached=True)
        return outcomes

    def plan(self, requests: Sequence[ChatRequest], prices: Prices | None = None) -> Plan:
        """Return the calls that ``complete`` would make, without making them.

        Args:
            requests: the requests.
            prices: prices that replace the caller's.
        """
        by_key = self._by_key(requests)
        cached = self.cached(requests)
        rest = [request for key, request in by_key.items() if key not in cached]
        prompts, replies = sum(map(prompt_tokens, rest)), sum(map(reply_tokens, rest))
        chosen = prices or self.caller.prices
        cost = chosen.cost(prompts, replies) if chosen else None
        return Plan(len(rest), len(cached), prompts, replies, cost)

    def usage(self, outcomes: Sequence[ChatOutcome]) -> Usage:
        """Return the usage of all calls of this client, given the outcomes of all its requests."""
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
        """Return one outcome per request, in order.

        All requests must have the same model. Equal requests are sent once.

        With ``first_alone``, the first call of the client is a probe: the others wait for it, and
        are not sent if the server does not answer it.

        If interrupted, no further call is sent, and the replies in flight, which have to be paid
        for, are awaited. A second Ctrl-C ends the wait. Replies received so far are in the cache.

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
                # The threads are daemons, so an interrupted process does not wait for them.
                size = min(self.caller.concurrency, len(rest))
                model = rest[0][1].model
                with self._sending() as session, self._turn(model), ThreadPool(size) as threads:
                    work = partial(self._outcome, session)
                    # While this process waited, another one may have stored replies.
                    rest = missing()
                    try:
                        if first_alone and rest and not self.answers:
                            # The call runs in a thread, so that an interrupt does not end it.
                            key, outcome = threads.apply(work, (rest.pop(0),))
                            outcomes[key] = outcome
                            if outcome.reply is None and not self.answers and not self.unusable:
                                self.unusable = f"the endpoint does not answer ({outcome.reason})"
                            report(len(outcomes), len(by_key))
                        for key, outcome in threads.imap_unordered(work, rest):
                            outcomes[key] = outcome
                            report(len(outcomes), len(by_key))
                    except KeyboardInterrupt:
                        self._await_replies()
                        raise
        except BaseException:
            # Closing the client also ends the waits between attempts.
            self.http.close()
            raise
        finally:
            self.cache.close()
        return [outcomes[request.key(self.endpoint.base_url)] for request in requests]

    def _await_replies(self) -> None:
        """Send no further call, and wait until the replies in flight are stored."""
        with self._counting:
            self.is_stopped = True
            self.http.end_waits()
            if self.in_flight:
                write_line(WAITING, sys.stderr)
            self._counting.wait_for(lambda: not self.in_flight)

    @contextmanager
    def _sending(self) -> Iterator[Any]:
        """Yield the session that sends the calls of one ``complete``."""
        yield self.endpoint.openai_client(self.http.session)

    def _by_key(self, requests: Sequence[ChatRequest]) -> dict[bytes, ChatRequest]:
        return {request.key(self.endpoint.base_url): request for request in requests}

    def _cost(self, prompts: int, replies: int) -> float | None:
        return self.caller.prices.cost(prompts, replies) if self.caller.prices else None

    @contextmanager
    def _turn(self, model: str) -> Iterator[None]:
        """Wait until no other process calls the model. All threads of a process share its turn."""
        judge = hashlib.sha256(f"{self.endpoint.base_url} {model}".encode()).hexdigest()[:16]
        path = self.cache.path.with_name(f"{self.cache.path.name}.{judge}.lock")
        # A singleton lock counts its users in this process, so all threads share the turn.
        lock = FileLock(path, thread_local=False, is_singleton=True)
        for attempt in itertools.count(1):
            try:
                with _guard:
                    lock.acquire(timeout=0)
                break
            except Timeout:
                if attempt == LOOKS_BEFORE_WARNING:
                    message = f"another process is calling {model}: waiting until it has ended, to use its replies"
                    warnings.warn(message, stacklevel=2)
            except OSError:
                # The folder cannot be written, so the cache cannot be used either.
                break
            time.sleep(SECONDS_BETWEEN_LOOKS)
        try:
            yield
        finally:
            with _guard:
                lock.release()

    def _outcome(self, session: Any, item: tuple[bytes, ChatRequest]) -> tuple[bytes, ChatOutcome]:
        """Send a request, with retries, store the reply, and return its key and its outcome."""
        key, request = item
        with self._counted():
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

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a request as in flight until its reply is stored."""
        with self._counting:
            self.in_flight += 1
        try:
            yield
        finally:
            with self._counting:
                self.in_flight -= 1
                self._counting.notify_all()

    def _call(self, session: Any, key: bytes, request: ChatRequest) -> Reply:
        """Count one call, and return its reply, or raise HttpError."""
        with self._counting:
            if self.unusable:
                raise HttpError("not sent", self.unusable)
            if self.is_stopped:
                raise HttpError("not sent", "interrupted")
            if self.caller.max_calls is not None and self.calls >= self.caller.max_calls:
                limit = f"the limit of {self.calls} calls (max_calls) was reached"
                raise HttpError("not sent", limit)
            self.calls += 1
            self.called.add(key)
        return self._ask(session, request)

    def _ask(self, session: Any, request: ChatRequest) -> Reply:
        """Return the reply of the server to one call, or raise HttpError."""
        import openai

        try:
            response = session.chat.completions.with_raw_response.create(**request.body())
        except openai.APIStatusError as error:
            self.reached = True
            self.answers = self.answers or error.status_code in REQUESTS_OWN_FAULT
            raise self._rejection(error.response) from error
        except Exception as error:
            # A server's answer can cause any error in openai or httpx2.
            failure = reason_of(error)
            # A retry would end with the same exception, such as for an argument that openai does not
            # know, unless the connection failed.
            failure.transient &= isinstance(error, openai.APIConnectionError)
            # A server that has answered before may come back.
            failure.unreachable = failure.unreachable and not self.reached
            if failure.unreachable:
                self.unusable = GIVEN_UP.format(failure)
            raise failure from None
        self.reached = True
        reply = read_reply(text_of(response.http_response))
        self.answers = True
        return reply

    def _rejection(self, response: Any) -> HttpError:
        """Return the error for a response with an error status."""
        body = text_of(response)
        error = status_error(response, body, "HTTP")
        if error.status in FATAL or NO_CREDIT in body:
            error.transient = False
            self.unusable = GIVEN_UP.format(error)
        if error.status in (401, 403) and self.endpoint.withheld:
            error.detail += f"; {self.endpoint.withheld}"
        return error
