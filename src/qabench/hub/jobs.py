"""Runs on the Hub's GPUs: ``qabench run`` submitted as a job, its output, and the log that it leaves in a bucket."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from huggingface_hub import HfApi, JobInfo, JobStage, get_token
from huggingface_hub.constants import HF_JOBS_ARTIFACTS_MOUNT_PATH as MOUNT
from huggingface_hub.errors import HfHubHTTPError

from qabench.errors import InputError, QabenchError, unknown_name
from qabench.evaluation.signature import version
from qabench.hub.client import bounded_answers, hub_errors
from qabench.hub.requirements import own_wheel
from qabench.runs.trust import resume_command

ARGUMENTS = "QABENCH_JOB_ARGUMENTS"
PROVIDER = "QABENCH_JOB_PROVIDER"  # set by tests
LOGS = "logs"  # the folder in the job's part of the bucket
LAST_LINES = 15  # of the output of a failed job
SPACY_MODEL = "https://github.com/explosion/spacy-models/releases/download/en_core_web_sm-3.8.0/en_core_web_sm-3.8.0-py3-none-any.whl"
# One call of run_uv_job uploads the script and the files, and mounts their folder at MOUNT, where
# the script writes.
SCRIPT = f'''\
# /// script
# requires-python = ">=3.11"
# dependencies = {{dependencies}}
# ///
"""Runs qabench in a job of the Hub. The folder of this file is in a bucket; the log is written there."""

import logging
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from qabench.cli import main

server = logging.getLogger("inspect_ai._util.local_server")  # gets what vLLM prints on standard error
server.setLevel(logging.INFO)
server.addHandler(logging.StreamHandler())
os.chdir(Path(__file__).parent)
os.environ.setdefault("VLLM_DEFAULT_SERVER_ARGS", '{{{{"timeout": 7200}}}}')  # seconds to download weights and start
arguments = shlex.split(os.environ["{ARGUMENTS}"])
if "--model" in arguments:
    provider = os.environ.get("{PROVIDER}", "vllm")
    arguments[arguments.index("--model") + 1] = f"{{{{provider}}}}/{{{{arguments[arguments.index('--model') + 1]}}}}"
if "--resume" in arguments:  # outside the bucket, which has no file locks
    log = arguments.index("--resume") + 1
    arguments[log] = shutil.copy(arguments[log], tempfile.mkdtemp())
sys.argv = ["qabench", "run", *arguments, "--log-dir", "{LOGS}"]
print(shlex.join(sys.argv), flush=True)
main()
'''
_SECRET = re.compile(r"key|secret|password|token$", re.IGNORECASE)
_HOURS = {"second": 3600, "minute": 60, "hour": 1}  # units of a price per hour


def check_model_arguments(arguments: Mapping[str, object]) -> None:
    """Raise InputError for an argument of the provider that may be a secret: everyone with access to a job reads it."""
    if secrets := [name for name in arguments if _SECRET.search(name)]:
        raise InputError(
            f"-M {secrets[0]} would be shown on the job's page; a job gets no secret but your token"
        )


def submit(
    options: Sequence[str], files: Sequence[Path], model: str, flavor: str, timeout: str
) -> JobInfo:
    """Start a job that executes ``qabench run`` with vLLM.

    Args:
        options: the arguments of the command, with the names of the files without spaces, as the
            job has them.
        files: the files that the options name.
        model: the repository of the model, which is checked.
        flavor: the name of the machine.
        timeout: the longest time that the job may take, such as "6h".
    """
    api = HfApi()
    hourly_price(flavor)
    with (
        bounded_answers(),
        hub_errors(api),
        redirect_stdout(sys.stderr),
        tempfile.TemporaryDirectory() as folder,
    ):
        warnings.filterwarnings("ignore", "'HfApi.run_uv_job' is experimental")
        api.model_info(model)
        wheel = own_wheel(Path(folder))
        requirement = (
            f"qabench[run,spacy] @ file://{MOUNT}/{wheel.name}"
            if wheel
            else f"qabench[run,spacy]=={version()}"
        )
        dependencies = [requirement, f"en_core_web_sm @ {SPACY_MODEL}", "vllm"]
        script = Path(folder) / "qabench_job.py"
        script.write_text(SCRIPT.format(dependencies=json.dumps(dependencies)), encoding="utf-8")
        job: JobInfo = api.run_uv_job(
            str(script),
            script_args=[str(path) for path in (*files, *filter(None, [wheel]))],
            python="3.12",
            env={ARGUMENTS: shlex.join(options)},
            secrets={"HF_TOKEN": get_token()},
            flavor=flavor,
            timeout=timeout,
            name="qabench",
        )
        return job


def hourly_price(flavor: str) -> float:
    """Return the price of a machine with a GPU in US dollars per hour.

    Raises InputError with the allowed names.
    """
    api = HfApi()
    with bounded_answers(), hub_errors(api):
        machines = {
            machine.name: machine for machine in api.list_jobs_hardware() if machine.accelerator
        }
    if flavor not in machines:
        raise unknown_name("--on: the Hub has no machine with a GPU", flavor, machines)
    return machines[flavor].unit_cost_usd * _HOURS[machines[flavor].unit_label]


def model_in_job(model: str) -> str:
    """Return Inspect's name of a model in a job."""
    return f"{os.environ.get(PROVIDER, 'vllm')}/{model}"


