"""Lemmatizers behind one interface: spaCy's ``en_core_web_sm`` (official) and simplemma (no model)."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib.util import find_spec
from itertools import accumulate, chain, groupby
from pathlib import Path
from typing import Any, Protocol

from qabench.errors import FallbackWarning, InputError, MissingExtra
from qabench.io.environment import package_version

NAMES = ("auto", "spacy", "simplemma")
OFFICIAL_MODEL = "en_core_web_sm"
MODEL_VARIABLE = "QABENCH_SPACY_MODEL"
INSTALL = (
    f"pip install 'qabench[spacy]' && python -m spacy download {OFFICIAL_MODEL} "
    f"(without internet: copy the model's folder and set {MODEL_VARIABLE} to it)"
)
# Version -> the digest of the model's files (see ``model_digest``), computed from the SHA-256 of
# each file in the wheel's RECORD. The tests have the list of files.
RELEASES = {"3.7.0": "d5f01f12c067", "3.7.1": "980280020038", "3.8.0": "5477ed8d4ada"}
BY_NAME = " (identified by name and version)"
WITHOUT_EFFECT = ("LICENSE", "LICENSES_SOURCES", "README.md", "accuracy.json")
# No lemma depends on entities, which take as long as all other components together.
UNUSED = ["ner"]
# Each process gets its texts in several tasks, so that a slow task does not leave other processes
# idle.
CHARACTERS_PER_TASK = 20_000
# With fewer characters per process, starting another one takes longer than it saves.
CHARACTERS_WORTH_A_PROCESS = 60_000


class Lemmatizer(Protocol):
    """The interface that the normalizer needs. Any object with these members can be used."""

    @property
    def name(self) -> str:
        """Return name and versions, such as ``en_core_web_sm-3.8.0+spacy-3.8.18+5477ed8d4ada``."""

    @property
    def key(self) -> str:
        """Return the key for caches. Lemmatizers with the same key return the same lemmas."""

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return the lemmas of each text, joined by one space."""


class SimplemmaLemmatizer:
    """Dictionary lemmas from simplemma: an unofficial fallback without the spaCy model.

    It was compared with a spaCy pipeline of en_core_web_sm's architecture on FanOutQA's 310 dev
    questions and three answer styles (prose, inflected prose, other number formats). The loose
    accuracy of a question changes by 1.4, 4.1 and 1.8 points on average (the mean by +1.4, +0.5 and
    +1.8), and 31, 6 and 30 of 310 strict verdicts change. Without lemmatization, the changes are
    1.4, 5.2 and 1.8 points, and with Porter or Snowball stems 1.4, 17.1 and 1.8 points
    (``performance/fallback_lemmatizer.py``).
    """

    # A token is a number with its separators, a clitic that spaCy splits off, a word, or any other
    # single character. The limit of 40 characters keeps the time linear.
    TOKEN = re.compile(
        r"\d+(?:[.,:/]\d+)*|n't|'(?:s|re|ve|ll|d|m)\b|\w{1,40}?(?=n't\b)|[^\W\d_]+(?:\.[^\W\d_]+)*|\w+|[^\w\s]"
    )

    def __init__(self) -> None:
        self.name = f"simplemma-{package_version('simplemma')}"
        self.key = f"{self.name}/tokens-2"

    def __call__(self, texts: Sequence[str]) -> list[str]:
        import simplemma

        lemma = functools.cache(functools.partial(simplemma.lemmatize, lang="en"))
        return [" ".join(map(lemma, self.TOKEN.findall(text))) for text in texts]


