"""The loader of neural models, shared by BLEURT, entailment and dense retrieval.

A model from the Hub is loaded at a commit, which signatures contain. For a folder, they contain a
digest of its weights. A model's own code is never executed. Weights from the Hub are read from
safetensors, except for two models (``PICKLED``) that are published only as PyTorch pickles.
transformers reads pickles without executing code in them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.errors import QabenchError
from qabench.io.environment import offline_variable
from qabench.io.workers import cluster

WEIGHTS = ("*.safetensors", "*.bin")
# Every model has config.json, except sentence-transformers models, which have modules.json.
CONFIGS = ["config.json", "modules.json"]
PICKLED = ("google/t5_xxl_true_nli_mixture", "lucadiliello/BLEURT-20")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model's files, and how they are loaded (see ``locate``).

    Attributes:
        name: a name on the Hub, or a folder.
        commit: the commit on the Hub. None for a folder.
        version: the first 12 hex digits of the commit, or of a digest of the folder's weights.
            Signatures contain it.
        device: a torch device name.
        dtype: the name of a torch floating-point type.
    """

    name: str
    commit: str | None
    version: str
    device: str
    dtype: str = "float32"

    @property
    def label(self) -> str:
        """Return name and version, for signatures."""
        return f"{self.name}@{self.version}"

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``from_pretrained`` that say where a model's files come from."""
        return {
            "revision": self.commit,
            "trust_remote_code": False,
            "local_files_only": offline_variable() is not None,
        }

    def tokenizer(self) -> Any:
        """Return the model's tokenizer."""
        from transformers import AutoTokenizer

        return self._read(AutoTokenizer.from_pretrained)

    def network(self, architecture: Any, **options: Any) -> Any:
        """Load the network with ``architecture.from_pretrained``, in evaluation mode.

        Raises QabenchError if the weights cannot be loaded, or lack a part of the network, which
        transformers would initialize at random.
        """
        network, report = self._read(
            architecture.from_pretrained, output_loading_info=True, **self._weights(), **options
        )
        missing = sorted(report["missing_keys"])
        if missing:
            raise cannot_load(self.name, f"its weights lack {', '.join(missing[:3])}")
        return network.to(self.device).eval()

    def sentence_encoder(self, kind: Callable[..., Any]) -> Any:
        """Load a sentence-transformers encoder, such as SentenceTransformer, on the device."""
        return self._read(kind, device=self.device, model_kwargs=self._weights())

    def file(self, name: str) -> Path:
        """Return the path of one of the model's files."""
        from transformers.utils import cached_file

        return Path(self._read(cached_file, filename=name))

    def _weights(self) -> dict[str, Any]:
        use_safetensors: bool | None = True
        if self.commit is None or self.name in PICKLED:
            # For transformers, None means safetensors if there are any, else pickles.
            use_safetensors = None
        return {"dtype": self.dtype, "use_safetensors": use_safetensors}

    def _read(self, load: Callable[..., Any], **options: Any) -> Any:
        try:
            return load(self.name, **self.arguments(), **options)
        except (OSError, ValueError, RuntimeError) as error:
            raise cannot_load(self.name, error) from error


def locate(model: str | ModelSource, *, dtype: str = "float32") -> ModelSource:
    """Find a model's files, and how to load them.

    This downloads the model's configuration, but no weights. The model will run on a GPU if there
    is one, here or for the workers of the cluster in use.

    Args:
        model: a folder, or a name on the Hub, perhaps with a branch, tag or commit:
            "BAAI/bge-small-en-v1.5@main". It is resolved to a commit. A ``ModelSource`` is returned
            as it is.
        dtype: "float32", "bfloat16" or "float16".

    Raises:
        QabenchError: the model is not available, or a folder has no weights.
    """
    from huggingface_hub import snapshot_download

    if isinstance(model, ModelSource):
        return model
    if (folder := Path(model)).is_dir():
        return ModelSource(model, None, _digest_of_weights(folder), default_device(), dtype)
    name, _, revision = model.partition("@")
    offline = offline_variable() is not None
    try:
        snapshot = snapshot_download(
            name, revision=revision or None, allow_patterns=CONFIGS, local_files_only=offline
        )
    except (OSError, ValueError) as error:
        raise cannot_load(name, error) from error
    # In the Hub's cache, folders of snapshots are named after commits.
    commit = Path(snapshot).name
    return ModelSource(name, commit, commit[:12], default_device(), dtype)


def default_device() -> str:
    """Return "cuda" if there is a GPU, here or for the workers of the cluster in use, else "cpu"."""
    import torch

    if workers := cluster():
        has_gpu = bool(workers.num_gpus)
    else:
        has_gpu = torch.cuda.is_available()
    return "cuda" if has_gpu else "cpu"


def cannot_load(model: str, why: object) -> QabenchError:
    """Return the error for a model that is not available or has another architecture."""
    return QabenchError(
        f"the model {model} cannot be loaded ({why}); give a folder, or the name of a model on the Hub that has "
        "weights as safetensors"
    )


def _digest_of_weights(folder: Path) -> str:
    """Return a digest of the weights in a folder and in its modules, such as ``2_Dense``."""
    files: list[Path] = []
    for module in [folder, *folder.glob("[0-9]*_*")]:
        for pattern in WEIGHTS:
            files += module.glob(pattern)
    if not files:
        raise cannot_load(str(folder), f"it contains no file {' or '.join(WEIGHTS)}")
    return digest_of_files(files)


def digest_of_files(paths: Iterable[Path]) -> str:
    """Return twelve hex digits of a digest of files, in the order of their paths."""
    total = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()[:12]


def buckets(lengths: Sequence[int], batch_size: int, longest: int | None = None) -> list[list[int]]:
    """Return positions of the inputs in batches of similar length, which reduces padding.

    The longest inputs come first, so that a batch that does not fit into memory fails at once. Ties
    keep their order. With ``longest``, the batch size is meant for inputs of this length, and
    batches of shorter inputs are larger, so that all batches have about the same number of tokens.
    """
    # Python's sort is stable, so inputs of equal length keep their order.
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    batches = []
    start = 0
    while start < len(order):
        size = batch_size
        if longest:
            size = max(size, size * longest // max(1, lengths[order[start]]))
        batches.append(order[start : start + size])
        start += size
    return batches
