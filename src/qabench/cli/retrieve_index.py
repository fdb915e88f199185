"""The index of ``qabench retrieve``: its options, its folder, and when it may be replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qabench.cli.output import hint, progress_bar
from qabench.cli.retrieve_sources import Documents
from qabench.data.rows import without_none
from qabench.errors import InputError, unknown_name

if TYPE_CHECKING:
    from qabench.retrieval import BM25Index
    from qabench.retrieval.bm25.formulas import Parameters
    from qabench.retrieval.bm25.tokenizers import Tokenizer

INDEX_FILE = "documents.bm25"
# Copies of values in ``BM25Index``, which is slow to import. Help texts need only these.
METHODS = ("bm25+", "okapi", "lucene", "bm25l", "bm25l-paper", "atire", "robertson")
DEFAULTS = {"method": METHODS[0], "k1": 1.5, "b": 0.75, "delta": None}
TOKENIZERS = {"words-1": 1, "words-2": 2}


def settings_of(
    options: Mapping[str, Any], word_options: Mapping[str, Any], saved: BM25Index | None
) -> tuple[Parameters, Tokenizer]:
    """Return an index's parameters and tokenizer. Options that are None come from ``saved``."""
    from qabench.retrieval import Words
    from qabench.retrieval.bm25.formulas import Parameters

    named = without_none(options)
    before: dict[str, Any] = dict(saved.parameters.used()) if saved else {}
    if named.get("method", before.get("method")) != before.get("method"):
        # Saved parameters of another method do not apply to this one.
        before = {}
    merged: dict[str, Any] = DEFAULTS | before | named
    parameters = Parameters.of(**merged)
    for name in ("delta", "epsilon"):
        if name in named and name not in parameters.used():
            raise InputError(f"--{name} has no effect on --method {merged['method']}: omit it")
    if saved and not without_none(word_options):
        # A saved tokenizer may be a Python function, which no option can name.
        return parameters, saved.tokenizer
    tokenizer = word_options["tokenizer"] or "words-1"
    if tokenizer not in TOKENIZERS:
        raise unknown_name("unknown --tokenizer", tokenizer, TOKENIZERS)
    version = TOKENIZERS[tokenizer]
    return parameters, Words(word_options["stop_words"], word_options["stem"], version)


def options_of(index: BM25Index) -> str:
    """Return the command's options for an index like this one."""
    from qabench.retrieval import Words
    from qabench.retrieval.bm25.tokenizers import name_of

    text = " ".join(f"--{name} {value}" for name, value in index.parameters.used().items())
    tokenizer = index.tokenizer
    if not isinstance(tokenizer, Words):
        return f"{text} and the tokenizer {name_of(tokenizer)} in Python"
    # The command's defaults are version 1 of the tokenizer, no stop words and no stemming.
    if tokenizer.version > 1:
        text += f" --tokenizer words-{tokenizer.version}"
    if tokenizer.stop_words:
        language = _language_of(tokenizer.stop_words)
        text += f" --stop-words {language}" if language else " and a custom list of stop words"
    if tokenizer.stemmer:
        text += f" --stem {tokenizer.stemmer}"
    return text


def _language_of(stop_words: frozenset[str]) -> str | None:
    """Return the language whose function words these are, or None for a custom list."""
    from qabench.retrieval import Words
    from qabench.retrieval.bm25.stop_words import LANGUAGES, stop_words_of

    # ``Words`` lowercases the list, as it did for the list in the index.
    for language in LANGUAGES:
        if stop_words == Words(stop_words_of(language)).stop_words:
            return language
    return None


def open_index(path: Path | None) -> BM25Index:
    """Return the index in a file, with its tokenizer."""
    from qabench.retrieval import BM25Index

    if path is None or not path.exists():
        raise InputError(f"there is no index in {path and path.parent}: name a SOURCE to build one")
    return BM25Index.load(path)


def saved_index(path: Path | None, replace: bool) -> BM25Index | None:
    """Return the index in a file, or None if there is none.

    Raises:
        InputError: it is damaged or of another version, unless it may be replaced.
    """
    if path is None or not path.exists():
        return None
    try:
        return open_index(path)
    except InputError as error:
        if not replace:
            raise InputError(f"{error} (--replace writes a new one)") from None
        return None