class SpacyLemmatizer:
    """Lemmas from a spaCy pipeline: exactly ``" ".join(token.lemma_ for token in nlp(text))``.

    Args:
        model: an installed model package (``en_core_web_sm``) or the folder of a model.
        workers: processes for large batches. None for one per processor if processes can be forked
            safely.
    """

    def __init__(self, model: str = OFFICIAL_MODEL, workers: int | None = None) -> None:
        self.model = model
        self.workers = workers
        self.folder = _model_folder(model)
        self.source = model if find_spec_of(model) else str(self.folder.resolve())
        meta = json.loads((self.folder / "meta.json").read_text(encoding="utf-8"))
        self.version = str(meta["version"])
        self.full_name = f"{meta['lang']}_{meta['name']}"
        self.versions = f"{self.full_name}-{self.version}+spacy-{package_version('spacy')}"

    @cached_property
    def name(self) -> str:
        """Return the versions of model and spaCy, and a digest of the model's files.

        The digests of the official model's releases are known (``RELEASES``). For another version
        of it, the name says that only name and version identify the model.
        """
        folder = self.folder / f"{self.full_name}-{self.version}"
        if not folder.is_dir():
            # An installed package contains the model in a subfolder.
            folder = self.folder
        name = f"{self.versions}+{model_digest(folder)}"
        if self.full_name == OFFICIAL_MODEL and self.version not in RELEASES:
            name += BY_NAME
        return name

    @property
    def key(self) -> str:
        """Return ``name``."""
        return self.name

    def __reduce__(self) -> tuple[type[SpacyLemmatizer], tuple[str, int]]:
        """Pickle the model's name only. A copy loads the model itself, and starts no processes."""
        return SpacyLemmatizer, (self.source, 1)

    @cached_property
    def _lemmas(self) -> Any:
        import spacy

        from qabench.text.spacy_fast import FastLemmas
        from qabench.text.tokenizer import with_linear_tokenizer

        nlp = with_linear_tokenizer(spacy.load(self.source, exclude=UNUSED))
        # spaCy limits the length because of the memory that its entity recognizer needs. The
        # recognizer is not loaded.
        nlp.max_length = sys.maxsize

        def lemmas_of(texts: Sequence[str]) -> Iterator[str]:
            for doc in nlp.pipe(texts, batch_size=64):
                yield " ".join(token.lemma_ for token in doc)

        return FastLemmas.of(nlp) or lemmas_of

    def __call__(self, texts: Sequence[str]) -> list[str]:
        from qabench.io.workers import iterate_parallel, most_workers

        # The model is loaded before processes are forked, which then share its memory.
        lemmas = self._lemmas
        n_characters = sum(map(len, texts))
        useful_workers = 1 + n_characters // CHARACTERS_WORTH_A_PROCESS
        workers = min(self.workers or most_workers(), useful_workers)
        if workers == 1:
            return list(lemmas(texts))
        # Longest texts first, so that all processes finish at about the same time.
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        longest_first = [texts[i] for i in order]
        tasks = list(grouped(longest_first, CHARACTERS_PER_TASK))
        results = iterate_parallel(lambda task: list(lemmas(task)), tasks, workers)
        by_position = dict(zip(order, chain.from_iterable(results), strict=True))
        return [by_position[i] for i in range(len(texts))]


def model_digest(folder: Path) -> str:
    """Return 12 hex digits of a digest of a spaCy model's files but code and ``WITHOUT_EFFECT``."""
    files = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in WITHOUT_EFFECT and path.suffix not in (".py", ".pyc"):
            files[name] = path
    total = hashlib.sha256()
    for name, path in sorted(files.items()):
        file_digest = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{file_digest}  {name}\n".encode())
    return total.hexdigest()[:12]


def find_spec_of(model: str) -> Any:
    """Return the import spec of a model package, or None for a path or without the package."""
    return find_spec(model) if model.isidentifier() else None


def _model_folder(model: str) -> Path:
    """Return the folder with the model's meta.json, without importing spaCy or the model."""
    spec = find_spec_of(model)
    if spec and spec.origin:
        folder = Path(spec.origin).parent
    else:
        folder = Path(model).expanduser()
    if not (folder / "meta.json").is_file():
        raise MissingExtra(
            f"the spaCy model {model!r} is neither an installed package nor a folder with a meta.json "
            f"(looked in {folder.resolve()}). To install the official one: {INSTALL}"
        )
    return folder


