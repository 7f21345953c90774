"""Checkpoints: one safetensors file, written beside the old one and renamed over it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from psilonnet._files import written
from psilonnet.training.adam import MOMENTS
from psilonnet.training.callbacks import Callback
from psilonnet.training.history import COLUMNS, Divergence

if TYPE_CHECKING:
    from psilonnet.training.batches import Rows
    from psilonnet.training.state import RunState


def _fingerprint(run: RunState) -> str:
    """Return a digest of everything that must be equal for a checkpoint to fit a run."""
    plan = run.plan
    facts = {
        "steps": plan.steps,
        "batch_size": plan.batch_size,
        "learning_rates": [plan.schedule(k / 16) for k in range(17)],
        "factors": plan.strength and [plan.strength(k / 16) for k in range(17)],
        "average": plan.average,
        "evaluate_every": plan.evaluate_every,
        "marks": plan.marks,
        "prune": None if plan.prune is None else asdict(plan.prune),
        "projected": plan.projected,
        "matmul_precision": plan.matmul_precision,
        "seed": plan.seed,
        "members": run.history.members,
        "strengths": run.all_strengths.tolist(),
        "loss": _described(run.loss),
        "penalty": _described(run.penalty),
        "rows": [_digest(part) for part in run.all_rows],
        "layers": [
            [type(layer).__name__, layer.normalization, *(p.shape[1:] for p in layer.parameters())]
            for layer in run.net.layers
        ],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _described(function: object) -> str:
    """Return the name of a function with what it is bound to, the same in every process."""
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(function))


def _same_start(a: Tensor, b: Tensor) -> bool:
    """Whether two runs began with equal weights, but for what other processors round otherwise."""
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, atol=1e-6, equal_nan=True)


def _digest(rows: Rows | None) -> str:
    if rows is None:
        return ""
    digest = hashlib.sha256()
    for tensor in (t for t in (rows.x, rows.y, rows.weight, rows.own) if t is not None):
        digest.update(str(tuple(tensor.shape)).encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def save_checkpoint(run: RunState, path: str | os.PathLike[str]) -> None:
    """Write the state of a run; a reader sees the old file or the new one, never a part."""
    tensors: dict[str, Tensor] = {f"net.{k}": v for k, v in run.net.state_dict().items()}
    for name, parameter in run.net.named_parameters():
        for moment in MOMENTS:
            tensors[f"adam.{moment}.{name}"] = run.optimizer.state[parameter][moment]
    history = run.history
    tensors |= {f"history.{name}": history.column(name) for name in COLUMNS}
    tensors["running_loss"] = torch.tensor(run.running_loss, dtype=torch.float64)
    tensors["first_loss"] = torch.tensor(run.first_loss, dtype=torch.float64)
    tensors["owed"], tensors["start"] = run.owed, run.start
    average = run.weight_average
    if average is not None:
        tensors |= {f"average.{k}": value for k, value in enumerate(average.values)}
    facts = {
        "fingerprint": _fingerprint(run),
        "step": run.step,
        "members": run.members,
        "averaged": average.taken if average else 0,
        "history": {
            "step": history.step,
            "learning_rate": history.learning_rate,
            "prune_mix": history.prune_mix,
            "row_norms": history.row_norms,
            "diverged": [asdict(lost) for lost in history.diverged],
        },
    }
    plain = {
        name: tensor.detach().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    with written(Path(path)) as aside:
        save_file(plain, aside, {"psilonnet": json.dumps(facts)})


def load_checkpoint(run: RunState, path: str | os.PathLike[str]) -> None:
    """Bring a freshly made run to the state of a checkpoint."""
    with safe_open(path, framework="pt", device=str(run.device)) as file:
        metadata = file.metadata() or {}
        if "psilonnet" not in metadata:
            raise ValueError(
                f"The file {os.fspath(path)!r} is no checkpoint of psilonnet. Choose another path."
            )
        facts = json.loads(metadata["psilonnet"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if facts["fingerprint"] != _fingerprint(run) or not _same_start(tensors["start"], run.start):
        raise ValueError(
            f"The checkpoint {os.fspath(path)!r} belongs to a run with other settings or data. "
            "Delete it to start anew, or resume with the settings it was made with."
        )
    if facts["members"] != run.members:
        run.drop(keep=torch.tensor([run.members.index(m) for m in facts["members"]]))
    run.end_steps()
    state = {k.removeprefix("net."): v for k, v in tensors.items() if k.startswith("net.")}
    run.net.load_state_dict(state)
    run.step = facts["step"]
    for name, parameter in run.net.named_parameters():
        for moment in MOMENTS:
            run.optimizer.state[parameter][moment].copy_(tensors[f"adam.{moment}.{name}"])
    run.optimizer.steps = run.step
    if run.weight_average is not None:
        saved = [name for name in tensors if name.startswith("average.")]
        run.weight_average.values = [tensors[f"average.{k}"] for k in range(len(saved))]
        run.weight_average.taken = facts["averaged"]
    run.running_loss = tensors["running_loss"].tolist()
    run.first_loss = tensors["first_loss"].tolist()
    run.owed = tensors["owed"]
    recorded = facts["history"]
    history = run.history
    history.step, history.learning_rate = recorded["step"], recorded["learning_rate"]
    history.prune_mix, history.row_norms = recorded["prune_mix"], recorded["row_norms"]
    history.diverged = [Divergence(**lost) for lost in recorded["diverged"]]
    history.lines = {name: tensors[f"history.{name}"].tolist() for name in COLUMNS}


class Checkpoints(Callback):
    """Write a checkpoint every so many steps, and resume from it if there is one.

    Parameters
    ----------
    path : str or path
        The file. Its folder must exist.
    every : int
        Steps between two checkpoints.
    """

    def __init__(self, path: str | os.PathLike[str], *, every: int = 250) -> None:
        self.path = Path(path)
        self.every = every

    def on_start(self, run: RunState) -> None:
        """Resume if there is a checkpoint."""
        if not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"The folder {os.fspath(self.path.parent)!r} must exist before a checkpoint is "
                "written into it. Make it first."
            )
        if self.path.exists():
            load_checkpoint(run, self.path)

    def on_step(self, run: RunState) -> None:
        """Write if it is time."""
        if run.step % self.every == 0 or run.step == run.plan.steps:
            save_checkpoint(run, self.path)

    def on_interrupt(self, run: RunState) -> None:
        """Write what there is."""
        save_checkpoint(run, self.path)
