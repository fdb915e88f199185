"""A JSON search API that a preset or a TOML file describes.

A file names the URL, the parameters, the headers, and where the results are in the response.
In the parameters, ``{query}`` and ``{count}`` are filled in. Anywhere in the file, ``${NAME}`` is the
value of an environment variable that QABENCH_SEARCH_VARIABLES lists:

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
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, ValidationError
from pydantic.dataclasses import dataclass

from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.io.limits import toml_of
from qabench.io.redaction import keep_secret

VARIABLE = re.compile(r"\$\{(\w+)\}")
# This variable lists, separated by commas, the variables that files may use. Otherwise, a file by
# someone else could send any variable to its server.
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
    },
}


CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, config=CONFIG)
class PageLimits:
    """Limits for fetching the pages of search results: the table [pages] of a search engine's file.

    Attributes:
        results: the maximum number of search results per query whose pages are fetched.
        delay: seconds between two requests to the same host. A longer Crawl-delay of its robots.txt
            takes precedence.
        timeout: seconds for one page, from the connection to the last byte.
        private_addresses: also fetch pages from loopback and private addresses, for tests and
            intranets.
    """

    results: int = Field(default=10, ge=1)
    delay: float = Field(default=1.0, ge=0)
    timeout: float = Field(default=20.0, gt=0)
    private_addresses: bool = False


@dataclass(frozen=True, config=CONFIG)
class SearchProvider:
    """A search API, with the environment variables of its file filled in. See the module.

    Attributes:
        name: the name of the preset or the file, for signatures.
        url: the endpoint, without parameters.
        results: the path to the list of results in the JSON response, with dots, or "" if the
            response is the list.
        address: the path to a page's address in a result.
        params: the URL's query parameters, or with POST the JSON body.
        headers: headers of the request.
        method: "GET" or "POST".
        results_may_be_absent: whether a response without the list means that nothing was found.
            Otherwise such a response is an error, because the path could be wrong.
        failures: the path to a list of failed engines. If this list has entries and there are no
            results, the response is an error.
        pages: limits for fetching the pages.
        template: method, URL and parameters without secrets, for the keys of caches.
    """

    name: str
    url: Annotated[str, Field(pattern="^https?://")]
    results: str
    address: str
    params: dict[str, JsonValue] = Field(default_factory=dict, repr=False)
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    method: Literal["GET", "POST"] = "GET"
    results_may_be_absent: bool = False
    failures: str = ""
    pages: PageLimits = PageLimits()
    template: list[JsonValue] = Field(default_factory=list)

    def request(self, query: str) -> Json:
        """Return the parameters with the query and the count filled in. They may contain secrets."""
        # Fields can be anywhere in a nested body. The query is filled in last, because it may
        # contain the text "{count}".
        text = json.dumps(self.params).replace("{count}", str(self.pages.results))
        params: Json = json.loads(text.replace("{query}", _in_json(query)))
        return params


def load_provider(search: str) -> SearchProvider:
    """Return the provider of a preset or a TOML file.

    Args:
        search: "google" (Google Programmable Search), "searxng" (a SearXNG server), or the path of
            a TOML file.

    Raises:
        InputError: no such preset or file, an unknown or missing setting, or an environment
            variable that is not set or not allowed. The message names it.
    """
    name, where = search, f"the file of the search engine {search}"
    document = PRESETS.get(search)
    text = json.dumps(document)
    # A preset may use all its variables, because it sends them only to its own server.
    allowed = VARIABLE.findall(text)
    if document is None:
        try:
            content = Path(search).read_bytes()
            document = toml_of(content.decode("utf-8"))
            text = json.dumps(document)
        except FileNotFoundError:
            names = f"{', '.join(PRESETS)}, or the path of a TOML file"
            raise InputError(f"the search is {search!r}; allowed: {names}") from None
        except (OSError, TypeError, ValueError) as error:
            # TOML files can have dates, for which json raises TypeError.
            raise InputError(f"{where} cannot be read: {error}") from None
        name = f"{Path(search).stem}@{hashlib.sha256(content).hexdigest()[:8]}"
        allowed = os.environ.get(ALLOWED, "").replace(" ", "").split(",")
    template = [document.get("method", "GET"), document.get("url"), document.get("params", {})]
    for variable in sorted(set(VARIABLE.findall(text))):
        value = os.environ.get(variable, "")
        mark = f"${{{variable}}}"
        is_address = mark in str(document.get("url"))
        if is_address:
            # In the file, a slash follows this variable, so its value must not end in one. Other
            # values, such as keys, may.
            value = value.rstrip("/")
        if not value:
            raise InputError(
                f"{where} needs the environment variable {variable}: export {variable}=..."
            )
        if variable not in allowed:
            raise InputError(
                f"{where} names the environment variable {variable}, which would be sent to "
                f"{document.get('url')}. To allow that: export {ALLOWED}={variable}, with others after a comma"
            )
        if not is_address:
            # The server's address is not a secret: errors show it.
            keep_secret(value)
        text = text.replace(mark, _in_json(value))
    try:
        return SearchProvider(**{**json.loads(text), "name": name, "template": template})
    except ValidationError as error:
        first = error.errors()[0]
        kind = PageLimits if first["loc"][0] == "pages" else SearchProvider
        # The fields ``name`` and ``template`` are set here, not in the file.
        settings = [item.name for item in fields(kind) if item.name not in ("name", "template")]
        names = ", ".join(settings)
        setting = ".".join(map(str, first["loc"]))
        raise InputError(f"{where}: {setting}: {first['msg']}; allowed settings: {names}") from None


def _in_json(text: str) -> str:
    """Return a text escaped for a JSON string, without the quotation marks."""
    return json.dumps(text)[1:-1]
