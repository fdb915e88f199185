"""A JSON search API described by configuration: a preset, or a TOML file.

A file names the URL, the parameters and headers (``{query}`` and ``{count}`` are filled in,
``${NAME}`` is an environment variable that QABENCH_SEARCH_VARIABLES lists), and where the results
are in the response:

    url = "https://search.example.org/v1/search"
    results = "web.results"           # path to the list of results
    address = "url"                   # the field of a result with its address

    [params]
    q = "{query}"

    [headers]
    Authorization = "Bearer ${EXAMPLE_API_KEY}"

    [pages]                           # see PageLimits
    delay = 2.0
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Set
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue, ValidationError
from pydantic.dataclasses import dataclass

from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.io.limits import toml_of
from qabench.io.tables import keep_secret

VARIABLE = re.compile(r"\$\{(\w+)\}")
# the names, separated by commas, that files may use: files may be from others
ALLOWED = "QABENCH_SEARCH_VARIABLES"
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "google": {
        "url": "https://www.googleapis.com/customsearch/v1",
        "params": {
            "key": "${CUSTOM_SEARCH_API_KEY}",
            "cx": "${CUSTOM_SEARCH_CX}",
            "q": "{query}",
            "num": "{count}",
        },
        "results": "items",
        "address": "link",
        "results_may_be_absent": True,
    },
    "searxng": {
        "url": "${QABENCH_SEARXNG_URL}/search",
        "params": {"q": "{query}", "format": "json"},
        "results": "results",
        "address": "url",
        "failures": "unresponsive_engines",
        "hint": "status 403: allow the format json in SearXNG's settings.yml (search: formats: [html, json])",
    },
}


CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, config=CONFIG)
class PageLimits:
    """What is fetched, and how fast.

    The table [pages] of a search configuration.

    Attributes:
        results: search results per query, at most. Their pages are fetched.
        delay: seconds between two requests to the same host. A longer Crawl-delay of its robots.txt
            takes precedence.
        timeout: seconds for one page, from the connection to the last byte.
        max_bytes: the largest page, uncompressed.
        redirects: redirects followed per page. The address of each target is checked.
        at_once: pages fetched at the same time.
        private_addresses: also fetch pages from loopback and private addresses, for tests and
            intranets.
    """

    results: int = Field(default=10, ge=1)
    delay: float = Field(default=1.0, ge=0)
    timeout: float = Field(default=20.0, gt=0)
    max_bytes: int = Field(default=5 << 20, ge=1)
    redirects: int = Field(default=5, ge=0)
    at_once: int = Field(default=8, ge=1)
    private_addresses: bool = False


@dataclass(frozen=True, config=CONFIG)
class SearchProvider:
    """A search API.

    See the module.

    Attributes:
        name: of the preset or the file, for signatures.
        url: the endpoint, without parameters.
        results: the path to the list of results in the JSON response, with dots, or "" if the
            response is the list.
        address: the path to a page's address in a result.
        params: parameters of the query, or with POST the fields of the JSON body.
        headers: headers of the request.
        method: "GET" or "POST".
        results_may_be_absent: whether a response without the list means that nothing was found.
            Otherwise it is an error, so that a wrong path does not look like a web without pages.
        failures: the path to a list of failed engines: a response without results but with entries
            there is an error.
        hint: how to fix a refused request.
        pages: limits for the pages.
        values: the environment variables that are filled in. Never printed.
    """

    name: str
    url: str
    results: str
    address: str
    params: dict[str, JsonValue] = Field(default_factory=dict)
    headers: dict[str, JsonValue] = Field(default_factory=dict)
    method: Literal["GET", "POST"] = "GET"
    results_may_be_absent: bool = False
    failures: str = ""
    hint: str = ""
    pages: PageLimits = PageLimits()
    values: dict[str, str] = Field(default_factory=dict, repr=False)

    @property
    def endpoint(self) -> str:
        """Return the URL with its environment variables filled in."""
        return self._filled(self.url)

    def request(self, query: str) -> tuple[Json, dict[str, str]]:
        """Return the parameters and headers for a query, with secrets."""
        count = str(self.pages.results)
        params = {
            name: self._filled(value).replace("{count}", count).replace("{query}", query)
            if isinstance(value, str)
            else value
            for name, value in self.params.items()
        }
        return params, {name: self._filled(str(value)) for name, value in self.headers.items()}

    def key(self, query: str) -> str:
        """Return what the results of a query depend on, without secrets."""
        return json.dumps(
            [self.method, self.url, dict(self.params), self.pages.results, self.results, query]
        )

    def _filled(self, text: str) -> str:
        return VARIABLE.sub(lambda match: self.values[match[1]].rstrip("/"), text)


def load_provider(search: str) -> SearchProvider:
    """Return the provider of a preset or a TOML file.

    Args:
        search: "google" (Google Programmable Search), "searxng" (a SearXNG server), or the path of
            a TOML file. A file may begin with ``preset = "searxng"`` and change some of its values.

    Raises:
        InputError: no such preset or file, an unknown or missing setting, or an environment
            variable that is not set. Names it.
    """
    document: Json = {"preset": search}
    where = f"the search preset {search}"
    if search not in PRESETS:
        path = Path(search)
        where = f"the search configuration {path}"
        try:
            content = path.read_bytes()
            document = toml_of(content.decode("utf-8"))
        except FileNotFoundError:
            allowed = f"{', '.join(PRESETS)}, or the path of a TOML file"
            raise InputError(f"the search is {search!r}; allowed: {allowed}") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{where} cannot be read: {error}") from None
    preset = document.pop("preset", None)
    if preset not in (None, *PRESETS):
        raise InputError(f"{where}: the preset is {preset!r}; allowed: {', '.join(PRESETS)}")
    name = preset or f"{path.stem}@{hashlib.sha256(content).hexdigest()[:8]}"
    variables = {variable.strip() for variable in os.environ.get(ALLOWED, "").split(",")}
    if preset and "url" not in document:  # the preset's keys go to the preset's server
        variables |= _variables(PRESETS[preset])
    return _provider(name, {**PRESETS.get(preset, {}), **document}, where, variables)


def _provider(
    name: str, settings: Mapping[str, Any], where: str, allowed: Set[str]
) -> SearchProvider:
    """Return the provider of settings, which may use the allowed environment variables."""
    names = _variables(settings)
    try:
        provider = SearchProvider(**{**settings, "name": name, "values": {}})
    except ValidationError as error:
        raise InputError(f"{where}: {_problem(error)}") from None
    if missing := sorted(name for name in names if not os.environ.get(name)):
        raise InputError(
            f"{where} needs the environment variable {missing[0]}: export {missing[0]}=..."
        )
    if refused := sorted(names - allowed):
        raise InputError(
            f"{where} names the environment variable {refused[0]}, which would be sent to {provider.url}. To allow "
            f"that: export {ALLOWED}={','.join(refused)}"
        )
    values = {name: os.environ[name] for name in names}
    keep_secret(*(value for name, value in values.items() if f"${{{name}}}" not in provider.url))
    provider = replace(provider, values=values)
    if not re.match("https?://", provider.endpoint):
        raise InputError(
            f"{where}: the URL is {provider.endpoint!r}; it must begin with http:// or https://"
        )
    return provider


def _problem(error: ValidationError) -> str:
    """Return the first wrong setting, with its value and what is allowed."""
    first = error.errors()[0]
    setting = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"{setting!r} is missing; required: url, results, address"
    if first["type"] == "unexpected_keyword_argument":
        kind = PageLimits if setting.startswith("pages.") else SearchProvider
        allowed = [item.name for item in fields(kind) if item.name not in ("name", "values")]
        return f"unknown setting {setting!r}; allowed: {', '.join(allowed)}"
    return f"{setting} is {first['input']!r:.60}; {first['msg']}"


def _variables(settings: Mapping[str, Any]) -> set[str]:
    """Return the environment variables that settings name."""
    return set(VARIABLE.findall(str(settings)))
