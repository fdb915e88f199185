"""Jobs and buckets of the test Hub: a job's script runs on this machine, in a folder with the files of its bucket.

The real hf_xet uploads and downloads the files; its store is a local folder. Jobs start with this process's Python and
environment: uv and the dependencies in the script are not used.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hf_xet import XetFileInfo
from hub_server import DATE, TOKEN, Hub, Refusal, Request, Response, route
from huggingface_hub import HfApi
from huggingface_hub.utils._xet import get_xet_session

GPU = {"type": "gpu", "model": "A10G", "quantity": "1", "vram": "24 GB", "manufacturer": "Nvidia"}
COST = {"cpu": "4 vCPU", "ram": "15 GB", "unitCostMicroUSD": 16667, "unitCostUSD": 0.016667, "unitLabel": "minute"}
BUCKET = r"/(?P<bucket>[^/]+/[^/]+)"
FINAL = ("COMPLETED", "ERROR", "CANCELED")


@dataclass
class Job:
    """A job; ``spec`` is the body of the request that started it."""

    id: str
    owner: str
    spec: dict[str, Any]
    stage: str = "SCHEDULING"
    lines: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None
    thread: threading.Thread | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)
    followed: threading.Event = field(default_factory=threading.Event)

    def update(self, stage: str, line: str | None = None) -> None:
        with self.changed:
            self.stage = self.stage if self.stage in FINAL else stage
            self.lines += [] if line is None else [line]
            self.changed.notify_all()

    def run(self, hub: Hub) -> None:
        (volume,) = self.spec["volumes"]
        bucket, prefix = volume["source"], volume["path"]
        folder = hub.folder(bucket) / prefix
        script = folder / Path(next(word for word in self.spec["command"] if word.endswith(".py"))).name
        environment = {**os.environ, **self.spec["environment"], **self.spec["secrets"]}
        command = [sys.executable, "-P", str(script)]
        output: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with subprocess.Popen(command, env=environment, text=True, **output) as self.process:
            for line in self.process.stdout or ():
                self.update("RUNNING", line)
        written = [(path, str(path.relative_to(hub.folder(bucket)))) for path in folder.rglob("*") if path.is_file()]
        HfApi(hub.url, TOKEN).batch_bucket_files(bucket, add=written)
        self.update("ERROR" if self.process.returncode else "COMPLETED")

    def events(self) -> Iterator[bytes]:
        """Yield the lines as they come, until the job has ended."""
        sent = 0
        self.followed.set()
        while True:
            with self.changed:
                while len(self.lines) == sent and self.stage not in FINAL:
                    self.changed.wait()
                lines = self.lines[sent:]
            if not lines:
                return
            sent += len(lines)
            for line in lines:
                yield b"data: %s\n\n" % json.dumps({"data": line, "timestamp": DATE}).encode()

    def document(self) -> dict[str, Any]:
        owner = {"id": "1", "name": self.owner, "type": "user"}
        names = ("command", "environment", "flavor", "volumes")
        durations = {"runningSecs": 90}
        status = {"stage": self.stage, "message": None}
        base = {"id": self.id, "owner": owner, "createdAt": DATE, "status": status, "durations": durations}
        return base | {name: self.spec.get(name) for name in names}


@route("GET", "/api/jobs/hardware")
def hardware(hub: Hub, request: Request) -> Response:
    rows = {"cpu-basic": None, "a10g-small": GPU}
    return Response.of([{"name": name, "prettyName": name, "accelerator": gpu, **COST} for name, gpu in rows.items()])


@route("POST", "/api/jobs/(?P<owner>[^/]+)")
def start(hub: Hub, request: Request, owner: str) -> Response:
    hub.check_owner(owner, request.user)
    job = hub.jobs[f"{len(hub.jobs):024x}"] = Job(f"{len(hub.jobs):024x}", owner, request.json())
    job.thread = threading.Thread(target=job.run, args=(hub,), daemon=True)
    job.thread.start()
    return Response.of(job.document())


def _job(hub: Hub, id: str) -> Job:
    if id not in hub.jobs:
        raise Refusal(404, "Job not found")
    return hub.jobs[id]


@route("GET", "/api/jobs/(?P<owner>[^/]+)/(?P<id>[^/]+)")
def inspect(hub: Hub, request: Request, owner: str, id: str) -> Response:
    return Response.of(_job(hub, id).document())


@route("POST", "/api/jobs/(?P<owner>[^/]+)/(?P<id>[^/]+)/cancel")
def cancel(hub: Hub, request: Request, owner: str, id: str) -> Response:
    job = _job(hub, id)
    job.update("CANCELED")
    if job.process:
        job.process.kill()
    return Response.of(job.document())


@route("GET", "/api/jobs/(?P<owner>[^/]+)/(?P<id>[^/]+)/logs")
def logs(hub: Hub, request: Request, owner: str, id: str) -> Response:
    return Response(stream=_job(hub, id).events())


@route("POST", f"/api/buckets{BUCKET}")
def create_bucket(hub: Hub, request: Request, bucket: str) -> Response:
    hub.check_owner(bucket, request.user)
    hub.buckets.setdefault(bucket, {})
    return Response.of({"url": f"{hub.url}/buckets/{bucket}"})


@route("GET", f"/api/buckets{BUCKET}/xet-(?:read|write)-token")
def xet_token(hub: Hub, request: Request, bucket: str) -> Response:
    hub.check_owner(bucket, request.user)
    return Response.of({"accessToken": "x", "exp": int(time.time()) + 3600, "casUrl": f"local://{hub.store}"})


@route("POST", f"/api/buckets{BUCKET}/batch")
def batch(hub: Hub, request: Request, bucket: str) -> Response:
    """Reconstruct the files in the bucket's folder."""
    hub.check_owner(bucket, request.user)
    url = f"{hub.url}/api/buckets/{bucket}/xet-read-token"
    headers = {"authorization": f"Bearer {TOKEN}"}
    with get_xet_session().new_file_download_group(token_refresh_url=url, token_refresh_headers=headers) as group:
        for row in map(json.loads, request.body.splitlines()):
            hub.buckets[bucket][row["path"]] = row["xetHash"]
            group.start_download_file(XetFileInfo(row["xetHash"], None), str(hub.folder(bucket) / row["path"]))
    return Response.of({})


@route("GET", f"/api/buckets{BUCKET}/tree/(?P<prefix>.+)")
def bucket_tree(hub: Hub, request: Request, bucket: str, prefix: str) -> Response:
    hub.check_owner(bucket, request.user)
    hashes = {path: hash for path, hash in hub.buckets[bucket].items() if path.startswith(prefix)}
    sizes = {path: (hub.folder(bucket) / path).stat().st_size for path in hashes}
    return Response.of(
        [{"type": "file", "path": path, "size": sizes[path], "xetHash": hashes[path]} for path in hashes]
    )


@route("GET", f"/buckets{BUCKET}/resolve/(?P<path>.+)")
def resolve(hub: Hub, request: Request, bucket: str, path: str) -> Response:
    route = f"{hub.url}/api/buckets/{bucket}/xet-read-token"
    size = str((hub.folder(bucket) / path).stat().st_size)
    headers = {"X-Xet-Hash": hub.buckets[bucket][path], "X-Xet-Refresh-Route": route, "X-Linked-Size": size}
    return Response(200, b"", headers)
