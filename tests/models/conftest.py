"""Small networks run fastest in one thread."""

from collections.abc import Iterator

import pytest


# before the fixtures of modules, which train networks
@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    try:
        import torch
    except ImportError:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
