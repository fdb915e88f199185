"""Pull requests, with the fields that clients read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hub_server.routes import Refusal, Request, Response, route
from hub_server.store import MAIN, Repo, now

if TYPE_CHECKING:
    from hub_server.hub import Hub


def open_discussion(repo: Repo, title: str, description: str, *, pull_request: bool) -> int:
    """Opens a discussion or a draft pull request from the tip of main; returns its number."""
    number = len(repo.discussions) + 1
    repo.discussions.append(
        {
            "num": number, "title": title, "status": "draft" if pull_request else "open", "createdAt": now(),
            "isPullRequest": pull_request, "author": {"name": "tester"}, "repo": {"name": repo.id, "type": repo.kind},
            "events": [_event("comment", {"edited": False, "hidden": False, "latest": {"raw": description}})],
            "changes": {"base": MAIN}, "filesWithConflicts": [],
        }
    )  # fmt: skip
    if pull_request:
        repo.refs[f"refs/pr/{number}"] = repo.refs[MAIN]
    return number


def _event(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"id": "0" * 24, "type": kind, "createdAt": now(), "author": {"name": "tester"}, "data": data}


def _find(repo: Repo, number: str) -> dict[str, Any]:
    if int(number) > len(repo.discussions):
        raise Refusal(404, f"There is no discussion {number}")
    return repo.discussions[int(number) - 1]


@route("POST", "/api/<repo>/discussions")
def create(hub: Hub, request: Request, kind: str, id: str) -> Response:
    repo = hub.writable(kind, id, request.user)
    asked = request.json()
    with hub.lock:
        number = open_discussion(repo, asked["title"], asked["description"], pull_request=asked["pullRequest"])
    return Response.of({"num": number})


@route("GET", "/api/<repo>/discussions")
def listed(hub: Hub, request: Request, kind: str, id: str) -> Response:
    repo = hub.readable(kind, id, request.user)
    status = request.query.get("status", [None])[0]
    found = [one for one in repo.discussions if status in (None, one["status"])]
    return Response.of({"count": len(found), "start": 0, "discussions": found})


@route("GET", r"/api/<repo>/discussions/(?P<number>\d+)")
def details(hub: Hub, request: Request, kind: str, id: str, number: str) -> Response:
    return Response.of(_find(hub.readable(kind, id, request.user), number))


@route("POST", r"/api/<repo>/discussions/(?P<number>\d+)/status")
def status(hub: Hub, request: Request, kind: str, id: str, number: str) -> Response:
    found = _find(hub.writable(kind, id, request.user), number)
    found["status"] = request.json()["status"]
    event = _event("status-change", {"status": found["status"]})
    found["events"].append(event)
    return Response.of({"newStatus": event})


@route("POST", r"/api/<repo>/discussions/(?P<number>\d+)/merge")
def merge(hub: Hub, request: Request, kind: str, id: str, number: str) -> Response:
    """Moves main to the request's last commit; main must not have moved since it was opened."""
    repo = hub.writable(kind, id, request.user)
    found = _find(repo, number)
    with hub.lock:
        tip = repo.commits[repo.refs[f"refs/pr/{number}"]]
        if repo.commits[repo.refs[MAIN]] not in repo.history(tip):
            raise Refusal(409, "main has moved: the test Hub merges only what follows it")
        repo.refs[MAIN] = tip.id
    found["status"] = "merged"
    return Response.of({})