def job_of(text: str) -> JobInfo:
    """Return the job with this URL, OWNER/ID or ID.

    Raises InputError if it is not one of ``submit``.
    """
    api = HfApi()
    *owners, id = text.rstrip("/").split("/")
    with bounded_answers(), hub_errors(api):
        job = api.inspect_job(job_id=id, namespace=owners[-1] if owners else None)
    if ARGUMENTS not in (job.environment or {}):
        raise InputError(f"{job.url} is not a job of `qabench run --on`")
    return job


def finished(job: JobInfo, log_dir: Path, on_line: Callable[[str], None]) -> tuple[JobInfo, Path]:
    """Follow a job to its end, download its log into ``log_dir``, and return both.

    Args:
        job: the job.
        log_dir: the folder for the log.
        on_line: called with each line that the job prints.

    Raises:
        QabenchError: the job failed or was canceled. The message has the end of its output, and how
            to resume.
    """
    api = HfApi()
    lines: deque[str] = deque(maxlen=LAST_LINES)
    with bounded_answers(), hub_errors(api):
        for line in api.fetch_job_logs(job_id=job.id, namespace=job.owner.name, follow=True):
            on_line(line.rstrip())
            lines.append(line.rstrip())
        job = api.wait_for_job(job.id, namespace=job.owner.name)
        log = _download(api, job, log_dir)
    if job.status.stage == JobStage.COMPLETED and log:
        return job, log
    why = f" ({job.status.message})" if job.status.message else ""
    resume = (
        f"resume with: {resume_command(log, str(job.flavor))}" if log else "no question was asked"
    )
    raise QabenchError(
        "\n".join(
            [
                f"the job {job.url} ended as {job.status.stage}{why}; {resume}. The end of its output:",
                *lines,
            ]
        )
    )


def _download(api: HfApi, job: JobInfo, log_dir: Path) -> Path | None:
    """Download the last log that a job wrote, or None if there is none.

    Raises QabenchError if its name is taken.
    """
    volume = next((volume for volume in job.volumes or () if volume.mount_path == MOUNT), None)
    if volume is None:
        return None
    try:
        tree = list(
            api.list_bucket_tree(volume.source, prefix=f"{volume.path}/{LOGS}", recursive=True)
        )
    except HfHubHTTPError as error:
        if error.response.status_code != 404:
            raise
        return None
    logs = {
        file.path.rpartition("/")[2]: file
        for file in tree
        if file.type == "file" and file.path.endswith(".eval")
    }
    if not logs:
        return None
    name = max(logs)  # begins with the time
    path = log_dir / name
    log_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=log_dir) as folder:
        copy = Path(folder) / "log.eval"
        api.download_bucket_files(volume.source, [(logs[name], copy)])
        if path.exists() and not filecmp.cmp(path, copy, shallow=False):
            raise QabenchError(
                f"{path} exists and is not the log of the job {job.url}, which was not written: follow the job again "
                "with --attach and another --log-dir"
            )
        copy.replace(path)
    return path
