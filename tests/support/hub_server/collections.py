"""Collections: named lists of repositories."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from hub_server.routes import Refusal, Request, Response, route
from hub_server.store import now

if TYPE_CHECKING:
    from hub_server.hub import Hub

# The Hub's limits, in characters.
LIMITS = {"title": 60, "description": 150, "note": 500}
_LISTED = 4


def _checked(asked: dict[str, Any]) -> dict[str, Any]:
    for name, limit in LIMITS.items():
        if len(asked.get(name) or "") > limit:
            raise Refusal(400, f'"{name}" length must be less than or equal to {limit} characters long')
    return asked


def _writable(hub: Hub, request: Request, slug: str) -> dict[str, Any]:
    if not hub.may_write(slug, request.user):
        raise Refusal(403 if request.user else 401, f"You don't have the rights to change {slug}")
    return _find(hub, request, slug)


def _find(hub: Hub, request: Request, slug: str) -> dict[str, Any]:
    found = hub.collections.get(slug)
    if found is None or (found["private"] and not hub.may_write(slug, request.user)):
        raise Refusal(404, f"Collection not found: {slug}")
    return found


@route("POST", "/api/collections")
def create(hub: Hub, request: Request) -> Response:
    asked = _checked(request.json())
    namespace, title = asked["namespace"], asked["title"]
    if not hub.may_write(namespace, request.user):
        raise Refusal(403 if request.user else 401, f"You don't have the rights to write to {namespace}")
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    slug = f"{namespace}/{words}-{hashlib.sha1(f'{namespace}/{title}'.encode()).hexdigest()[:24]}"
    if slug in hub.collections:
        return Response.of({"error": "A collection with this title exists", "slug": slug}, 409)
    hub.collections[slug] = {
        "slug": slug, "title": title, "description": asked.get("description", ""), "owner": {"name": namespace},
        "private": asked.get("private", False), "theme": "orange", "upvotes": 0, "position": 0, "items": [],
        "lastUpdated": now(),
    }  # fmt: skip
    return Response.of(hub.collections[slug])


@route("GET", "/api/collections")
def listed(hub: Hub, request: Request) -> Response:
    """The collections of an owner that the client may see, each with only its first items."""
    owner = request.query.get("owner", [None])[0]
    found = [one for slug, one in hub.collections.items() if owner in (None, slug.split("/")[0])]
    visible = [one for one in found if not one["private"] or hub.may_write(str(one["slug"]), request.user)]
    return Response.of([{**_without(one, "position"), "items": one["items"][:_LISTED]} for one in visible])


def _without(one: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key != name}


@route("GET", "/api/collections/<slug>")
def details(hub: Hub, request: Request, slug: str) -> Response:
    return Response.of(_find(hub, request, slug))


@route("PATCH", "/api/collections/<slug>")
def update(hub: Hub, request: Request, slug: str) -> Response:
    found = _writable(hub, request, slug)
    found.update(_checked(request.json()))
    return Response.of({"success": True, "data": found})


@route("DELETE", "/api/collections/<slug>")
def delete(hub: Hub, request: Request, slug: str) -> Response:
    _writable(hub, request, slug)
    del hub.collections[slug]
    return Response.of({"success": True})


@route("POST", "/api/collections/<slug>/items")
def add(hub: Hub, request: Request, slug: str) -> Response:
    found, asked = _writable(hub, request, slug), _checked(request.json())
    wanted = {"id": asked["item"]["id"], "type": asked["item"]["type"]}
    hub.readable(f"{wanted['type']}s", wanted["id"], request.user)
    with hub.lock:
        if any(wanted.items() <= item.items() for item in found["items"]):
            raise Refusal(409, f"{wanted['id']} is in the collection already")
        note = {"note": {"text": asked["note"]}} if asked.get("note") else {}
        number = len(found["items"])
        found["items"].append({"_id": f"{number:024x}", "position": number, **wanted, **note})
    return Response.of(found)


def _item(found: dict[str, Any], item: str) -> dict[str, Any]:
    for one in found["items"]:
        if one["_id"] == item:
            return dict(one)
    raise Refusal(404, f"There is no item {item}")


@route("PATCH", "/api/collections/<slug>/items/(?P<item>[0-9a-f]+)")
def update_item(hub: Hub, request: Request, slug: str, item: str) -> Response:
    found, asked = _writable(hub, request, slug), _checked(request.json())
    old = _item(found, item)
    new = old | ({"note": {"text": asked["note"]}} if "note" in asked else {})
    others = [one for one in found["items"] if one["_id"] != item]
    others.insert(asked.get("position", old["position"]), new)
    found["items"] = [one | {"position": position} for position, one in enumerate(others)]
    return Response.of({"success": True, "data": new})


@route("DELETE", "/api/collections/<slug>/items/(?P<item>[0-9a-f]+)")
def delete_item(hub: Hub, request: Request, slug: str, item: str) -> Response:
    found = _writable(hub, request, slug)
    _item(found, item)
    found["items"] = [one for one in found["items"] if one["_id"] != item]
    return Response.of({"success": True})
