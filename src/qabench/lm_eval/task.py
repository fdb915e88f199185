"""Shared code of all tasks: data and signatures.

Only the harness imports this module, which imports the harness.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lm_eval.api.task import ConfigurableTask

from qabench.evaluation.signature import (
    Declaration,
    asked_field,
    asked_part,
    deviations,
    signature_name,
    with_fields,
)
from qabench.lm_eval import ID_FIELDS
from qabench.loading import load_dataset
from qabench.loading_scripts import dataset_table, file_digest

# stop strings that no answer contains; whether it samples follows from temperature
NOT_SIGNED = ("until", "do_sample")
NAMES = {"max_gen_toks": "max_tokens"}  # the harness's names -> those of signatures


class QabenchTask(ConfigurableTask):
    """A YAML task on a dataset of this package: ``dataset_path`` is the benchmark, ``dataset_name`` its config.

    The functions named in its YAML file do the rest. The metadata of its results contains
    ``signatures`` and ``deviations``, the sentences that say what distinguishes the scores from
    official ones, by family of scores.

    Attributes:
        DECLARATIONS: the benchmark's official values; see ``qabench.evaluation.signature``.
    """

    DECLARATIONS: ClassVar[Mapping[str, Declaration]]

    def __init__(self, config: dict[str, Any]) -> None:
        # The harness passes the key that names this class, but does not accept it.
        super().__init__(config={name: value for name, value in config.items() if name != "class"})
        rows = self.eval_docs
        self._ids = list(rows[next(name for name in ID_FIELDS if name in rows.column_names)])
        self._asked = self._ids
        self._sign()

    def set_config(self, key: str, value: Any, update: bool = False) -> None:
        """Set an option, such as those of --gen_kwargs, which the signatures then contain."""
        super().set_config(key, value, update)
        self._sign()

    def build_all_requests(self, **options: Any) -> None:
        """Build the requests for the questions that ``--limit`` or ``--samples`` select, and sign which they are."""
        selected = options.get("samples")
        self._asked = (
            self._ids[: options.get("limit")]
            if selected is None
            else [self._ids[i] for i in selected]
        )
        self._sign()
        super().build_all_requests(**options)

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Load the rows from verified files; the harness would load them from the Hub."""
        self.dataset = load_dataset(self.config.dataset_path, self.config.dataset_name)

    def signatures(self) -> dict[str, str]:
        """Return everything that the scores depend on, by family; see ``qabench.evaluation.signature``."""
        raise NotImplementedError

    def generation_fields(self) -> dict[str, Any]:
        """Return the fields of a signature for the generation parameters."""
        options = self.config.generation_kwargs or {}
        return {
            NAMES.get(name, name): value
            for name, value in options.items()
            if name not in NOT_SIGNED
        }

    def data_fields(self) -> dict[str, str]:
        """Return the fields of a signature for the data."""
        table = dataset_table(self.config.dataset_path)
        config = table.config(self.config.dataset_name)
        ((file,),) = config.splits.values()
        return {
            "benchmark": table.name,
            "config": config.name,
            "data": file_digest(table.name, file),
        }

    def _sign(self) -> None:
        questions = asked_field(self._asked)
        lines = {
            family: with_fields(line, asked=questions) for family, line in self.signatures().items()
        }
        part = asked_part(len(self._asked), len(self._ids))
        sentences = {
            family: deviations(line, self.DECLARATIONS[signature_name(line)]) + part
            for family, line in lines.items()
        }
        self.config.metadata |= {"signatures": lines, "deviations": sentences}
