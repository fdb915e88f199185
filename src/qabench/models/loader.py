"""The loader of neural models, shared by BLEURT, entailment and dense retrieval.

Every model is loaded at a commit, which signatures contain. Weights are read from safetensors,
unless the caller asks otherwise, and a model's own code is never executed. Device and dtype are
chosen here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qabench.errors import InputError, QabenchError, unknown_name
from qabench.io.environment import offline_variable
from qabench.io.workers import cluster

WEIGHTS = ("*.safetensors", "*.bin")
DTYPES = ("float32", "bfloat16", "float16")
PICKLED_VARIABLE = "QABENCH_PICKLED_WEIGHTS"
# one of them is in every model. The second in sentence-transformers'
CONFIGS = ("config.json", "modules.json")
# parameters: more of them are loaded in bfloat16 on a GPU, as float32 rarely fits
LARGE = 2 * 10**9


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model's files, and how they are loaded.

    Made by ``locate``.

    Attributes:
        name: a name on the Hub, or a folder.
        commit: the commit on the Hub. None for a folder.
        version: 12 hex digits for signatures: of the commit, or of a digest of the folder's
            weights.
        device: a device name of torch.
        dtype: of ``DTYPES``.
        pickled: whether weights in PyTorch's pickle format are allowed where there are no
            safetensors.
    """

    name: str
    commit: str | None
    version: str
    device: str
    dtype: str = "float32"
    pickled: bool = False

    @property
    def label(self) -> str:
        """Return name and version, for signatures."""
        return f"{self.name}@{self.version}"

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of every ``from_pretrained`` of transformers that say where files come from."""
        offline = offline_variable() is not None
        return {"revision": self.commit, "trust_remote_code": False, "local_files_only": offline}

    def tokenizer(self) -> Any:
        """Return the model's tokenizer."""
        from transformers import AutoTokenizer

        return self._read(lambda: AutoTokenizer.from_pretrained(self.name, **self.arguments()))

    def config(self) -> Any:
        """Return the model's configuration in transformers."""
        from transformers import AutoConfig

        return self._read(lambda: AutoConfig.from_pretrained(self.name, **self.arguments()))

    def network(self, architecture: Any, **options: Any) -> Any:
        """Return the network in evaluation mode on its device, by ``architecture.from_pretrained`` of transformers.

        Raises QabenchError if the weights cannot be loaded, exist only as pickles and these are not
        allowed, or lack a part of the network, which transformers would initialize at random.
        """
        import torch

        # None: safetensors if there are any, else pickles, which transformers reads without
        # executing code in them.
        arguments = (
            self.arguments()
            | {"dtype": getattr(torch, self.dtype), "output_loading_info": True}
            | options
        )
        arguments["use_safetensors"] = None if self.pickled else True
        network, report = self._read(lambda: architecture.from_pretrained(self.name, **arguments))
        if absent := sorted(report["missing_keys"]):
            raise cannot_load(self.name, ValueError(f"its weights lack {', '.join(absent[:3])}"))
        return network.to(self.device).eval()

    def sentence_encoder(self, kind: Callable[..., Any]) -> Any:
        """Return an encoder of sentence-transformers, such as SentenceTransformer, in evaluation mode on its device."""
        weights = {"dtype": self.dtype} | ({} if self.pickled else {"use_safetensors": True})
        arguments = self.arguments() | {"device": self.device, "model_kwargs": weights}
        return self._read(lambda: kind(self.name, **arguments))

    def file(self, name: str) -> Path:
        """Return the path of one of the model's files."""
        return _file_of(self.name, name, self.commit)

    def _read(self, load: Callable[[], Any]) -> Any:
        try:
            return load()
        except (OSError, ValueError, RuntimeError) as error:
            if not self.pickled and "safetensors" in str(error):
                raise QabenchError(
                    f"the model {self.name} has no weights as safetensors, only as pickles of PyTorch. If you trust "
                    f"their author, set {PICKLED_VARIABLE}=1, or convert them: model.save_pretrained(FOLDER)"
                ) from error
            raise cannot_load(self.name, error) from error


