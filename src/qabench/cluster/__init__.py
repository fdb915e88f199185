"""Runs work on several machines, or on all processors of this one, with Ray.

Within ``with Cluster():``, ``qabench.evaluate_predictions``, the metrics, and the functions of
``qabench.cluster.jobs`` work on the cluster. Without it, nothing imports Ray.

Ray distributes the inputs over its processes. A process loads its state once, for example a spaCy
model. If a process or machine dies, Ray repeats its unfinished inputs elsewhere.
"""

from __future__ import annotations

import os
import pickle
import platform
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
from typing import Any, TypeVar

from qabench.errors import MissingExtra, QabenchError
from qabench.io.environment import version_or_none
from qabench.io.workers import Load, forbid_forks, most_workers, using

In = TypeVar("In")
Out = TypeVar("Out")

# An input that has failed this often is probably the reason why its process dies.
MAX_RETRIES = 5
# Several tasks per processor are submitted ahead, so that a slow one does not leave other processes
# idle.
TASKS_PER_PROCESSOR = 4
# A cluster is in the same network, so its port answers at once or not at all.
SECONDS_TO_ANSWER = 3
# Environment variables for Ray. Most of them suppress its output, because qabench itself raises
# errors and shows progress.
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    # Ray warns unless this is set. The value is the future default that it announces.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # By default, Ray retries a task without limit when memory is short.
    "RAY_task_oom_retries": str(MAX_RETRIES),
}
# Packages that results depend on: they must have the same version on all machines.
PACKAGES = (
    *("qabench", "ftfy", "numpy", "rouge-score", "rouge-score-rs", "sentencepiece", "simplemma"),
    *("spacy", "thinc", "torch", "transformers"),
)


class Cluster:
    """A Ray cluster. Within a ``with`` block, qabench normalizes, scores and labels on it.

    The results equal the results of one process, in the same order. Without the block, nothing
    imports Ray.

    Args:
        address: the address of a running cluster that this machine belongs to, as "HOST:6379" or
            "auto". None starts one on this machine, which ends with the block. If the program has
            called ``ray.init`` itself, that cluster is used.
        workers: the number of processes. None for one per processor of the cluster.
        num_gpus: GPUs per process that runs a network, such as 0.5 for two processes on one GPU, or
            None for one GPU if the cluster has any, and no GPU otherwise.

    Raises:
        MissingExtra: Ray is not installed.
        QabenchError: the cluster cannot be reached or started.
    """

    def __init__(
        self, address: str | None = None, workers: int | None = None, num_gpus: float | None = None
    ) -> None:
        if find_spec("ray") is None:
            raise MissingExtra("work on a Ray cluster needs Ray: pip install 'qabench[ray]'")
        self.address = address
        self._requested = (workers, num_gpus)
        self.workers, self.num_gpus, self._in_flight = 0, 0.0, 1
        self._closing = ExitStack()

    def __enter__(self) -> Cluster:
        import ray

        with ExitStack() as closing:
            if not ray.is_initialized():
                closing.callback(ray.shutdown)
                self._connect()
            resources = ray.cluster_resources()
            processors = max(1, int(resources.get("CPU", 1)))
            workers, num_gpus = self._requested
            self.workers = workers or processors
            self._in_flight = workers or TASKS_PER_PROCESSOR * processors
            self.num_gpus = float(resources.get("GPU", 0) >= 1) if num_gpus is None else num_gpus
            closing.enter_context(using(self))
            self._closing = closing.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing.close()

    def _connect(self) -> None:
        import ray

        for name, value in SETTINGS.items():
            os.environ.setdefault(name, value)
        host, _, port = (self.address or "").rpartition(":")
        own: dict[str, Any] = {}
        if not self.address:
            own = {"num_cpus": self._requested[0] or most_workers(), "include_dashboard": False}
        try:
            if port.isdigit():
                # If nothing listens there, Ray would try for ten minutes.
                socket.create_connection((host, int(port)), SECONDS_TO_ANSWER).close()
            ray.init(self.address or "local", log_to_driver=False, logging_level="ERROR", **own)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            verb = "reached" if self.address else "started"
            raise QabenchError(
                f"the Ray cluster {self.address or 'local'} cannot be {verb}: {error}"
            ) from error

    def map(self, load: Load[In, Out], inputs: Iterable[In], gpu: bool = False) -> Iterator[Out]:
        """Yield the results in the order of the inputs. See ``qabench.io.workers.map_loaded``.

        Raises:
            QabenchError: the function raised it, processes were killed repeatedly, the cluster was
                lost, or one of its machines has other versions of packages.
        """
        import ray
        from ray import cloudpickle
        from ray.exceptions import RayError

        task = ray.remote(
            num_cpus=1,
            num_gpus=self.num_gpus if gpu else 0,
            max_retries=MAX_RETRIES,
            # Ray would restart a process with a GPU after each call. It must keep its loaded
            # network.
            max_calls=0,
        )(_result)
        setup = ray.put((cloudpickle.dumps(load), versions(), os.getcwd()))
        running = deque[Any]()
        items = iter(inputs)
        try:
            while True:
                for item in islice(items, self._in_flight - len(running)):
                    running.append(task.remote([setup], item))
                if not running:
                    return
                result = ray.get(running[0])
                running.popleft()
                if isinstance(result, QabenchError):
                    raise result
                yield result
        except RayError as error:
            # Only the cause or the first line is shown. The rest of Ray's text is tracebacks of
            # several processes, or advice about its settings.
            cause = getattr(error, "cause", None)
            reason = repr(cause) if cause else str(error).strip().partition("\n")[0]
            raise QabenchError(f"the job failed on the Ray cluster: {reason}") from error
        finally:
            for reference in running:
                ray.cancel(reference)


def versions() -> dict[str, str]:
    """Return the installed versions of packages that results depend on, and of Python."""
    packages = {name: version_or_none(name) or "not installed" for name in PACKAGES}
    return {"python": sys.version.split()[0], **packages}


def _result(setup: list[Any], item: Any) -> Any:
    """Return the result or the error for an input. Ray would add a traceback to a raised error."""
    try:
        return _loaded(*setup)(item)
    except QabenchError as error:
        return error


@lru_cache(maxsize=1)
def _loaded(setup: Any) -> Callable[[Any], Any]:
    """Return the function of a job, loaded once in each process."""
    import ray

    load, expected, folder = ray.get(setup)
    with suppress(OSError):
        # Paths in the job may be relative to the working directory of the command.
        os.chdir(folder)
    # Ray already runs one process per processor, so this one must not fork more.
    forbid_forks()
    _check_versions(expected)
    function: Callable[[Any], Any] = pickle.loads(load)()
    return function


def _check_versions(expected: dict[str, str]) -> None:
    here = versions()
    differing = []
    for name, version in expected.items():
        if here[name] != version:
            differing.append(f"{name} {here[name]} instead of {version}")
    if differing:
        raise QabenchError(
            f"the machine {platform.node()} of the Ray cluster has {', '.join(differing)}; install the same versions "
            "on all machines, because scores depend on them"
        )
