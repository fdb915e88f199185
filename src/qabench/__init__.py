"""qabench: FanOutQA, ExpertQA, FELM and fastbook-benchmark as Hugging Face datasets and metrics.

    import qabench
    dev = qabench.load_dataset("fanoutqa", "dev", split="validation")
    accuracy = qabench.load_metric("fanout_acc")

Submodules: ``answers``, ``generations``, ``scoring``, ``sources``, ``stats``, ``text``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qabench.loading import load_dataset, load_metric
    from qabench.text import normalize

__all__ = ["__version__", "load_dataset", "load_metric", "normalize"]


def __getattr__(name: str) -> Any:
    # Importing datasets takes seconds, and ``qabench --help`` needs none of it.
    if name in ("load_dataset", "load_metric"):
        from qabench import loading

        return getattr(loading, name)
    if name == "normalize":
        from qabench.text import normalize

        return normalize
    if name == "__version__":
        from qabench.signature import version

        return version()
    raise AttributeError(f"module 'qabench' has no attribute {name!r}")
