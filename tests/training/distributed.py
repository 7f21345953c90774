"""Gradients of a P-ResNet on half the rows in each of two processes; used by test_distributed.py.

python distributed.py OUT MEETING RANK, for each rank; they find each other by the file MEETING.
"""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from psilonnet.nn import PSiLONResNet, path_norm_penalty


class Objective(nn.Module):
    """Loss and penalty in one forward pass, so that DDP sees every parameter used."""

    def __init__(self, net: PSiLONResNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.mse_loss(self.net(x), y) + 1e-2 * path_norm_penalty(self.net)


def make_problem() -> tuple[PSiLONResNet, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    net = PSiLONResNet(5, 2, width=16, depth=4, generator=generator).double()
    for layer in net.layers:
        layer.length.data.fill_(0.3)
    x = torch.randn(40, 5, generator=generator, dtype=torch.float64)
    return net, x, x[:, :2].square()


def counted_average(sent: list[int], bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Average gradients as DDP does, and count the numbers that are sent."""
    sent.append(bucket.buffer().numel())
    tensor = bucket.buffer().div_(dist.get_world_size())
    work = dist.all_reduce(tensor, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def main() -> None:
    out, meeting, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    net, x, y = make_problem()
    sent: list[int] = []
    parallel = DistributedDataParallel(Objective(net))
    parallel.register_comm_hook(sent, counted_average)
    half = slice(20 * rank, 20 * (rank + 1))
    parallel(x[half], y[half]).backward()
    if rank == 0:
        gradients = [p.grad for p in net.parameters()]
        torch.save({"gradients": gradients, "numbers": sum(sent)}, out)
    dist.barrier()  # nobody leaves while another is still receiving
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
