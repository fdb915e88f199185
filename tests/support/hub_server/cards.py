"""The metadata of a card, validated for the fields that this project's cards use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml  # type: ignore[import-untyped]

from hub_server.routes import Request, Response, route

if TYPE_CHECKING:
    from hub_server.hub import Hub

COLORS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
SDKS = ("gradio", "docker", "static", "streamlit")
LICENSES = (
    "apache-2.0", "mit", "bsd-3-clause", "gpl-3.0", "cc0-1.0", "cc-by-4.0", "cc-by-3.0", "cc-by-sa-3.0", "cc-by-sa-4.0",
    "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "cc-by-nd-4.0", "cc", "odc-by", "odbl", "other", "unknown",
)  # fmt: skip
SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M")


def card_data(text: str) -> dict[str, Any]:
    """The metadata of a card; empty if it is missing or invalid."""
    found = re.match(r"---\s*\n(.*?)\n---\s*(\n|$)", text, re.DOTALL)
    try:
        data = yaml.safe_load(found[1]) if found else {}
    except yaml.YAMLError:
        return {}
    return data if isinstance(data, dict) else {}


@route("POST", "/api/validate-yaml")
def validate(hub: Hub, request: Request) -> Response:
    asked = request.json()
    content, kind = asked["content"], asked.get("repoType") or "model"
    data = card_data(content)
    errors: list[str] = []
    warnings: list[str] = []
    if content.startswith("---") and not data:
        errors.append("The metadata is no YAML mapping")
    elif not data:
        warnings.append("empty or missing yaml metadata in repo card")
    errors += [_not_of("license", LICENSES, value) for value in _list(data.get("license")) if value not in LICENSES]
    errors += _space(data) if kind == "space" else _dataset(data) if kind == "dataset" else []
    told = {name: [{"message": text} for text in texts] for name, texts in (("errors", errors), ("warnings", warnings))}
    return Response.of(told, 400 if errors else 200)


def _not_of(name: str, allowed: tuple[str, ...], value: Any) -> str:
    return f'"{name}" must be one of {", ".join(allowed)}; got {value!r}'


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _space(data: dict[str, Any]) -> list[str]:
    errors = [] if data.get("sdk") in SDKS else [_not_of("sdk", SDKS, data.get("sdk"))]
    colors = {name: data[name] for name in ("colorFrom", "colorTo") if name in data}
    errors += [_not_of(name, COLORS, value) for name, value in colors.items() if value not in COLORS]
    if len(str(data.get("short_description", ""))) > 60:
        errors.append('"short_description" length must be less than or equal to 60 characters long')
    if "emoji" in data and not re.fullmatch(r"[^\x00-\x7f]+", str(data["emoji"])):
        errors.append('"emoji" must be an emoji')
    return errors


def _dataset(data: dict[str, Any]) -> list[str]:
    sizes = _list(data.get("size_categories"))
    errors = [_not_of("size_categories", SIZES, size) for size in sizes if size not in SIZES]
    errors += [
        f'"language" must be an ISO 639 code; got {language!r}'
        for language in _list(data.get("language"))
        if not re.fullmatch(r"[a-z]{2,3}|multilingual|code", str(language))
    ]
    configs = [config.get("config_name") for config in _list(data.get("configs"))]
    if len(set(configs)) < len(configs) or None in configs:
        errors.append('"configs" must have unlike names, one each')
    if sum(bool(config.get("default")) for config in _list(data.get("configs"))) > 1:
        errors.append('"configs" must have at most one default')
    return errors
