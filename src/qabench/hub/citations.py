"""BibTeX entries of benchmarks, metrics, models and qabench, for ``qabench cite``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qabench.errors import unknown_name
from qabench.evaluation.signature import version
from qabench.io.escaping import latex_text
from qabench.loading_scripts import benchmark_names, dataset_table
from qabench.metrics import metric_class, metric_names

QABENCH = """@software{{qabench,
  title = {{qabench}},
  author = {{{{The qabench developers}}}},
  version = {{{version}}},
  url = {{https://github.com/qabench/qabench}},
}}
"""
MODEL = """@misc{{{key},
  title = {{{{{title}}}}},
  author = {{{{{author}}}}},
  howpublished = {{Hugging Face Hub}},
{revision}  url = {{https://huggingface.co/{id}}},
}}
"""
REVISION = "  note = {{Revision {revision}}},\n"
_MODEL_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def bibtex(names: Sequence[str] = ()) -> str:
    """Return the BibTeX entries of benchmarks, metrics and models, and of this version of qabench.

    A metric has the entry of its benchmark and those of its additional sources. An entry that
    several names share is listed once.

    Args:
        names: benchmarks, metrics, and models on the Hub such as "ORG/NAME" or "ORG/NAME@REVISION".
            Without names, all benchmarks are cited.

    Raises:
        InputError: an unknown name.
    """
    entries: dict[str, None] = {}
    for name in names or benchmark_names():
        entries |= dict.fromkeys(_entries(name.removeprefix("qabench/")))
    return "\n".join([*entries, QABENCH.format(version=version())])


def _entries(name: str) -> list[str]:
    if name in benchmark_names():
        citation = dataset_table(name).citation.strip()
        return [f"{citation}\n"] if citation else []
    if name in metric_names():
        kind = metric_class(name)
        own = kind.CITATION.strip()
        return [*_entries(kind.BENCHMARK), *([f"{own}\n"] if own else [])]
    model, _, revision = name.partition("@")
    if _MODEL_ID.fullmatch(model):
        return [_model_entry(model, revision)]
    allowed = [*benchmark_names(), *metric_names()]
    raise unknown_name("unknown benchmark, metric, or model ORG/NAME", name, allowed)


def _model_entry(model: str, revision: str) -> str:
    """Return the entry of a model on the Hub. If its card names a paper, that is better to cite."""
    author, _, title = model.partition("/")
    return MODEL.format(
        key=re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-"),
        title=latex_text(title),
        author=latex_text(author),
        revision=REVISION.format(revision=latex_text(revision)) if revision else "",
        id=model,
    )
