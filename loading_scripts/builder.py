"""The base of all dataset builders: configs and files from the tables, verified data, a cache key of both."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import metadata_load
from yaml import YAMLError

from qabench.data.rows import Json, SourceRow, read_json, read_json_lines, read_json_list
from qabench.errors import DataError
from qabench.loading_scripts import (
    LEADERBOARD,
    citation,
    dataset_table,
    file_digest,
    folder_of,
    open_path,
)
from qabench.loading_scripts.published import PublishedScore, published_rows

# The columns of a config ``leaderboard`` that comes from a ``leaderboard.json``.
PUBLISHED = dict.fromkeys(("system", "setting", "config", "metric", "value", "source"), "string")
PUBLISHED["value"] = "float64"
FEATURES = "features.json"


def features(declared: Any) -> Any:
    """Return the features of a declaration: a type, a list with the type of its items, or an object."""
    if isinstance(declared, str):
        return datasets.Value(declared)
    if isinstance(declared, list):
        return datasets.List(features(declared[0]))
    return {name: features(part) for name, part in declared.items()}


def is_parquet(path: Path) -> bool:
    """Return whether a file begins like a Parquet file."""
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def parquet_rows(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of a Parquet file, counted from 0. Raises DataError for a damaged file."""
    try:
        number = 0
        for batch in pq.ParquetFile(path).iter_batches():
            for fields in batch.to_pylist():
                yield SourceRow.of(fields, f"{path}, row {number}")
                number += 1
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} begins like a Parquet file, but cannot be read ({error})") from None


_NOT_ROWS = SourceRow({}, "")


def _json_rows(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of a file of JSON Lines or with a JSON list, or ``_NOT_ROWS`` for anything else."""
    try:
        rows = read_json_lines(path)
        first = next(rows, _NOT_ROWS)
    except DataError:  # of a list, the first line is not an object
        try:
            yield from read_json_list(path)
        except DataError:
            yield _NOT_ROWS
        return
    yield first
    yield from rows


class BenchmarkBuilder(datasets.GeneratorBasedBuilder):
    """A builder whose configs and splits come from its folder's tables.

    A subclass sets ``BENCHMARK`` (its folder), ``DESCRIPTION``, ``HOMEPAGE`` and ``LICENSE``, and
    defines ``_columns()``, the features of the config, if its folder has no ``features.json``, and
    ``_rows(path, split)``, which yields the dataset's rows of a file. Neither is called for a
    ``leaderboard.json``.
    """

    BENCHMARK: ClassVar[str]
    DESCRIPTION: ClassVar[str]
    HOMEPAGE: ClassVar[str] = ""
    LICENSE: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "BENCHMARK"):
            return
        table, version = dataset_table(cls.BENCHMARK), datasets.Version("1.0.0")
        cls.BUILDER_CONFIGS = [
            datasets.BuilderConfig(name=config.name, version=version, description=config.description)
            for config in table.configs.values()
        ]
        cls.DEFAULT_CONFIG_NAME = table.default

    def __init__(
        self,
        *args: Any,
        own_files: Mapping[str, Sequence[Path]] | None = None,
        only_splits: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Make a ``datasets.DatasetBuilder`` that prepares ``only_splits`` (None: all) of the pinned files.

        ``own_files`` are a user's files by split, instead of the pinned ones.
        """
        self._own_files = own_files
        self._only_splits = only_splits
        super().__init__(*args, **kwargs)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description=self.DESCRIPTION,
            features=datasets.Features(
                features(PUBLISHED) if self._is_shipped_leaderboard() else self._columns()
            ),
            homepage=self.HOMEPAGE,
            license=self.LICENSE,
            citation=citation(self.BENCHMARK),
        )

    def _is_shipped_leaderboard(self) -> bool:
        return (
            self.config.name == LEADERBOARD
            and not dataset_table(self.BENCHMARK).config(LEADERBOARD).files
        )

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

    def _generate_examples(self, split: str, files: list[Any]) -> Iterator[tuple[tuple[int, int], Json]]:
        for number, file in enumerate(files):
            path = self._path(file)
            if self._own_files is not None:
                rows = self._own_rows(path, split)
            elif self._is_shipped_leaderboard():
                rows = published_rows(path)
            else:
                rows = self._rows(path, split)
            yield from (((number, i), row) for i, row in enumerate(rows))

    def _own_rows(self, path: Path, split: str) -> Iterator[Json]:
        """Yield the rows of a user's file: in the official format, or rows of the dataset in Parquet or JSON."""
        if is_parquet(path):
            return self._checked(parquet_rows(path))
        rows = _json_rows(path)
        first = next(rows, None)
        if first is None:
            return iter(())
        is_row = first is not _NOT_ROWS and self._is_row(first) and not self._is_official(path, split)
        if is_row:
            return self._checked(chain([first], rows))
        return published_rows(path) if self._is_shipped_leaderboard() else self._rows(path, split)

    def _is_row(self, row: SourceRow) -> bool:
        try:
            return bool(list(self._checked([row])))
        except DataError:
            return False

    def _is_official(self, path: Path, split: str) -> bool:
        """Return whether the first row has the official format, whose fields may be the dataset's columns."""
        try:
            next(self._rows(path, split), None)
        except DataError:
            return False
        return True

    def _checked(self, rows: Iterable[SourceRow]) -> Iterator[Json]:
        """Yield the fields of rows of the dataset. Raises DataError for other columns or types."""
        schema = self.info.features.arrow_schema
        for row in rows:
            row.only(*schema.names)
            if missing := [name for name in schema.names if name not in row.fields]:
                raise DataError(f"{row.where}: the field {missing[0]!r} is missing")
            try:
                pa.RecordBatch.from_pylist([dict(row.fields)], schema)
            except (pa.ArrowException, TypeError, ValueError) as error:
                raise DataError(f"{row.where}: not a row of the dataset ({error})") from None
            yield dict(row.fields)

    def _columns(self) -> dict[str, Any]:
        """Return the features of the config, or of the default one (also for parts of the sample)."""
        declared = read_json(folder_of(self.BENCHMARK) / FEATURES)
        name = self.config.name.removeprefix("sample_")
        columns: dict[str, Any] = features(declared.get(name) or declared[self.DEFAULT_CONFIG_NAME])
        return columns

    def _rows(self, path: Path, split: str) -> Iterator[Json]:
        raise NotImplementedError


