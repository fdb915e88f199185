"""Requests and responses for the parts of the Hub, and their routes."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from hub_server.hub import Hub


@dataclass
class Request:
    """One request; ``path`` is still quoted, ``user`` is None where no valid token came with it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    user: str | None = None

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query)

    def flag(self, name: str) -> bool:
        return self.query.get(name, ["false"])[0].lower() in ("1", "true")

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Response:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any, status: int = 200, **headers: str) -> Response:
        return cls(status, json.dumps(data).encode(), {"Content-Type": "application/json", **headers})


class Refusal(Exception):
    """An error response: its status, message and the Hub's error code."""

    def __init__(self, status: int, message: str, code: str | None = None, **headers: str) -> None:
        super().__init__(message)
        named = {"X-Error-Code": code} if code else {}
        self.response = Response.of(
            {"error": message}, status, **{"X-Error-Message": message, **named, **headers}
        )  # fmt: skip


Answer = Callable[..., Response]
_ROUTES: list[tuple[str, re.Pattern[str], Answer]] = []
# Shorthands in patterns; what a group matches is unquoted.
_NAMES = {
    "<repo>": r"(?P<kind>models|datasets|spaces)/(?P<id>[^/]+/[^/]+)",
    "<revision>": r"(?P<revision>[^/]+)",
    "<slug>": r"(?P<slug>[^/]+/[^/]+)",
}


def route(method: str, pattern: str) -> Callable[[Answer], Answer]:
    """Registers a function for requests with this method whose whole path matches."""
    for name, meaning in _NAMES.items():
        pattern = pattern.replace(name, meaning)

    def take(answer: Answer) -> Answer:
        _ROUTES.append((method, re.compile(pattern), answer))
        return answer

    return take


def answer(hub: Hub, request: Request) -> Response:
    method = "GET" if request.method == "HEAD" else request.method
    for known, pattern, function in _ROUTES:
        if known == method and (found := pattern.fullmatch(request.path)):
            groups = {name: unquote(text) for name, text in found.groupdict().items() if text is not None}
            try:
                return function(hub, request, **groups)
            except Refusal as refusal:
                return refusal.response
            except Exception as error:  # 400, because clients would try again and again after 500
                traceback.print_exc()
                return Refusal(400, f"The test Hub itself failed: {type(error).__name__}: {error}").response
    return Refusal(404, f"The test Hub does not know {request.method} {request.path}").response
