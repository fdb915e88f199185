"""Shared code of all tasks: data and signatures. Only the harness imports this module, which imports the harness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lm_eval.api.task import ConfigurableTask

from qabench.evaluation.signature import Declaration, deviations, signature_name
from qabench.loading import load_dataset
from qabench.loading_scripts import dataset_table, file_digest

NOT_SIGNED = ("until", "do_sample")  # stop strings that no answer contains; whether it samples follows from temperature
NAMES = {"max_gen_toks": "max_tokens"}  # the harness's names -> those of signatures


class QabenchTask(ConfigurableTask):
    """A YAML task on a dataset of this package: ``dataset_path`` is the benchmark, ``dataset_name`` its config.

    The functions named in its YAML file do the rest. The metadata of its results contains ``signatures`` and
    ``deviations``, the sentences that say what distinguishes the scores from official ones, by family of scores.

    Attributes:
        DECLARATIONS: the benchmark's official values; see ``qabench.evaluation.signature``.
    """

    DECLARATIONS: ClassVar[Mapping[str, Declaration]]

    def __init__(self, config: dict[str, Any]) -> None:
        # The harness passes the key that names this class, but does not accept it.
        super().__init__(config={name: value for name, value in config.items() if name != "class"})
        self._sign()

    def set_config(self, key: str, value: Any, update: bool = False) -> None:
        """Set an option, such as those of --gen_kwargs, which the signatures then contain."""
        super().set_config(key, value, update)
        self._sign()

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Load the rows from verified files; the harness would load them from the Hub."""
        self.dataset = load_dataset(self.config.dataset_path, self.config.dataset_name)

    def signatures(self) -> dict[str, str]:
        """Return everything that the scores depend on, by family; see ``qabench.evaluation.signature``."""
        raise NotImplementedError

    def generation_fields(self) -> dict[str, Any]:
        """Return the fields of a signature for the generation parameters."""
        options = self.config.generation_kwargs or {}
        return {NAMES.get(name, name): value for name, value in options.items() if name not in NOT_SIGNED}

    def data_fields(self) -> dict[str, str]:
        """Return the fields of a signature for the data."""
        table = dataset_table(self.config.dataset_path)
        config = table.config(self.config.dataset_name)
        ((file,),) = config.splits.values()
        return {"benchmark": table.name, "config": config.name, "data": file_digest(table.name, file)}

    def _sign(self) -> None:
        lines = self.signatures()
        sentences = {
            family: deviations(line, self.DECLARATIONS[signature_name(line)]) for family, line in lines.items()
        }
        self.config.metadata |= {"signatures": lines, "deviations": sentences}
