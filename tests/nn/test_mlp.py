import pytest
import torch

from nn.random_nets import make_edges, scramble_
from psilonnet.nn import (
    PSiLONNet,
)


@pytest.mark.parametrize("pieces", [2, 8])
def test_net_with_equal_pieces_is_the_plain_net(pieces, generator):
    plain = scramble_(PSiLONNet(6, 3, width=16, depth=3).double(), generator)
    split = PSiLONNet(6, 3, width=16, depth=3, edges=make_edges(pieces, 6, generator)).double()
    state = plain.state_dict()
    state["0.direction"] = state["0.direction"].expand(-1, pieces, -1).clone()
    split.load_state_dict({**state, "0.edges": split.layers[0].edges})
    x = torch.randn(40, 6, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(split(x), plain(x))
