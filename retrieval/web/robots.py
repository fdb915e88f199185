"""robots.txt of hosts, as RFC 9309 describes it."""

from __future__ import annotations

from functools import cache
from typing import Any

from qabench.errors import MissingExtra
from qabench.retrieval.web.extract import EXTRA
from qabench.retrieval.web.transfer import Response, Unread

AGENT = "qabench"
LARGEST = 500 << 10  # bytes that are read, as the RFC asks for at least


def rules_of(response: Response) -> str:
    """The rules in a response: everything is allowed where the host has none (4xx), nothing after other failures.

    Raises:
        Unread: the server failed (5xx, 429), so that its rules are unknown.
    """
    if response.status == 200:
        return response.body[:LARGEST].decode("utf-8", "replace")
    if 400 <= response.status < 500 and response.status != 429:
        return ""
    raise Unread("robots.txt", f"status {response.status}", passing=True)


def allows(rules: str, url: str) -> bool:
    """Whether the rules allow qabench to fetch a URL."""
    return bool(_parsed(rules).can_fetch(url, AGENT))


def crawl_delay(rules: str) -> float:
    """The seconds between requests that the rules ask for; 0 if they do not."""
    return float(_parsed(rules).crawl_delay(AGENT) or 0)


@cache
def _parser() -> Any:
    try:
        import protego
    except ImportError as error:
        raise MissingExtra(f"fetching web pages needs {error.name}: {EXTRA}") from None
    return protego.Protego


def _parsed(rules: str) -> Any:
    return _parser().parse(rules)
