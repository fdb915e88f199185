"""What the tasks share: the data, and signatures. Only the harness imports this, for it imports the harness."""

from __future__ import annotations

from typing import Any

from lm_eval.api.task import ConfigurableTask

from qabench.loading import load_dataset
from qabench.loading_scripts import dataset_table, file_digest


class QabenchTask(ConfigurableTask):
    """A YAML task on a dataset of this package: ``dataset_path`` is the benchmark, ``dataset_name`` its config.

    A YAML file's functions do the rest. Its results' metadata hold ``signatures``: what each score depends on.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        # The harness leaves the key by which it found this class, and then refuses it.
        super().__init__(config={name: value for name, value in config.items() if name != "class"})
        self.config.metadata["signatures"] = self.signatures()

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """The rows by split, from verified files; the harness would ask the Hub."""
        self.dataset = load_dataset(self.config.dataset_path, self.config.dataset_name)

    def signatures(self) -> dict[str, str]:
        """By score, what it depends on; see ``qabench.signature``."""
        raise NotImplementedError

    def data_fields(self) -> dict[str, str]:
        """The fields of a signature that say which data it was."""
        table = dataset_table(self.config.dataset_path)
        config = table.config(self.config.dataset_name)
        ((file,),) = config.splits.values()
        return {"benchmark": table.name, "config": config.name, "data": file_digest(table.name, file)}
