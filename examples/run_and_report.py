# %% [markdown]
# # Run a model and write a report
#
# A scripted server takes the place of a model: it runs on this machine, speaks OpenAI's protocol,
# and knows one answer.

# %%
import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        reply = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": "Jupiter 1.326, Saturn 0.687 and Mars",
                    },
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24},
        }
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1"

# %% [markdown]
# The commands are the same as in a real run. Only the URL and the model's name change.

# %%
command = [
    "qabench",
    "run",
    "fanoutqa",
    "--config",
    "sample",
    "--model",
    "scripted",
    "--base-url",
    url,
    "--limit",
    "5",
]
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

# %%
command = ["qabench", "report", "logs", "--output", "report"]
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

# %% [markdown]
# In Python, a log is an `Evaluation` as well:

# %%
from pathlib import Path

from qabench.runs.log import read_run

run = read_run(next(Path("logs").glob("*.eval")))
run

# %%
[(record.id, record.answer, round(record.scores["acc.loose"], 2)) for record in run.records]

# %%
server.shutdown()
