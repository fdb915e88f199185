"""The official lemmatizer: a spaCy pipeline, loaded on first use, and run on all processors for many texts."""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qabench.errors import MissingExtra
from qabench.io.environment import package_version
from qabench.io.workers import map_parallel, most_workers

OFFICIAL_MODEL = "en_core_web_sm"
MODEL_VARIABLE = "QABENCH_SPACY_MODEL"
UNUSED = ["ner"]  # no lemma depends on entities, and they take as long as all other components
CHARACTERS_PER_TASK = 20_000
CHARACTERS_WORTH_A_PROCESS = 60_000


class SpacyLemmatizer:
    """Lemmas from a spaCy pipeline: exactly ``" ".join(token.lemma_ for token in nlp(text))``.

    Args:
        model: an installed model package (``en_core_web_sm``) or the folder of a model.
        workers: processes for large batches; None for one per processor if processes can be forked safely.

    Raises:
        MissingExtra: the package or folder does not exist.
    """

    def __init__(self, model: str = OFFICIAL_MODEL, workers: int | None = None) -> None:
        self.model = model
        self.workers = workers
        self.folder = _model_folder(model)
        meta = json.loads((self.folder / "meta.json").read_text(encoding="utf-8"))
        self.full_name = f"{meta['lang']}_{meta['name']}"
        self.versions = f"{self.full_name}-{meta['version']}+spacy-{package_version('spacy')}"

    @cached_property
    def name(self) -> str:
        """Model and spaCy with versions, and a digest of the model's files (models can share a name and a version)."""
        digest = hashlib.sha256()
        for path in sorted(p for p in self.folder.rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc")):
            digest.update(str(path.relative_to(self.folder)).encode() + b"\0" + path.read_bytes())
        return f"{self.versions}+{digest.hexdigest()[:8]}"

    @property
    def key(self) -> str:
        """Same as ``name``."""
        return self.name

    def __reduce__(self) -> tuple[type[SpacyLemmatizer], tuple[str, int]]:
        """A copy in another process loads the model there, and works in that process only."""
        return SpacyLemmatizer, (self.model if find_spec_of(self.model) else str(self.folder.resolve()), 1)

    @cached_property
    def _lemmas(self) -> Any:
        import spacy

        from qabench.text.spacy_fast import FastLemmas

        nlp = spacy.load(self.model if find_spec_of(self.model) else self.folder, exclude=UNUSED)
        nlp.max_length = sys.maxsize  # the limit protects the memory of the entity recognizer, which is not loaded
        return FastLemmas.of(nlp) or (
            lambda texts: [" ".join(t.lemma_ for t in doc) for doc in nlp.pipe(texts, batch_size=64)]
        )

    def __call__(self, texts: Sequence[str]) -> list[str]:
        most = self.workers or most_workers()
        workers = min(most, 1 + sum(map(len, texts)) // CHARACTERS_WORTH_A_PROCESS)
        if workers > 1:
            try:
                return self._in_processes(texts, workers)
            except BrokenProcessPool:
                warnings.warn(
                    "a lemmatizing process was killed (out of memory?); continuing in one process", stacklevel=2
                )
        return list(self._lemmas(texts))

    def _in_processes(self, texts: Sequence[str], workers: int) -> list[str]:
        lemmas = self._lemmas  # loaded before the fork: the children share it
        tasks = list(_tasks(texts))
        out = [""] * len(texts)
        found = map_parallel(lambda task: list(lemmas([texts[i] for i in task])), tasks, workers, items_per_task=1)
        for task, of_task in zip(tasks, found, strict=True):
            for i, text in zip(task, of_task, strict=True):
                out[i] = text
        return out


def install_hint() -> str:
    """How to install the official lemmatizer."""
    return (
        f"pip install 'qabench[spacy]' && python -m spacy download {OFFICIAL_MODEL} "
        f"(without internet: copy the model's folder and set {MODEL_VARIABLE} to it)"
    )


def find_spec_of(model: str) -> Any:
    """The import spec of a model package, or None if ``model`` is a path or is not installed."""
    return find_spec(model) if model.isidentifier() else None


def _model_folder(model: str) -> Path:
    """The folder with the model's meta.json. Does not import spaCy or the model."""
    spec = find_spec_of(model)
    folder = Path(spec.origin).parent if spec and spec.origin else Path(model).expanduser()
    if not (folder / "meta.json").is_file():
        raise MissingExtra(
            f"the spaCy model {model!r} is neither an installed package nor a folder with a meta.json "
            f"(looked in {folder.resolve()}). To install the official one: {install_hint()}"
        )
    return folder


def _tasks(texts: Sequence[str]) -> Iterator[list[int]]:
    """Positions of the texts in tasks of about equal size, longest first so that all processes finish together."""
    task: list[int] = []
    size = 0
    for i in sorted(range(len(texts)), key=lambda i: -len(texts[i])):
        task.append(i)
        size += len(texts[i])
        if size >= CHARACTERS_PER_TASK:
            yield task
            task, size = [], 0
    if task:
        yield task
