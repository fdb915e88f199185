"""A Hub on loopback with the API that huggingface_hub, datasets and evaluate use, over real HTTP.

Repositories of models, datasets and Spaces with commits, branches, tags and pull requests; uploads as commits, by the
LFS protocol and by Xet; downloads with redirects and ranges; card validation; collections; accounts. All of it lies in
memory. Every request is recorded, and rules make chosen ones fail.

Not here: gated repositories, webhooks, quotas, running a Space, the dataset viewer, downloads by Xet (files are served
without their Xet hash, so clients take them by HTTP).
"""

from __future__ import annotations

from hub_server.faults import Fault
from hub_server.hub import TOKEN, Hub

__all__ = ["TOKEN", "Fault", "Hub"]
