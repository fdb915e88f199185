"""Judges and evaluators at any Inspect AI provider: anthropic/NAME, google/NAME, hf/NAME, ...

Inspect sends the calls. Everything else is inherited from the chat client: the cache of replies,
the lock between processes, limits, retries, and errors in one line.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from math import inf
from typing import Any

from qabench.data.rows import Json
from qabench.errors import InputError, MissingExtra
from qabench.io.http_error import FATAL, RETRIED_STATUS, HttpError, first_line, reason_of
from qabench.llm.call_gate import IN_JUDGE
from qabench.llm.caller import Caller
from qabench.llm.client import GIVEN_UP, REQUESTS_OWN_FAULT, ChatClient
from qabench.llm.endpoint import IN_PROCESS
from qabench.llm.exchange import (
    SURROGATE,
    TOO_LONG,
    ChatRequest,
    Reply,
    limited_replies,
    too_long,
)
from qabench.llm.inspect_providers import check_provider, quiet_transformers, unknown_argument

FINISH_REASONS = {"max_tokens": "length", "model_length": "length"}
# Parameters of OpenAI's API -> Inspect's names for them, where these differ.
OPTIONS = {"max_completion_tokens": "max_tokens", "stop": "stop_seqs"}
# Closing a connection must not keep a finished command from ending.
SECONDS_TO_CLOSE = 5.0


class InspectClient(ChatClient):
    """A chat client whose calls go through an Inspect AI provider."""

    @contextmanager
    def _sending(self) -> Iterator[Any]:
        """Yield a session with an event loop in a thread, where the provider keeps connections.

        Nothing waits for the thread when the process ends, because it is a daemon: a provider may
        not answer for minutes.
        """
        try:
            import inspect_ai  # noqa: F401
        except ImportError:
            raise MissingExtra(
                f'the model {self.caller.model} needs Inspect AI: pip install "qabench[run]"; or give --base-url '
                "for an OpenAI-compatible server"
            ) from None
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_run, args=[loop], name="qabench-judge", daemon=True)
        thread.start()
        session = _Session(self.caller, loop)
        try:
            with _limited_once():
                yield session
        finally:
            session.close()
            loop.call_soon_threadsafe(loop.stop)
            thread.join(SECONDS_TO_CLOSE)

    def _ask(self, session: Any, request: ChatRequest) -> Reply:
        """Return the reply to one call, or raise HttpError."""
        try:
            output = session.generate(request)
        except (HttpError, InputError):
            raise
        except Exception as error:
            # The errors of client libraries have no common base class.
            failure = reason_of(_cause(error))
            status = failure.status or 0
            failure.transient = failure.transient or status in RETRIED_STATUS or status >= 500
            self.reached = self.reached or failure.status is not None
            self.answers = self.answers or failure.status in REQUESTS_OWN_FAULT
            # A provider that has answered before may come back.
            failure.unreachable = failure.unreachable and not self.reached
            if failure.status in FATAL or failure.unreachable:
                failure.transient = False
                self.unusable = GIVEN_UP.format(failure)
            raise failure from None
        if too_long(output):
            raise HttpError(TOO_LONG, "")
        if output.error and not output.completion:
            raise HttpError(str(output.error), "")
        self.reached = self.answers = True
        usage = output.usage
        return Reply(
            output.completion,
            finish_reason=FINISH_REASONS.get(output.stop_reason, output.stop_reason),
            model=output.model or None,
            prompt_tokens=usage.input_tokens if usage else None,
            completion_tokens=usage.output_tokens if usage else None,
        )


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _cause(error: BaseException) -> BaseException:
    """Return the error that Inspect's retries ended with."""
    attempt = getattr(error, "last_attempt", None)
    return (attempt.exception() or error) if attempt is not None else error


_guard = threading.Lock()
_limits: list[ExitStack] = []
_users = 0


