"""A model behind HTTP: how many requests are answered, how fast, and in how much memory.

``examples/serve.py`` serves one model in both of its ways, from the folder of ``export_numpy`` and
from the file of ``export_onnx``, in one process of uvicorn on this machine. Clients that each wait
for their answer ask for one row at a time; every fiftieth request is malformed and must be refused
with the name of the column. Clients and server share the machine's cores.

    python -m benchmarks.serving [--quick] [--seconds 60]       # needs fastapi and uvicorn
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from benchmarks.figures import print_figures
from psilonnet import PSiLONClassifier

CLIENTS = (1, 4, 16, 64)
SECONDS, QUICK = 60.0, 2.0  # for each number of clients
STEPS = 30  # of the fit; how fast a model is does not depend on them
BAD_EVERY = 50
REPO = Path(__file__).resolve().parents[1]


@dataclass
class Load:
    """What clients have seen.

    Attributes
    ----------
    latencies : list of float
        Seconds of each answer.
    errors : list of str
        Answers that were not what they should be.
    """

    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def made_table(rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return eight columns of numbers and two of words, and labels."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(rows, 8)), columns=[f"x{k}" for k in range(8)])
    table["city"] = rng.choice(["Oslo", "Rome", "Lima"], rows)
    table["plan"] = rng.choice(["a", "b"], rows)
    score = table.x0 + table.x1 * (table.city == "Rome") + 0.3 * rng.normal(size=rows)
    return table, np.where(score > 0, "yes", "no")


def export_model(folder: Path) -> list[bytes]:
    """Write a model in both ways; return the bodies of requests, the first one malformed."""
    table, labels = made_table(1000)
    model = PSiLONClassifier(max_steps=STEPS, random_state=0, verbose=False).fit(table, labels)
    model.export_numpy(folder / "exported")
    model.export_onnx(folder / "model.onnx")
    rows = table[:BAD_EVERY].to_dict(orient="records")
    rows[0]["x3"] = "three"
    return [json.dumps([row]).encode() for row in rows]


class Server:
    """uvicorn with ``examples/serve.py`` in a process of its own."""

    def __init__(self, model: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = ["uvicorn", "serve:app", "--app-dir", str(REPO / "examples"), "--no-access-log"]
        words += ["--log-level", "warning", "--host", "127.0.0.1", "--port", str(self.port)]
        environment = {**os.environ, "PSILONNET_MODEL": str(model)}
        self.process = subprocess.Popen([sys.executable, "-m", *words], env=environment)

    def __enter__(self) -> "Server":
        start = perf_counter()
        while perf_counter() - start < 300:
            if self.process.poll() is not None:
                raise RuntimeError("The server ended: are fastapi and uvicorn installed?")
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                sleep(0.1)
            else:
                return self
        raise TimeoutError("The server did not start within 300 seconds.")

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait(60)

    def memory(self) -> float:
        """Return the resident memory in MB (Linux only)."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(dict(line.split(":") for line in lines)["VmRSS"].split()[0]) / 1024


async def ask(port: int, bodies: list[bytes], end: float, load: Load, first: int) -> None:
    """Send one request after the other over one connection until the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = first
    while perf_counter() < end:
        body = bodies[number % len(bodies)]
        is_bad, number = number % len(bodies) == 0, number + 1
        head = f"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        start = perf_counter()
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(answer.split(b"content-length:")[1].split(b"\r\n")[0])
        said = await reader.readexactly(size)
        load.latencies.append(perf_counter() - start)
        status = answer.split()[1]
        right = (b"422", b"Column 'x3'") if is_bad else (b"200", b'"prediction":["')
        if status != right[0] or right[1] not in said:
            load.errors.append(f"{status!r} {said[:200]!r}")
    writer.close()
    await writer.wait_closed()


async def run_clients(port: int, bodies: list[bytes], clients: int, seconds: float) -> Load:
    """Return what so many clients see in so many seconds."""
    load, end = Load(), perf_counter() + seconds
    await asyncio.gather(*(ask(port, bodies, end, load, 1 + 7 * k) for k in range(clients)))
    return load


def serving_figures(seconds: float) -> dict[str, float]:
    """Serve a model in both ways, and return the figures."""
    figures: dict[str, float] = {"seconds": seconds, "errors": 0, "requests": 0}
    with TemporaryDirectory() as temporary:
        bodies = export_model(Path(temporary))
        for way, name in (("numpy", "exported"), ("onnx", "model.onnx")):
            with Server(Path(temporary) / name) as server:
                asyncio.run(run_clients(server.port, bodies, max(CLIENTS), min(seconds, 5)))
                figures[f"{way}_mb_warm"] = server.memory()
                for clients in CLIENTS:
                    load = asyncio.run(run_clients(server.port, bodies, clients, seconds))
                    for words in load.errors[:3]:
                        print(words, file=sys.stderr)
                    middle, late = np.quantile(load.latencies, [0.5, 0.99])
                    figures["errors"] += len(load.errors)
                    figures["requests"] += len(load.latencies)
                    figures[f"{way}_{clients}_per_s"] = len(load.latencies) / seconds
                    figures[f"{way}_{clients}_median_ms"] = 1000 * float(middle)
                    figures[f"{way}_{clients}_p99_ms"] = 1000 * float(late)
                    figures[f"{way}_{clients}_mb"] = server.memory()
    return figures


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:.0f} seconds each")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    arguments = parser.parse_args()
    print_figures(serving_figures(QUICK if arguments.quick else arguments.seconds))


if __name__ == "__main__":
    main()