def grouped(texts: Sequence[str], enough: int) -> Iterator[list[str]]:
    """Yield the texts in groups of about ``enough`` characters. The last one may be smaller."""
    # The number of characters up to the end of each text. A group ends where it passes a multiple of
    # ``enough``.
    ends = accumulate(map(len, texts))
    pairs = zip(texts, ends, strict=True)
    for _, group in groupby(pairs, lambda pair: pair[1] // enough):
        yield [text for text, _ in group]


class StatedLemmatizer:
    """A user's lemmatizer.

    Its name is not verified, so it is marked in signatures. Normal forms that were computed with it
    are cached apart from those of this module's lemmatizers.
    """

    def __init__(self, lemmatizer: Lemmatizer) -> None:
        self._lemmatizer = lemmatizer

    @property
    def name(self) -> str:
        """Return the name that the user's object states, marked as not verified."""
        return f"object:{self._lemmatizer.name}"

    @property
    def key(self) -> str:
        """Return the object's key, marked so that it differs from the keys of this module."""
        return f"object:{self._lemmatizer.key}"

    def __call__(self, texts: Sequence[str]) -> list[str]:
        return self._lemmatizer(texts)


class InOneThread:
    """A lemmatizer that runs in a single thread, for runs that score samples in several threads.

    spaCy's models are not thread-safe, and the memory allocator would keep the peak memory of each
    thread.
    """

    def __init__(self, lemmatizer: Lemmatizer) -> None:
        self._lemmatizer = resolve_lemmatizer(lemmatizer)
        self.name = self._lemmatizer.name
        self.key = self._lemmatizer.key

    def __call__(self, texts: Sequence[str]) -> list[str]:
        return _thread(os.getpid()).submit(self._lemmatizer, texts).result()


OWN = (SimplemmaLemmatizer, SpacyLemmatizer, StatedLemmatizer, InOneThread)


@functools.lru_cache(maxsize=1)
def _thread(process: int) -> ThreadPoolExecutor:
    """Return the thread of a process. A forked child does not inherit it, and gets another one."""
    return ThreadPoolExecutor(1, thread_name_prefix="qabench-lemmatizer")


def thread_safe_lemmatizer(lemmatizer: str | Lemmatizer) -> Lemmatizer:
    """Return a lemmatizer that can be called from several threads and does not fork.

    For use in a run: forked children would inherit the event loop and the connections to the
    model's server.
    """
    resolved = resolve_lemmatizer(lemmatizer)
    if isinstance(resolved, SpacyLemmatizer):
        resolved = SpacyLemmatizer(resolved.model, workers=1)
    return InOneThread(resolved)


@functools.cache
def _warn_of_fallback(name: str) -> None:
    warnings.warn(
        f"the spaCy model {OFFICIAL_MODEL} is not installed, so {name} is used instead: the accuracy may differ from "
        f"the official one by a few points. For official scores: {INSTALL}",
        FallbackWarning,
        stacklevel=2,
    )


def resolve_lemmatizer(lemmatizer: str | Lemmatizer = "auto") -> Lemmatizer:
    """Return the lemmatizer with the given name.

    Args:
        lemmatizer: "spacy" for spaCy's ``en_core_web_sm``, or the installed package or folder in
            the environment variable QABENCH_SPACY_MODEL (signatures contain its name). "simplemma"
            for the fallback. "auto" for spaCy if this variable is set, or if spaCy and
            ``en_core_web_sm`` are installed, and otherwise for simplemma with one warning. It can
            also be a ``Lemmatizer``. An object whose class is not from this module is never
            official, whatever its name.

    Raises:
        InputError: an unknown name.
        MissingExtra: spaCy or its model is not installed.
    """
    if not isinstance(lemmatizer, str):
        return lemmatizer if type(lemmatizer) in OWN else StatedLemmatizer(lemmatizer)
    if lemmatizer not in NAMES:
        raise InputError(
            f"unknown lemmatizer {lemmatizer!r}; allowed: {', '.join(NAMES)}, or a Lemmatizer object"
        )
    if lemmatizer == "simplemma":
        return SimplemmaLemmatizer()
    # If the user names a model, it is used, or an error is raised. Another model would change
    # scores unnoticed.
    model = os.environ.get(MODEL_VARIABLE)
    if lemmatizer == "spacy" or model or (find_spec("spacy") and find_spec(OFFICIAL_MODEL)):
        return _spacy(model or OFFICIAL_MODEL)
    fallback = SimplemmaLemmatizer()
    _warn_of_fallback(fallback.name)
    return fallback


@functools.cache
def _spacy(model: str) -> Lemmatizer:
    if find_spec("spacy") is None:
        raise MissingExtra(
            f"the lemmatizer {model!r} needs spaCy, which is not installed: {INSTALL}"
        )
    return SpacyLemmatizer(model)
