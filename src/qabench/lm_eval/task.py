"""What all tasks share: data and signatures. Only the harness imports this module, because it imports the harness."""

from __future__ import annotations

from typing import Any

from lm_eval.api.task import ConfigurableTask

from qabench.loading import load_dataset
from qabench.loading_scripts import dataset_table, file_digest


class QabenchTask(ConfigurableTask):
    """A YAML task on a dataset of this package: ``dataset_path`` is the benchmark, ``dataset_name`` its config.

    The functions that its YAML file names do the rest. The metadata of its results hold ``signatures``.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        # The harness passes the key that names this class, and refuses it.
        super().__init__(config={name: value for name, value in config.items() if name != "class"})
        self.config.metadata["signatures"] = self.signatures()

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """The rows by split, from verified files; the harness would ask the Hub."""
        self.dataset = load_dataset(self.config.dataset_path, self.config.dataset_name)

    def signatures(self) -> dict[str, str]:
        """Family of scores -> everything that they depend on; see ``qabench.signature``."""
        raise NotImplementedError

    def data_fields(self) -> dict[str, str]:
        """The data's fields of a signature."""
        table = dataset_table(self.config.dataset_path)
        config = table.config(self.config.dataset_name)
        ((file,),) = config.splits.values()
        return {"benchmark": table.name, "config": config.name, "data": file_digest(table.name, file)}