class RowsBuilder(BenchmarkBuilder):
    """A builder of JSON files whose objects are the rows: all rows together have the columns and their types.

    A column without values, such as the answers of a held-out config, has the type of the default
    config's.
    """

    def _columns(self) -> dict[str, Any]:
        columns = self._types([self._path(file) for each in self._files().values() for file in each])
        untyped = [name for name, kind in columns.items() if "null" in str(kind)]
        if untyped:
            splits = dataset_table(self.BENCHMARK).config(None).splits.values()
            types = self._types([open_path(self.BENCHMARK, file) for each in splits for file in each])
            columns |= {name: types[name] for name in untyped if name in types}
        return columns

    def _types(self, paths: Sequence[Path]) -> dict[str, Any]:
        rows = [row for path in paths for row in self._own_rows(path, "")]
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        return dict(datasets.Dataset.from_dict(columns).features)

    def _own_rows(self, path: Path, split: str) -> Iterator[Json]:
        if is_parquet(path):
            return (dict(row.fields) for row in parquet_rows(path))
        return self._rows(path, split)

    def _rows(self, path: Path, split: str) -> Iterator[Json]:
        return (dict(row.fields) for row in read_json_lines(path))


def rows_builder(name: str) -> type[RowsBuilder]:
    """Return the builder of a benchmark that has none of its own."""
    table = dataset_table(name)
    description, license = _about(folder_of(name) / "README.md")
    attributes = {
        "BENCHMARK": table.name,
        "DESCRIPTION": description or table.title,
        "LICENSE": license,
        "__module__": __name__,
    }
    return type(table.name.title().replace("_", ""), (RowsBuilder,), attributes)


def _about(card: Path) -> tuple[str, str]:
    """Return the first paragraph and the license of a dataset's card. Empty if there is none."""
    if not card.is_file():
        return "", ""
    try:
        license = (metadata_load(card) or {}).get("license")
    except (ValueError, YAMLError):  # publishing the card says what is wrong with it
        license = None
    text = card.read_text(encoding="utf-8", errors="replace")
    body = text.split("---\n", 2)[-1] if text.startswith("---\n") else text
    paragraphs = [paragraph.strip() for paragraph in body.split("\n\n")]
    prose = [paragraph for paragraph in paragraphs if paragraph and paragraph[0] not in "#`|<>"]
    return " ".join(prose[0].split()) if prose else "", license if isinstance(license, str) else ""


def cache_hash(builder: type[BenchmarkBuilder], config: str) -> str:
    """Return the 40 hex digits that name a config's folder in the cache of ``datasets``.

    They depend on its name, the digests of its files and of the code that reads them: if two configs
    had the same folder, the stock ``load_dataset`` would find no default. The hash of
    ``datasets`` depends only on the version, so its cache would return rows of other data or of
    older code.
    """
    total = hashlib.sha1(f"{config}\n".encode(), usedforsecurity=False)
    for split, files in dataset_table(builder.BENCHMARK).config(config).splits.items():
        for file in files:
            total.update(f"{split} {file} {file_digest(builder.BENCHMARK, file)}\n".encode())
    folder = folder_of(builder.BENCHMARK)
    code = [*sorted(folder.glob("*.py")), *folder.glob(FEATURES)]
    code += [Path(inspect.getfile(m)) for m in (SourceRow, PublishedScore, BenchmarkBuilder)]
    for path in code:
        total.update(path.read_bytes())
    return total.hexdigest()