def index_of(
    documents: Documents,
    parameters: Parameters,
    tokenizer: Tokenizer,
    saved: BM25Index | None,
    path: Path | None,
    replace: bool,
) -> BM25Index:
    """Return the index of documents: a new one, or the saved one brought up to date. Save it.

    Args:
        documents: the documents.
        parameters: the method and its parameters.
        tokenizer: the tokenizer.
        saved: the index that was saved before, if any.
        path: the file for the index. None if it is not saved.
        replace: whether the index may be replaced by one of other documents or options.

    Raises:
        InputError: the saved index is of another source, has other columns or options, or would
            lose more than half of its documents.
    """
    from qabench.retrieval import BM25Index
    from qabench.retrieval.bm25.tokenizers import name_of

    has_other_options = saved is not None and (
        saved.parameters != parameters or name_of(saved.tokenizer) != name_of(tokenizer)
    )
    with progress_bar("Indexing", "documents") as show:
        if saved is not None and not replace:
            folder = path and path.parent
            if has_other_options:
                raise InputError(
                    f"the index in {folder} was built with {options_of(saved)}: use these options, another "
                    "--index, or --replace to build it again"
                )
            _check_replacement(saved, documents, folder)
        if saved is None or has_other_options or not _has_columns(saved, documents):
            index = BM25Index.from_dataset(
                documents.rows,
                filters=documents.filters,
                ids=documents.ids,
                tokenizer=tokenizer,
                progress=lambda done: show(done, len(documents.rows)),
                **asdict(parameters),
            )
            added = len(index)
            removed = 0
        else:
            index = saved
            added, removed = index.update(documents.rows, lambda done: show(done, 0))
    if path and (added or removed or index.about != documents.about):
        index.about = documents.about
        index.save(path)
        hint(f"{path}: {added:,} added, {removed:,} removed")
    return index


def _has_columns(index: BM25Index, documents: Documents) -> bool:
    """Tell whether an index has the columns of these documents: text, ids (if any), and filters."""
    has_ids = index.ids is not None
    return (
        index.columns == ["text"]
        and has_ids == (documents.ids is not None)
        and list(index.filters) == documents.filters
    )


def _check_replacement(saved: BM25Index, documents: Documents, folder: Path | None) -> None:
    """Raise InputError if the saved index seems to be of other documents than these."""
    advice = "use another --index, or --replace to replace it"
    if saved.columns != ["text"]:
        raise InputError(f"the index in {folder} was not built by this command: {advice}")
    added, removed = saved.changes(documents.rows)
    if not (added or removed):
        return
    # An index that was built in Python states no source.
    for name in ("source", "columns"):
        before = saved.about.get(name)
        if before is not None and before != documents.about[name]:
            raise InputError(
                f"the index in {folder} has the {name} {_listed(before)}, not "
                f"{_listed(documents.about[name])}: {advice}"
            )
    # A source that lost more than half of its rows is more likely a mistake than an update.
    if removed * 2 > len(saved):
        size = counted(len(saved), "document")
        raise InputError(
            f"{removed:,} of the {size} in the index in {folder} would be removed: {advice}"
        )


def _listed(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, such as "1 document" or "1,200 documents"."""
    if number == 1:
        return f"1 {noun}"
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {plural}"


def conditions_by_column(where: Sequence[str]) -> dict[str, list[str]]:
    """Parse texts COLUMN=VALUE, and return the values by column."""
    conditions: dict[str, list[str]] = {}
    for condition in where:
        column, equals, value = condition.partition("=")
        if not equals or not column:
            raise InputError(f"--where is {condition!r}; expected COLUMN=VALUE, such as chapter=3")
        conditions.setdefault(column, []).append(value)
    return conditions


def filter_of(
    index: BM25Index, conditions: Mapping[str, list[str]], folder: Path | None
) -> dict[str, list[Any]] | None:
    """Return an index's filter for values as they are typed: 3 means the number and the text."""
    allowed: dict[str, list[Any]] = {}
    for column, texts in conditions.items():
        if column not in index.filters:
            names = ", ".join(index.filters) or "none"
            raise InputError(
                f"the index in {folder} has no column {column!r} to filter by; it has: {names}. --replace with "
                "SOURCE and --where builds it again"
            )
        values = index.filters[column]
        # Both the number 3 and the text "3" are typed as 3, and both are searched for.
        values_as_typed = list(map(_as_typed, values))
        for text in texts:
            if text not in values_as_typed:
                # The quotes make an empty cell visible.
                examples = ", ".join(map(repr, values_as_typed[:10]))
                raise InputError(
                    f"no document has {text!r} in {column!r}; the first values are {examples}"
                )
        allowed[column] = []
        for value, text in zip(values, values_as_typed, strict=True):
            if text in texts:
                allowed[column].append(value)
    return allowed or None


def _as_typed(value: object) -> str:
    """Return a filter value as it is typed on the command line."""
    return value if isinstance(value, str) else json.dumps(value)