def locate(
    model: str,
    revision: str | None = None,
    *,
    device: str | None = None,
    dtype: str = "float32",
    pickled: bool | None = None,
) -> ModelSource:
    """Return where a model's files are, and how to load them. Downloads its configuration, and no weights.

    Args:
        model: a name on the Hub, or a folder.
        revision: a branch, tag or commit on the Hub. None means its main branch. It is resolved to
            a commit.
        device: a device name of torch. Default: a GPU if there is one, else the CPU.
        dtype: of ``DTYPES``.
        pickled: allow weights in PyTorch's pickle format. Default: only with
            QABENCH_PICKLED_WEIGHTS=1.
    """
    if dtype not in DTYPES:
        raise unknown_name("unknown dtype", dtype, DTYPES)
    place = _checked(device) if device else default_device()
    commit, version = _pinned(model, revision)
    allowed = os.environ.get(PICKLED_VARIABLE) == "1" if pickled is None else pickled
    return ModelSource(model, commit, version, place, dtype, allowed)


def with_default_dtype(source: ModelSource, architecture: Any) -> ModelSource:
    """Return the source with bfloat16 for a large model (over 2 billion parameters) on a GPU, otherwise with float32.

    ``architecture`` is an Auto class of transformers, which counts the parameters without loading
    them.
    """
    import torch

    if not source.device.startswith("cuda"):
        return replace(source, dtype="float32")
    with torch.device("meta"):
        parameters = architecture.from_config(source.config()).num_parameters()
    return replace(source, dtype="bfloat16" if parameters > LARGE else "float32")


def default_device() -> str:
    """Return "cuda" if there is a GPU, here or for the workers of the cluster in use.

    Else "cpu".
    """
    import torch

    if workers := cluster():
        return "cuda" if workers.num_gpus else "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"


def cannot_load(model: str, error: Exception) -> QabenchError:
    """Return the error for a model that is not available or has another architecture."""
    return QabenchError(
        f"the model {model} cannot be loaded ({error}); give the name of a model on the Hub, or a folder"
    )


def _checked(device: str) -> str:
    import torch

    try:
        kind, index = torch.device(device).type, torch.device(device).index or 0
    except RuntimeError:
        raise InputError(
            f"unknown device {device!r}; allowed: cpu, cuda, cuda:0 and others that torch names"
        ) from None
    if kind == "cuda" and index >= torch.cuda.device_count():
        raise InputError(
            f"the device is {device!r}, but torch sees {torch.cuda.device_count()} GPUs; use cpu"
        )
    return device


def _pinned(model: str, revision: str | None) -> tuple[str | None, str]:
    """Return the commit, and its short form.

    Of a folder, which has no commit, None and a digest of its weights.
    """
    if not (folder := Path(model)).is_dir():
        commit = _commit_of(model, revision)
        return commit, commit[:12]
    files = [
        path
        for place in _module_folders(folder)
        for pattern in WEIGHTS
        for path in place.glob(pattern)
    ]
    if not files:
        raise QabenchError(
            f"the folder {model} has no weights: it contains no file {' or '.join(WEIGHTS)}"
        )
    return None, digest_of_files(files)


def digest_of_files(paths: Iterable[Path]) -> str:
    """Return twelve hex digits of a digest of files, in the order of their paths."""
    total = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()[:12]


def _module_folders(folder: Path) -> Iterator[Path]:
    """Yield the folder itself, and the module folders of a model of sentence-transformers."""
    yield folder
    listed = folder / "modules.json"
    for module in json.loads(listed.read_text(encoding="utf-8")) if listed.is_file() else ():
        if module.get("path"):
            yield folder / module["path"]


def _commit_of(model: str, revision: str | None) -> str:
    from transformers.utils.hub import extract_commit_hash

    problem: QabenchError | None = None
    for name in CONFIGS:
        try:
            return extract_commit_hash(str(_file_of(model, name, revision)), None) or "unknown"
        except QabenchError as error:
            problem = problem or error
    raise problem or cannot_load(model, ValueError("it has no configuration"))


def _file_of(model: str, name: str, revision: str | None) -> Path:
    from transformers.utils import cached_file

    try:
        return Path(
            cached_file(
                model, name, revision=revision, local_files_only=offline_variable() is not None
            )
        )
    except (OSError, ValueError) as error:
        raise cannot_load(model, error) from error


def buckets(lengths: Sequence[int], batch_size: int, longest: int | None = None) -> list[list[int]]:
    """Return positions of the inputs in batches of similar length, to reduce padding.

    The longest first.

    With the longest first, a batch that does not fit into memory fails at once. Ties keep their
    order. With ``longest``, the batch size is meant for inputs of this length, and batches of
    shorter inputs are larger, so that all batches have about the same number of tokens.
    """
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; allowed: 1 or more")
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    batches, start = [], 0
    while start < len(order):
        size = (
            max(batch_size, batch_size * longest // max(1, lengths[order[start]]))
            if longest
            else batch_size
        )
        batches.append(order[start : start + size])
        start += size
    return batches
