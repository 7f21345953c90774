"""Only the plain chain of its layers is bounded, certified and folded; the rest is refused."""

import pytest
import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
)
from torch.nn.utils import parametrizations, parametrize, prune

from psilonnet.deploy import CompactNet
from psilonnet.nn import (
    CReLUBlock,
    CReLULinear,
    Network,
    NormalizedLinear,
    PlainNet,
    PSiLONNet,
    ReLULinear,
    fold,
    path_norm_penalty,
    plain_net,
)


class LoudSequential(nn.Sequential):
    def forward(self, x):
        return 100 * super().forward(x)


class LoudNetwork(PSiLONNet):
    def forward(self, x):
        return 100 * super().forward(x)


class LoudCall(PSiLONNet):
    def __call__(self, x):
        return 100 * super().__call__(x)


class FewerLayers(PSiLONNet):
    def weights(self):
        return [0 * weight for weight in super().weights()]


class LoudLinear(nn.Linear):
    def forward(self, x):
        return 100 * super().forward(x)


class Leaky(nn.ReLU):
    def forward(self, x):
        return torch.where(x > 0, x, -5 * x)


class LoudLayer(CReLULinear):
    def forward(self, x):
        return 100 * super().forward(x)


class OtherWeight(ReLULinear):
    @property
    def weight(self):
        return 0 * super().weight


class OtherRows(NormalizedLinear):
    def _make_weight(self):
        return 100 * super()._make_weight()


class HalfBlock(CReLULinear):
    residual = True


class Quiet(PSiLONNet):
    """A subclass that adds nothing to what is computed."""

    def __init__(self):
        super().__init__(2, 1, width=3, depth=1)
        self.note = "mine"

    def extra_repr(self):
        return self.note


def torch_net(*, first=nn.Linear, second=nn.ReLU):
    return nn.Sequential(first(2, 3), second(), nn.Linear(3, 1))


def our_net(last=ReLULinear):
    return Network(NormalizedLinear(2, 3), last(3, 1))


def with_own_forward(net, place=None):
    module = net if place is None else net[place]
    forward = module.forward
    module.forward = lambda x: 100 * forward(x)
    return net


def hooked(net, place, register):
    getattr(net if place is None else net[place], register)(lambda *_: None)
    return net


def with_other_residual(net):
    net[1].residual = True
    return net


OWN = {
    "sequential": lambda: LoudSequential(nn.Linear(2, 1)),
    "network": lambda: LoudNetwork(2, 1, width=3, depth=1),
    "call": lambda: LoudCall(2, 1, width=3, depth=1),
    "weights": lambda: FewerLayers(2, 1, width=3, depth=1),
    "linear": lambda: torch_net(first=LoudLinear),
    "relu": lambda: torch_net(second=Leaky),
    "layer": lambda: our_net(LoudLayer),
    "weight": lambda: our_net(OtherWeight),
    "rows": lambda: Network(OtherRows(2, 3), ReLULinear(3, 1)),
    "half a block": lambda: Network(NormalizedLinear(2, 3), HalfBlock(3, 3)),
    "instance": lambda: with_own_forward(torch_net()),
    "instance of ours": lambda: with_own_forward(our_net()),
    "layer of an instance": lambda: with_own_forward(torch_net(), 1),
    "layer of ours": lambda: with_own_forward(our_net(), 1),
    "residual": lambda: with_other_residual(Network(NormalizedLinear(2, 3), CReLULinear(3, 3))),
}
HOOKS = [
    (make, place, register)
    for make in (torch_net, our_net)
    for place in (None, 0, 1)
    for register in ("register_forward_hook", "register_forward_pre_hook")
]


def users_of(net):
    """Return all that speaks of the function of a net."""
    functions = [path_norm_penalty, lambda net: path_norm_penalty(net, bound="original"), PlainNet]
    return [*functions, fold, plain_net, CompactNet] if isinstance(net, Network) else functions


def assert_refused(net, message):
    for function in users_of(net):
        with pytest.raises(TypeError, match=message):
            function(net)


@pytest.mark.parametrize("name", OWN)
def test_what_computes_something_else_is_refused(name):
    assert_refused(OWN[name](), r"plain chain .* Got .* with its own '\w+' instead: ")


def test_refusal_names_module_and_place():
    message = "Got LoudLinear (layer 0) with its own 'forward' instead: "
    with pytest.raises(TypeError) as caught:
        path_norm_penalty(torch_net(first=LoudLinear))
    assert message in str(caught.value)


@pytest.mark.parametrize(("make", "place", "register"), HOOKS)
def test_forward_hooks_are_refused(make, place, register):
    assert_refused(hooked(make(), place, register), r"Got .* with a forward hook instead: remove")


