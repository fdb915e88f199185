"""Work on several machines, or on all processors of this one, by Ray Data.

Within ``with Cluster():``, ``qabench.evaluate_predictions``, the metrics, and the functions of
``qabench.scale.jobs`` work on the cluster. Without it, nothing imports Ray.

Ray Data distributes the inputs over a pool of actors. An actor loads its state once, for example a
spaCy model. If its process or machine dies, Ray restarts it elsewhere and repeats what it was
working on.
"""

from __future__ import annotations

import logging
import os
import pickle
import platform
import shutil
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, TypeVar

import pyarrow

from qabench.errors import MissingExtra, QabenchError
from qabench.io.environment import installed_version
from qabench.io.workers import Load, most_workers, using

In = TypeVar("In")
Out = TypeVar("Out")

# with one input, when its process dies. After more, the input itself is probably the reason
MAX_ATTEMPTS = 6
# that the cluster still answers. Ray ends this process 15 s after its node was lost
SECONDS_BETWEEN_CHECKS = 1.0
SECONDS_TO_ANSWER = 3
MAX_FAILED_CHECKS = 3
FOLDER = "qabench-ray-"  # and the id of the process, of the folders of local clusters


class Cluster:
    """A Ray cluster. Within a ``with`` block, qabench normalizes, scores, labels and indexes on it.

    The results equal the results of one process, in the same order. Without the block, nothing
    imports Ray.

    Args:
        address: of a running cluster that this machine belongs to, as "HOST:6379" or "auto". None
            starts one on this machine, which ends with the block, unless the program has called
            ``ray.init`` itself.
        workers: processes. None for one per processor of the cluster.
        num_gpus: GPUs per process that runs a network, such as 0.5 for two processes on one GPU,
            or None for one GPU if the cluster has any, otherwise none.

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
        self.workers = workers or 0
        self.num_gpus = num_gpus or 0.0
        self._given = (workers, num_gpus)
        self._resources: dict[str, float] = {}
        self._attempts: Any = None
        self._jobs = 0
        self._closing = ExitStack()

    def __enter__(self) -> Cluster:
        import ray.data
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        with ExitStack() as closing:
            if not ray.is_initialized():
                self._connect(closing)
            self._resources = ray.cluster_resources()
            workers, num_gpus = self._given
            self.workers = workers or max(1, int(self._resources.get("CPU", 1)))
            self.num_gpus = (
                float(self._resources.get("GPU", 0) >= 1) if num_gpus is None else num_gpus
            )
            # On the machine of the command, which the job needs anyway.
            here = NodeAffinitySchedulingStrategy(
                ray.get_runtime_context().get_node_id(), soft=False
            )
            self._attempts = (
                ray.remote(Attempts).options(num_cpus=0, scheduling_strategy=here).remote()
            )
            closing.callback(ray.kill, self._attempts)
            # qabench shows progress itself
            ray.data.DataContext.get_current().enable_progress_bars = False
            logging.getLogger("ray.data").setLevel(logging.ERROR)
            closing.enter_context(using(self))
            self._closing = closing.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing.close()

    def map(self, load: Load[In, Out], inputs: Iterable[In], gpu: bool = False) -> Iterator[Out]:
        """Map like ``qabench.io.workers.map_loaded``: the results in the order of the inputs, each once.

        Raises:
            QabenchError: raised by the function, processes were killed repeatedly, the cluster was
                lost, or one of its machines has other versions of packages.
        """
        items = list(inputs)
        early: dict[int, Out] = {}
        following = 0
        for number, result in self._unordered(load, items, gpu):
            if number >= following:  # otherwise Ray has computed it twice
                early[number] = result
            while following in early:
                yield early.pop(following)
                following += 1
        if following < len(items):
            raise QabenchError(
                f"the Ray cluster returned {following} of {len(items)} results; run the command again"
            )

    def _unordered(
        self, load: Load[In, Out], inputs: Sequence[In], gpu: bool
    ) -> Iterator[tuple[int, Out]]:
        import ray.data
        from ray import cloudpickle
        from ray.exceptions import RayError

        tables = [
            pyarrow.table(
                {
                    "number": [number],
                    "data": pyarrow.array([pickle.dumps(item)], pyarrow.large_binary()),
                }
            )
            for number, item in enumerate(inputs)
        ]
        if not tables:
            return
        self._jobs += 1
        attempts = (self._attempts, self._jobs, MAX_ATTEMPTS)
        gpus = self.num_gpus if gpu else 0
        most = int(self._resources.get("GPU", 0) / gpus) if gpus else self.workers
        results = ray.data.from_arrow(tables).map_batches(
            Worker,
            fn_constructor_args=(cloudpickle.dumps(load), versions(), os.getcwd(), attempts),
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=max(1, min(most, len(tables)))),
            num_cpus=1,
            num_gpus=gpus or None,
        )
        # Without prefetching, which would hold back a result until the next one is there.
        batches = results.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
        try:
            for table in _while_connected(batches):
                for number, data in zip(
                    table["number"].to_pylist(), table["result"].to_pylist(), strict=True
                ):
                    failed, result = pickle.loads(data)
                    if failed:
                        raise result
                    yield number, result
        except RayError as error:
            # the other lines are tracebacks of several processes
            reason = str(error).strip().splitlines()[-1]
            raise QabenchError(f"the job failed on the Ray cluster: {reason}") from error

    def _connect(self, closing: ExitStack) -> None:
        import ray

        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Ray reports errors as exceptions. Its log says of each worker of Ray Data that it might
        # not restart.
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        # announced default. Silences a warning
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        options: dict[str, Any] = {"address": self.address or "local"}
        if self.address is None:
            # Ray's sockets need a short path
            place = Path("/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir())
            delete_abandoned(place)
            folder = tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-", dir=place)
            closing.callback(shutil.rmtree, folder, ignore_errors=True)
            options |= {
                "num_cpus": self._given[0] or most_workers(),
                "include_dashboard": False,
                "_temp_dir": folder,
            }
            # the priority of this process instead of the lowest
            options |= {"_system_config": {"worker_niceness": 0}}
        closing.callback(ray.shutdown)
        try:
            if self.address:
                _check_answers(self.address)  # Ray would try for ten minutes
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise QabenchError(
                f"the Ray cluster {options['address']} cannot be {'reached' if self.address else 'started'}: {error}"
            ) from error


def delete_abandoned(place: Path) -> None:
    """Delete the folders of clusters whose command was killed."""
    for folder in place.glob(f"{FOLDER}*-*"):
        try:
            os.kill(int(folder.name.removeprefix(FOLDER).partition("-")[0]), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (ValueError, OSError):  # not such a folder, or of another user
            pass


def _check_answers(address: str) -> None:
    """Raise OSError unless a gRPC server at HOST:PORT sends its settings, which it does first.

    A connection alone is not enough: processes that a killed server started keep its port open.
    """
    host, _, port = address.rpartition(":")
    if not port.isdigit():  # "auto"
        return
    with socket.create_connection((host, int(port)), SECONDS_TO_ANSWER) as connection:
        if not connection.recv(1):
            raise ConnectionError("it closed the connection")


def _while_connected(items: Iterable[Out]) -> Iterator[Out]:
    """Yield the items, which a thread reads, while the head of the cluster and this machine's node answer.

    Ray itself would wait for a lost head for a minute, and then end this process without a message.
    """
    import ray

    here = ray.get_runtime_context().get_node_id()
    nodes = [
        f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"
        for node in ray.nodes()
        if node["NodeID"] == here
    ]
    addresses, failures = [ray.get_runtime_context().gcs_address, *nodes], 0
    iterator = iter(items)
    with ThreadPool(1) as pool:
        while True:
            result = pool.apply_async(next, (iterator, None))
            result.wait(SECONDS_BETWEEN_CHECKS)
            while not result.ready():
                try:
                    for address in addresses:
                        _check_answers(address)
                    failures = 0
                except OSError as error:
                    failures += 1
                    if failures == MAX_FAILED_CHECKS:
                        # otherwise a thread of Ray Data starts another cluster
                        with suppress(ImportError):
                            from ray._private import auto_init_hook

                            auto_init_hook.enable_auto_connect = False
                        # that thread's traceback
                        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
                        message = f"the Ray cluster was lost: {address} does not answer ({error})"
                        raise QabenchError(
                            f"{message}; run the command again on a running cluster"
                        ) from error
                result.wait(SECONDS_BETWEEN_CHECKS)
            if (item := result.get()) is None:
                return
            yield item


# Packages that results depend on: they must have the same version on all machines.
PACKAGES = (
    *(
        "qabench",
        "ftfy",
        "numpy",
        "rouge-score",
        "rouge-score-rs",
        "sentencepiece",
        "simplemma",
        "spacy",
        "thinc",
    ),
    *("torch", "transformers"),
)


def versions() -> dict[str, str]:
    """Return the installed versions of packages that results depend on, and of Python."""
    packages = {name: installed_version(name) or "not installed" for name in PACKAGES}
    return {"python": sys.version.split()[0], **packages}


class Worker:
    """An actor of Ray Data. Errors are results: Ray would add its traceback to them."""

    def __init__(
        self, load: bytes, expected: dict[str, str], folder: str, attempts: tuple[Any, int, int]
    ) -> None:
        self.attempts, self.job, self.most = attempts
        self.error: QabenchError | None = None
        with suppress(OSError):  # paths may be relative to the folder of the command
            os.chdir(folder)
        try:
            _check_versions(expected)
            self.function = pickle.loads(load)()
        except QabenchError as error:
            self.error = error

    def __call__(self, table: Any) -> Any:

        inputs = zip(table["number"].to_pylist(), table["data"].to_pylist(), strict=True)
        results = [pickle.dumps(self._result(number, data)) for number, data in inputs]
        return pyarrow.table(
            {"number": table["number"], "result": pyarrow.array(results, pyarrow.large_binary())}
        )

    def _result(self, number: int, data: bytes) -> tuple[bool, Any]:
        import ray

        if ray.get(self.attempts.next.remote((self.job, number))) > self.most:
            return True, QabenchError(
                f"part {number} of the job was started {self.most} times; its process or machine was lost each time "
                "(out of memory?)"
            )
        if self.error:
            return True, self.error
        try:
            return False, self.function(pickle.loads(data))
        except QabenchError as error:
            return True, error


class Attempts:
    """An actor that counts how often each input was started: Ray Data repeats without a limit."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[int, int]] = Counter()

    def next(self, key: tuple[int, int]) -> int:
        self.counts[key] += 1
        return self.counts[key]


def _check_versions(expected: dict[str, str]) -> None:
    here = versions()
    other = [
        f"{name} {here[name]} instead of {version}"
        for name, version in expected.items()
        if here[name] != version
    ]
    if other:
        raise QabenchError(
            f"the machine {platform.node()} of the Ray cluster has {', '.join(other)}; install the same versions "
            "on all machines, because scores depend on them"
        )
