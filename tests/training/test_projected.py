import torch

from psilonnet.functional import project_ball, row_norm
from psilonnet.nn import make_net
from psilonnet.training import project_directions_, repeat_member


def test_rows_of_all_members_go_into_the_ball_and_those_inside_stay(generator):
    net = repeat_member(make_net("Pj-ResNet", 5, 3, width=7, depth=3, generator=generator), 4)
    with torch.no_grad():
        for layer in net.layers:
            layer.direction.mul_(
                0.5 + torch.rand(layer.direction.shape[:-2], generator=generator)[..., None, None]
            )
    before = [layer.direction.detach().clone() for layer in net.layers]
    project_directions_(net)
    for old, layer in zip(before, net.layers, strict=True):
        inside = row_norm(old) <= 1
        assert 0 < inside.sum() < inside.numel()
        assert torch.equal(layer.direction[inside], old[inside])
        assert torch.allclose(layer.direction, project_ball(old))
        assert (row_norm(layer.direction) <= 1 + 1e-6).all()