@contextmanager
def _limited_once() -> Iterator[None]:
    """Enter ``limited_replies`` once for all judges of the process.

    It replaces a method of the HTTP clients' class. If each judge entered it, the first one to end
    would restore the method for the others.
    """
    global _users
    with _guard:
        if not _users:
            stack = ExitStack()
            stack.enter_context(limited_replies())
            _limits.append(stack)
        _users += 1
    try:
        yield
    finally:
        with _guard:
            _users -= 1
            if not _users:
                _limits.pop().close()


class _Session:
    """An Inspect model that is called in a separate event loop."""

    def __init__(self, caller: Caller, loop: asyncio.AbstractEventLoop) -> None:
        self.caller, self.loop = caller, loop
        self.models: dict[bool, Any] = {}
        self.loading = threading.Lock()

    def generate(self, request: ChatRequest) -> Any:
        """Return the provider's output for a request."""
        options = self._options(request)
        # Models in this process sample unless ``do_sample`` is false.
        is_in_process = self.caller.model.startswith(IN_PROCESS)
        is_greedy = is_in_process and options.get("temperature") == 0
        if is_greedy:
            options.pop("temperature")
        with self.loading:
            # Load the weights before the call: loading may take longer than the timeout of a call.
            model = asyncio.run_coroutine_threadsafe(self._model(is_greedy), self.loop).result()
        call = asyncio.run_coroutine_threadsafe(self._generate(model, request, options), self.loop)
        timeout = None if self.caller.timeout == inf else self.caller.timeout
        try:
            return call.result(timeout)
        except TimeoutError:
            call.cancel()
            # A model in this process goes on generating, so a retry would only wait for it.
            raise HttpError("no reply in time", "", transient=not is_in_process) from None

    def close(self) -> None:
        """Close the connections of the models, unless that takes too long."""
        closing = asyncio.run_coroutine_threadsafe(self._close(), self.loop)
        with suppress(Exception):
            # A provider may raise anything here, and nothing depends on the result.
            closing.result(SECONDS_TO_CLOSE)

    async def _close(self) -> None:
        for model in self.models.values():
            await model.api.aclose()

    async def _generate(self, model: Any, request: ChatRequest, options: Json) -> Any:
        from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig

        # Each call runs in its own context, so the value is reset when the call ends.
        IN_JUDGE.set(True)
        kinds: dict[str, Any] = {"system": ChatMessageSystem, "user": ChatMessageUser}
        messages = [
            kinds[role](content=SURROGATE.sub("\ufffd", text)) for role, text in request.messages
        ]
        return await model.generate(messages, config=GenerateConfig(**options), cache=False)

    def _options(self, request: ChatRequest) -> Json:
        """Return the parameters of a request by Inspect's names. Raises InputError."""
        from inspect_ai.model import GenerateConfig

        options = {OPTIONS.get(name, name): value for name, value in request.parameters.items()}
        unknown = [name for name in options if name not in GenerateConfig.model_fields]
        if unknown:
            raise InputError(
                f"Inspect AI has no generation option {unknown[0]!r}; a server at --base-url gets any parameter"
            )
        return options

    async def _model(self, is_greedy: bool) -> Any:
        """Return the model. It is created in the event loop, to which its connections belong."""
        if is_greedy not in self.models:
            from inspect_ai.model import GenerateConfig, get_model

            arguments = dict(self.caller.model_args)
            if is_greedy:
                arguments["do_sample"] = False
            # The chat client retries instead, and counts retries as calls.
            config = GenerateConfig(max_retries=0, max_connections=self.caller.concurrency)
            if self.caller.model.startswith(IN_PROCESS):
                quiet_transformers()
            check_provider(self.caller.model)
            try:
                self.models[is_greedy] = get_model(
                    self.caller.model, config=config, memoize=False, **arguments
                )
            except TypeError as error:
                reason = unknown_argument(error) or first_line(str(error))
                raise InputError(f"the model {self.caller.model} was given {reason}") from error
            except Exception as error:
                # A package or key may be missing.
                raise InputError(
                    f"the model {self.caller.model} cannot be used: {first_line(str(error))}"
                ) from error
        return self.models[is_greedy]
