"""The base of all dataset builders: configs and files from the tables, verified data, a cache key of both."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import datasets

from qabench.data.rows import Row
from qabench.loading_scripts import FOLDER, dataset_table, file_digest, open_path
from qabench.loading_scripts.published import PublishedScore

PUBLISHED = {
    "system": datasets.Value("string"),
    "setting": datasets.Value("string"),
    "config": datasets.Value("string"),
    "metric": datasets.Value("string"),
    "value": datasets.Value("float64"),
    "source": datasets.Value("string"),
}
"""The columns of a config ``leaderboard`` that comes from a ``leaderboard.json``; see ``PublishedScore``."""


def configs_of(name: str) -> list[datasets.BuilderConfig]:
    """Return the ``BUILDER_CONFIGS`` of a benchmark, from its ``configs.json``."""
    return [
        datasets.BuilderConfig(name=config.name, version=datasets.Version("1.0.0"), description=config.description)
        for config in dataset_table(name).configs.values()
    ]


class BenchmarkBuilder(datasets.GeneratorBasedBuilder):
    """A builder whose splits are files of its folder's tables.

    A subclass sets ``BENCHMARK`` (its folder), ``BUILDER_CONFIGS = configs_of(...)`` and ``DEFAULT_CONFIG_NAME``, and
    defines ``_info`` and ``_rows(path, split)``, which yields the dataset's rows of a file.
    """

    BENCHMARK: ClassVar[str]

    def __init__(
        self,
        *args: Any,
        own_files: Mapping[str, Sequence[Path]] | None = None,
        only_splits: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Make a ``datasets.DatasetBuilder``.

        Args:
            *args: passed on.
            own_files: a user's files by split, instead of the pinned ones.
            only_splits: the splits to prepare; None for all.
            **kwargs: passed on.
        """
        self._own_files = own_files
        self._only_splits = only_splits
        super().__init__(*args, **kwargs)

    def split_names(self) -> list[str]:
        """Return the names of the splits."""
        return list(self._files())

    def _files(self) -> Mapping[str, Sequence[Any]]:
        files = self._own_files or dataset_table(self.BENCHMARK).config(self.config.name).splits
        return {split: files[split] for split in self._only_splits or files}

    def _path(self, file: Any) -> Path:
        # Not dl_manager.download: it does not verify checksums and does not know mirrors.
        # Not isinstance(file, Path): streaming replaces Path in this module.
        return file if self._own_files is not None else open_path(self.BENCHMARK, file)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        if not dl_manager.is_streaming:  # streaming opens only the files of the split that is read
            for files in self._files().values():
                for file in files:
                    self._path(file)
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"split": split, "files": list(files)})
            for split, files in self._files().items()
        ]

    def _generate_examples(self, split: str, files: list[Any]) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
        for number, file in enumerate(files):
            for i, row in enumerate(self._rows(self._path(file), split)):
                yield (number, i), row

    def _rows(self, path: Path, split: str) -> Iterator[dict[str, Any]]:
        raise NotImplementedError


def cache_hash(builder: type[BenchmarkBuilder], config: str) -> str:
    """Return the 40 hex digits that name a config's folder in the cache of ``datasets``.

    They depend on the digests of its files and of the code that reads them. The hash of ``datasets`` depends only on
    the version, so its cache would return rows of other data or of older code.
    """
    total = hashlib.sha1(usedforsecurity=False)
    for split, files in dataset_table(builder.BENCHMARK).config(config).splits.items():
        for file in files:
            total.update(f"{split} {file} {file_digest(builder.BENCHMARK, file)}\n".encode())
    code = sorted((FOLDER / builder.BENCHMARK).glob("*.py")) + [
        Path(inspect.getfile(m)) for m in (Row, PublishedScore, BenchmarkBuilder)
    ]
    for path in code:
        total.update(path.read_bytes())
    return total.hexdigest()
