"""A Hub on loopback with the API that huggingface_hub, datasets and evaluate use, over real HTTP.

Repositories of models, datasets and Spaces with commits, tags and pull requests; uploads as commits and by the LFS
protocol; downloads with redirects and ranges; card validation; collections; accounts. All of it lies in memory. Every
request is recorded, and rules make chosen ones fail.

Not here: Xet (``used_here`` turns it off), gated repositories, branches, webhooks, quotas, running a Space, the viewer.
"""

from __future__ import annotations

from hub_server import api
from hub_server.server import TOKEN, Fault, Hub

__all__ = ["TOKEN", "Fault", "Hub", "api"]
