"""The loader of models: commit, format of weights, remote code, device and dtype; batches of
similar length.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench.errors import QabenchError
from qabench.models.loader import ModelSource, buckets, locate

pytest.importorskip("torch", reason="needs the extra autoais")
pytest.importorskip("transformers", reason="needs the extra autoais")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one layer, as safetensors."""
    from transformers import BertConfig, BertModel

    path = tmp_path_factory.mktemp("model")
    sizes: dict[str, Any] = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    BertModel(BertConfig(vocab_size=9, **sizes)).save_pretrained(path)
    return path


@pytest.fixture
def pickled(folder: Path, tmp_path: Path) -> Path:
    """The same as a pickle."""
    import torch
    from safetensors.torch import load_file

    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    torch.save(load_file(folder / "model.safetensors"), tmp_path / "pytorch_model.bin")
    return tmp_path


def network(source: ModelSource) -> Any:
    from transformers import BertModel

    return source.network(BertModel)


def test_device_dtype_and_version_are_reported(folder: Path) -> None:
    import torch

    source = locate(str(folder), dtype="bfloat16")
    assert (source.dtype, source.device) == ("bfloat16", "cuda" if torch.cuda.is_available() else "cpu")
    assert source.label == f"{folder}@{source.version}" and source.commit is None
    loaded = network(source)
    assert loaded.dtype == torch.bfloat16 and not loaded.training
    assert locate(str(folder)).version == source.version
    assert source.arguments() == {"revision": None, "trust_remote_code": False, "local_files_only": True}


def test_pickles_only_of_folders_and_official_models(pickled: Path) -> None:
    source = locate(str(pickled))
    assert network(source).num_parameters() > 0
    with pytest.raises(QabenchError, match=r"cannot be loaded \(.*; give a folder, or .* weights as safetensors"):
        network(replace(source, commit="0" * 40))


def test_weights_without_a_layer_are_rejected(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    weights = load_file(folder / "model.safetensors")
    del weights["pooler.dense.bias"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(QabenchError, match=r"its weights lack pooler\.dense\.bias"):
        network(locate(str(tmp_path)))


def test_code_of_a_model_is_not_executed(folder: Path, tmp_path: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"model_type": "custom", "auto_map": {"AutoConfig": "custom.Custom"}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "custom.py").write_text("raise SystemExit('executed')", encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    from transformers import AutoModel

    with pytest.raises(QabenchError, match="cannot be loaded"):
        locate(str(tmp_path)).network(AutoModel)


def test_what_cannot_be_located(tmp_path: Path) -> None:
    with pytest.raises(QabenchError, match=r"it contains no file \*\.safetensors or \*\.bin"):
        locate(str(tmp_path))
    with pytest.raises(QabenchError, match="the model no/such cannot be loaded"):
        locate("no/such")


def test_modules_are_part_of_the_version(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "modules.json").write_text('[{"path": ""}, {"path": "1_Dense"}]', encoding="utf-8")
    (tmp_path / "1_Dense").mkdir()
    (tmp_path / "1_Dense" / "model.safetensors").write_bytes(b"a")
    before = locate(str(tmp_path)).version
    (tmp_path / "1_Dense" / "model.safetensors").write_bytes(b"b")
    assert locate(str(tmp_path)).version != before


@given(st.lists(st.integers(0, 50)), st.integers(1, 9))
def test_buckets_hold_each_input_once_with_its_like(lengths: list[int], size: int) -> None:
    batches = buckets(lengths, size)
    order = [i for batch in batches for i in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)
    assert all(len(batch) == size for batch in batches[:-1])
    assert all(0 < len(batch) <= size for batch in batches)


@given(st.lists(st.integers(1, 50)), st.integers(1, 9))
def test_batches_of_short_inputs_are_larger(lengths: list[int], size: int) -> None:
    batches = buckets(lengths, size, longest=50)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) * max(lengths[i] for i in batch) <= size * 50
    assert all(len(batch) >= size for batch in batches[:-1])


def test_ties_stay_in_order_and_a_batch_holds_something() -> None:
    assert buckets([1, 2, 1, 2], 3) == [[1, 3, 0], [2]]
