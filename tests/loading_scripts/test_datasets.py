"""All datasets: the card's metadata is the builder's, and shipped configs load with nothing set."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets.info import DatasetInfosDict
from huggingface_hub import DatasetCard

from qabench.errors import SourceUnavailable
from qabench.loading import builder, load_dataset
from qabench.loading_scripts import FOLDER, benchmark_names, dataset_table

SHIPPED = [
    (name, config.name)
    for name in benchmark_names()
    for config in dataset_table(name).configs.values()
    if not config.files
]


def card_infos(name: str) -> DatasetInfosDict:
    return DatasetInfosDict.from_directory(str(FOLDER / name))


@pytest.mark.parametrize("name", benchmark_names())
def test_card_names_configs_and_features(name: str) -> None:
    data, table = DatasetCard.load(str(FOLDER / name / "README.md")).data, dataset_table(name)
    infos = card_infos(name)
    assert list(infos) == list(table.configs) == [config["config_name"] for config in data.configs]
    assert [config["config_name"] for config in data.configs if config.get("default")] == [table.default]
    for config, info in infos.items():
        assert info.features == builder(name, config).info.features, config
        assert set(info.splits or ()) <= set(table.configs[config].splits)


@pytest.mark.parametrize("name", benchmark_names())
def test_card_has_the_sizes(name: str, mirror: Path) -> None:
    counted = 0
    for config, info in card_infos(name).items():
        for split, size in (info.splits or {}).items():
            try:
                rows = load_dataset(name, config, split=split, streaming=True)
                assert sum(1 for _ in rows) == size.num_examples, (config, split)
            except SourceUnavailable:
                continue
            counted += 1
    assert counted >= 2


@pytest.mark.parametrize(("name", "config"), SHIPPED)
def test_shipped_configs_need_nothing(
    name: str, config: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QABENCH_MIRROR", str(tmp_path / "mirror"))
    splits = load_dataset(name, config, cache_dir=str(tmp_path / "hf"))
    assert list(splits) == list(dataset_table(name).configs[config].splits)
    for split, rows in splits.items():
        assert len(rows) >= 2
        assert list(load_dataset(name, config, split=split, streaming=True)) == rows.to_list()
