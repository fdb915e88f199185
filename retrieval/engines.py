"""Open a search engine by the name that ``-T retriever`` gives."""

from __future__ import annotations

from qabench.data.arguments import checked_string
from qabench.errors import InputError
from qabench.retrieval.lucene import LuceneIndex
from qabench.retrieval.opensearch import OpenSearchIndex, open_server

ENGINES = {"lucene": "DIR", "opensearch": "URL/INDEX", "elasticsearch": "URL/INDEX"}


def open_engine(retriever: str, *, named_by_user: bool = True) -> LuceneIndex | OpenSearchIndex:
    """Open the search engine of ``-T retriever``.

    Args:
        retriever: "lucene:DIR" (a Lucene index; see ``LuceneIndex``), or "opensearch:URL/INDEX" or
            "elasticsearch:URL/INDEX" (see ``open_server``).
        named_by_user: see ``open_server``.

    Raises:
        InputError: ``retriever`` has another form, or the index does not exist or cannot be used.
        MissingExtra: the engine's packages are not installed.
    """
    name, _, address = checked_string(retriever, "the retriever").partition(":")
    if name not in ENGINES or not address:
        allowed = ", ".join(f"{engine}:{form}" for engine, form in ENGINES.items())
        raise InputError(f"the retriever is {retriever!r}; allowed: {allowed}")
    if name == "lucene":
        return LuceneIndex(address)
    return open_server(name, address, named_by_user=named_by_user)
