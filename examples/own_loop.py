"""The layers and the path norm in a training loop of your own, on a real table.

python examples/own_loop.py DIR   # DIR holds tabular/house_sales.parquet, its target last
"""

import sys
from pathlib import Path

import pandas as pd
import torch

from psilonnet import CReLUBlock, CReLULinear, NormalizedLinear, path_norm_penalty
from psilonnet.nn import Network

table = pd.read_parquet(Path(sys.argv[1]) / "tabular" / "house_sales.parquet").astype(float)
table = (table - table.mean()) / table.std()
rows = torch.tensor(table.to_numpy(), dtype=torch.float32)
X, y = rows[:, :-1], rows[:, -1:]

generator = torch.Generator().manual_seed(0)
net = Network(
    NormalizedLinear(X.shape[1], 128, generator=generator),
    CReLUBlock(128, generator=generator),
    CReLUBlock(128, generator=generator),
    CReLULinear(128, 1, length="per_row", generator=generator),
)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for _ in range(500):
    batch = torch.randint(2000, (400,), generator=generator)
    loss = torch.nn.functional.mse_loss(net(X[batch]), y[batch])
    (loss + 1e-3 * path_norm_penalty(net)).backward()
    optimizer.step()
    optimizer.zero_grad()

with torch.no_grad():
    error = torch.nn.functional.mse_loss(net(X[2000:]), y[2000:])
    print(f"explained variance {1 - error:.3f}, Lipschitz bound {path_norm_penalty(net):.2f}")