@pytest.mark.parametrize(
    "register", [register_module_forward_hook, register_module_forward_pre_hook]
)
def test_hooks_on_all_modules_are_refused(register):
    handle = register(lambda *_: None)
    try:
        assert_refused(our_net(), "Got all modules with a forward hook instead: remove")
        assert_refused(torch_net(), "Got all modules with a forward hook instead: remove")
    finally:
        handle.remove()
    assert path_norm_penalty(our_net()) == 1


@pytest.mark.parametrize("make", [torch_net, our_net])
def test_backward_hooks_change_no_function(make):
    handle = register_module_full_backward_hook(lambda *_: None)
    try:
        for place in (None, 0, 1):
            net = hooked(make(), place, "register_full_backward_hook")
            assert path_norm_penalty(net) > 0
            assert PlainNet(net).layers
    finally:
        handle.remove()


def test_removed_hooks_leave_nothing_behind():
    net = our_net()
    net[0].register_forward_hook(lambda *_: None).remove()
    assert path_norm_penalty(net) == 1


@pytest.mark.parametrize("made", [plain_net, CompactNet])
def test_what_was_made_before_a_hook_is_not_handed_out_after_it(made):
    net = our_net()
    made(net)
    net.register_forward_hook(lambda *_: None)
    with pytest.raises(TypeError, match="with a forward hook"):
        made(net)


def test_subclass_that_computes_the_same_is_taken():
    net = Quiet()
    assert path_norm_penalty(net) == 1
    assert isinstance(plain_net(net), PlainNet)
    same = type("Same", (nn.Linear,), {})
    assert path_norm_penalty(torch_net(first=same)) > 0


def test_compiled_module_is_the_same_function():
    net = our_net()
    net.compile(backend="eager")
    assert path_norm_penalty(net) == 1


def test_parametrized_weights_are_those_in_use(generator):
    """Parametrizations change what ``weight`` is, for the forward pass and for us alike."""
    net = torch_net().eval()
    parametrizations.weight_norm(net[0])
    parametrizations.orthogonal(net[2])
    x = torch.randn(5, 2, generator=generator)
    torch.testing.assert_close(PlainNet(net)(x)[0].float(), net(x))
    expected = (net[2].weight.abs() @ net[0].weight.abs()).sum()
    torch.testing.assert_close(path_norm_penalty(net), expected)


class Shaken(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


def test_parametrized_weights_that_change_when_they_are_read_are_refused():
    net = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 1))
    parametrizations.spectral_norm(net[0])
    with pytest.raises(TypeError, match=r"The 'weight' of layer 0 .* call net\.eval\(\) first"):
        PlainNet(net)
    PlainNet(net.eval())
    parametrize.register_parametrization(net[2], "bias", Shaken())
    with pytest.raises(TypeError, match="The 'bias' of layer 2 is parametrized and changes"):
        PlainNet(net)


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x


def test_parametrized_layers_of_ours_are_made_again(generator):
    net = our_net()
    x = torch.randn(5, 2, generator=generator)
    plain_net(net)
    parametrize.register_parametrization(net[1], "length", Doubled())
    torch.testing.assert_close(plain_net(net)(x)[0].float(), net(x))
    assert path_norm_penalty(net) == 2


def test_pruning_of_torch_is_refused_until_it_is_made_permanent():
    """It computes the weight in a hook, before each forward pass and not when it is asked for."""
    net = torch_net()
    prune.l1_unstructured(net[0], "weight", amount=2)
    with pytest.raises(TypeError, match="with a forward hook"):
        path_norm_penalty(net)
    prune.remove(net[0], "weight")
    assert path_norm_penalty(net) > 0


def test_what_is_not_a_layer_of_ours_is_refused_in_a_network():
    for wrong in (nn.Linear(3, 1), nn.ReLU()):
        net = Network(NormalizedLinear(2, 3), wrong)
        assert_refused(net, r"layers of psilonnet\. Got .* layer 1")


def test_pieces_made_outside_of_the_network_are_refused():
    """Inputs that are not the pieces of something can move all at once."""
    net = Network(NormalizedLinear(2, 3, pieces=2), CReLULinear(3, 1))
    assert_refused(net, "takes 2 pieces .* CReLULinear or KnotLinear")


def test_what_is_no_chain_is_refused():
    class Forked(nn.Module):
        def forward(self, x):
            return x

    for net in (Forked(), nn.ModuleList([nn.Linear(2, 1)]), nn.GELU()):
        with pytest.raises(TypeError, match="Got"):
            path_norm_penalty(net)
        with pytest.raises(TypeError, match="Got"):
            PlainNet(net)


def test_layers_documented_today_are_still_taken():
    net = nn.Sequential(
        nn.Flatten(), nn.Linear(2, 3), nn.Dropout(), nn.Tanh(), nn.Identity(), nn.Linear(3, 1)
    )
    assert path_norm_penalty(net) > 0
    assert path_norm_penalty(nn.Linear(2, 1)) > 0
    assert path_norm_penalty(Network(CReLUBlock(2))) == 2
