import pytest
import torch
from torch.nn import functional

from psilonnet.training import LOSSES, get_loss
from psilonnet.training.losses import SLOPES


@pytest.fixture
def output(generator):
    return torch.randn(3, 7, 4, generator=generator, dtype=torch.float64) * 3


def test_losses_of_regression_equal_those_of_torch(output, generator):
    target = torch.randn(7, 4, generator=generator, dtype=torch.float64)
    pairs = {
        "squared_error": functional.mse_loss,
        "absolute_error": functional.l1_loss,
        "huber": functional.huber_loss,
    }
    for name, theirs in pairs.items():
        expected = theirs(output, target.expand_as(output), reduction="none").mean(dim=-1)
        torch.testing.assert_close(LOSSES[name](output, target), expected)


def test_binary_cross_entropy_equals_that_of_torch(output, generator):
    logit = output[..., :1] * 100  # also where exp would overflow
    target = torch.rand(7, 1, generator=generator, dtype=torch.float64).round()
    expected = functional.binary_cross_entropy_with_logits(
        logit, target.expand_as(logit), reduction="none"
    ).squeeze(-1)
    torch.testing.assert_close(LOSSES["binary_cross_entropy"](logit, target), expected)


def test_cross_entropy_equals_that_of_torch(output, generator):
    target = torch.randint(4, (7, 1), generator=generator)
    expected = torch.stack(
        [functional.cross_entropy(o, target.squeeze(-1), reduction="none") for o in output]
    )
    torch.testing.assert_close(LOSSES["cross_entropy"](output, target.double()), expected)


def test_get_loss_takes_names_and_callables():
    assert get_loss("huber") is LOSSES["huber"]
    assert get_loss(torch.sub) is torch.sub
    with pytest.raises(ValueError, match=r"one of \['absolute_error', .* Got 'hinge' instead"):
        get_loss("hinge")


@pytest.mark.parametrize("name", ["squared_error", "absolute_error", "huber"])
@pytest.mark.parametrize(("outputs", "targets"), [(1, 3), (3, 1)])
def test_losses_of_regression_need_an_output_for_each_target(name, outputs, targets):
    with pytest.raises(ValueError, match=rf"{targets} targets.*Got a network with {outputs}"):
        LOSSES[name](torch.zeros(2, 7, outputs), torch.zeros(7, targets))


def test_binary_cross_entropy_needs_one_output():
    with pytest.raises(ValueError, match=r"one output.*Got a network with 3"):
        LOSSES["binary_cross_entropy"](torch.zeros(2, 3, 3), torch.zeros(3, 1))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("error", [0.0, 1.0, -1.0, 0.3, 50.0, -50.0])
def test_slopes_are_those_of_autograd(name, error, generator):
    """Also at the kinks, where an error is exactly 0 or 1, and far out."""
    outputs = 1 if name == "binary_cross_entropy" else 3
    target = torch.randint(outputs, (7, outputs), generator=generator).double()
    if name == "cross_entropy":
        target = target[:, :1]
    output = (target + error).expand(2, 7, outputs).clone().requires_grad_()
    (expected,) = torch.autograd.grad(LOSSES[name](output, target).sum(), output)
    found = SLOPES[LOSSES[name]](output.detach(), target)
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=1e-14)
