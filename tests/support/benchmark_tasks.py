"""The tasks of Inspect AI of the package's benchmarks."""

from qabench.adapters.inspect_ai.tasks import inspect_tasks
from qabench.benchmarks import benchmark

felm = inspect_tasks(benchmark("felm"))["felm"]
expertqa = inspect_tasks(benchmark("expertqa"))["expertqa"]
fastbook_rag = inspect_tasks(benchmark("fastbook"))["fastbook_rag"]
fanoutqa_closed_book = inspect_tasks(benchmark("fanoutqa"))["fanoutqa_closed_book"]
fanoutqa_open_book = inspect_tasks(benchmark("fanoutqa"))["fanoutqa_open_book"]
fanoutqa_evidence_provided = inspect_tasks(benchmark("fanoutqa"))["fanoutqa_evidence_provided"]
