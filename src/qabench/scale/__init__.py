"""Normalizing, scoring and labeling rows of any number, in one process or on a Ray cluster.

Within ``with Cluster():``, these functions, ``qabench.evaluate_predictions`` and the metrics work
on the cluster. Without it, nothing imports Ray.
"""

from qabench.scale.cluster import Cluster

__all__ = ["Cluster"]
