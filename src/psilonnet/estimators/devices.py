"""Where networks are trained: which devices are there, and why another one cannot be used."""

from __future__ import annotations

from typing import Any

import torch

KINDS = ("cuda", "xpu", "mps")  # besides the CPU
BUILDS = {"cuda": torch.backends.cuda.is_built, "mps": torch.backends.mps.is_built}


def is_device(value: Any) -> bool:
    """Whether a device is there, and has memory."""
    return isinstance(value, str) and _reason(value) == ""


def why_no_device(value: Any) -> str:
    """Return the cause why a device cannot be used, and the remedy."""
    reason = _reason(value) if isinstance(value, str) else "give its name, a word"
    there = ["cpu", *(f"{kind}:{k}" for kind in KINDS for k in range(_count(kind)))]
    return f"{reason}. There is {', '.join(map(repr, there))} on this machine: use device='cpu'"


def _count(kind: str) -> int:
    return int(getattr(torch, kind).device_count())


def _reason(name: str) -> str:
    """Return why a device cannot be used; nothing if it can."""
    try:
        device = torch.empty(0, device=name).device
        return "it has shapes only and no memory" if device.type == "meta" else ""
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as error:
        kind = name.partition(":")[0]
        if kind not in KINDS:
            return "PyTorch knows no such device here"
        if kind in BUILDS and not BUILDS[kind]():
            return f"this build of PyTorch ({torch.__version__}) has no support for {kind}"
        if _count(kind) == 0:
            return f"PyTorch finds no {kind} device on this machine"
        return f"PyTorch cannot use it ({str(error).splitlines()[0]})"
