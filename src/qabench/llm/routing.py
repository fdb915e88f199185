"""Chooses a model's chat client: for an OpenAI-compatible server, or for Inspect AI."""

from __future__ import annotations

from qabench.llm.cache import ReplyCache
from qabench.llm.caller import Caller
from qabench.llm.client import ChatClient
from qabench.llm.endpoint import INSPECT


def client_for(caller: Caller, cache: ReplyCache | None = None) -> ChatClient:
    """Return a client with a caller's limits. By default, it uses the user's cache of replies."""
    chosen_cache = cache or ReplyCache()
    if caller.endpoint.base_url.startswith(INSPECT):
        from qabench.llm.inspect_client import InspectClient

        return InspectClient(caller, chosen_cache)
    return ChatClient(caller, chosen_cache)
