"""Fashion-MNIST from its four original files: in a folder, or downloaded and checked."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import torch
from sklearn.datasets import get_data_home

from experiments.data import Parts
from psilonnet.training import Rows

ADDRESS = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"  # of its authors
# SHA-256 of the files whose MD5 sums the authors publish; their address has no encryption.
CHECKSUMS = {
    "train-images-idx3-ubyte": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "train-labels-idx1-ubyte": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "t10k-images-idx3-ubyte": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "t10k-labels-idx1-ubyte": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
}
FOLDERS = (".", "fashion_mnist", "fashion-mnist")
BYTES = 8  # the idx code of unsigned bytes


def read_idx(path: Path) -> np.ndarray:
    """Read an array of bytes from an idx file, plain or compressed."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    zeros, kind, axes = struct.unpack(">HBB", content[:4].ljust(4, b"\xff"))
    if zeros != 0 or kind != BYTES:
        raise ValueError(
            f"An idx file of bytes must begin with 00 00 08. {path} begins with "
            f"{content[:3].hex(' ')!r}: get the file again."
        )
    shape = struct.unpack_from(f">{axes}I", content, 4)
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * axes)
    if values.size != np.prod(shape):
        raise ValueError(
            f"The idx file {path} must hold {shape} values by its own header. Got {values.size} "
            "instead: get the file again."
        )
    return values.reshape(shape)


def find_files(folder: Path) -> dict[str, Path]:
    """Return the four files in a folder, or in its folder of the data's name."""
    for inner in FOLDERS:
        found = {
            name: path
            for name in CHECKSUMS
            for path in (folder / inner / f"{name}.gz", folder / inner / name)
            if path.is_file()
        }
        if len(found) == len(CHECKSUMS):
            return found
    raise FileNotFoundError(
        f"The folder must hold the files {sorted(CHECKSUMS)}, plain or with '.gz', itself or in "
        f"'fashion_mnist'. Got {folder} instead: install the package dataset-fashion-mnist "
        "(Debian) and name its folder, or use '--data download'."
    )


def download(folder: Path, address: str = ADDRESS) -> None:
    """Fetch the files that are missing, each checked before it gets its name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, expected in CHECKSUMS.items():
        path = folder / f"{name}.gz"
        if path.exists():
            continue
        with urlopen(f"{address}/{path.name}", timeout=60) as response:
            content = response.read()
        digest = hashlib.sha256(content).hexdigest()
        if digest != expected:
            raise ValueError(
                f"The file {path.name} from {address} must have the SHA-256 sum {expected}. Got "
                f"{digest} instead: try again, or get the files elsewhere and name their folder."
            )
        aside = path.with_name(f"{path.name}.{os.getpid()}.partial")
        aside.write_bytes(content)
        aside.replace(path)


def image_parts(source: str | Path, *, seed: int = 0) -> Parts:
    """Return training, validation and test images, with pixels in [-1, 1].

    Half of the training images are drawn: a third of them (10,000) to train on, the others
    (20,000) to validate. The test images are the original ones.

    Parameters
    ----------
    source : str or path
        A folder, or "download" to fetch the files once into scikit-learn's data folder.
    seed : int
    """
    folder = Path(source)
    if source == "download":
        folder = Path(get_data_home()) / "fashion_mnist"
        download(folder)
    arrays = {name: read_idx(path) for name, path in find_files(folder).items()}
    train, test = (
        _rows(arrays[f"{part}-images-idx3-ubyte"], arrays[f"{part}-labels-idx1-ubyte"])
        for part in ("train", "t10k")
    )
    order = torch.from_numpy(np.random.default_rng(seed).permutation(train.count))
    drawn, rest = order[: train.count // 6], order[train.count // 6 : train.count // 2]
    fitted, valid = (Rows(train.x[part], train.y[part]) for part in (drawn, rest))
    return Parts(fitted, valid, test)


def _rows(images: np.ndarray, labels: np.ndarray) -> Rows:
    if len(images) != len(labels):
        raise ValueError(
            f"There must be one label for each image. Got {len(images)} images and "
            f"{len(labels)} labels: take all four files from one place."
        )
    x = torch.from_numpy(images.reshape(len(images), -1) / np.float32(127.5) - np.float32(1))
    return Rows(x, torch.from_numpy(labels.astype(np.float32)).unsqueeze(-1))
