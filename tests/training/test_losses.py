import numpy as np
import pytest
import torch
from sklearn.metrics import mean_pinball_loss, mean_poisson_deviance
from torch.nn import functional

from psilonnet.training import LOSSES, Pinball, get_loss, loss_words
from psilonnet.training.losses import SLOPES, slope_of


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


def test_poisson_deviance_is_half_that_of_scikit_learn(output, generator):
    target = torch.poisson(torch.full((7, 4), 1.5, dtype=torch.float64), generator=generator)
    assert (target == 0).any()
    found = LOSSES["poisson"](output, target)
    for k, own in np.ndenumerate(found[:, :3].numpy()):
        line = [target[k[1]].numpy(), output[k].exp().numpy()]
        assert own == pytest.approx(mean_poisson_deviance(*line) / 2)
    exact = LOSSES["poisson"](target.clamp(min=1e-300).log(), target)
    torch.testing.assert_close(exact, torch.zeros(7, dtype=torch.float64), rtol=0, atol=1e-14)


@pytest.mark.parametrize("levels", [(0.5,), (0.85,), (0.05, 0.3, 0.6, 0.99)])
def test_pinball_loss_is_that_of_scikit_learn(levels, output, generator):
    target = torch.randn(7, 4, generator=generator, dtype=torch.float64)
    found = Pinball(levels)(output, target)
    for member in range(3):
        columns = zip(
            target.T.numpy(), output[member].T.numpy(), levels * (4 // len(levels)), strict=True
        )
        own = [mean_pinball_loss(t, o, alpha=level) for t, o, level in columns]
        assert float(found[member].mean()) == pytest.approx(np.mean(own))


@pytest.mark.parametrize("error", [0.0, 0.3, -50.0])
def test_slopes_of_the_pinball_loss_are_those_of_autograd(error, generator):
    target = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    output = (target + error).expand(2, 7, 3).clone().requires_grad_()
    for loss in (Pinball((0.3,)), Pinball((0.1, 0.5, 0.8))):
        (expected,) = torch.autograd.grad(loss(output, target).sum(), output)
        found = slope_of(loss)(output.detach(), target)
        torch.testing.assert_close(found, expected, rtol=1e-14, atol=1e-14)


def test_pinball_loss_needs_an_output_for_each_quantile():
    with pytest.raises(ValueError, match=r"network of 2 quantiles needs as many outputs.*with 3"):
        Pinball((0.1, 0.9))(torch.zeros(7, 3), torch.zeros(7, 3))


def test_losses_of_ones_own_have_a_name_and_no_written_slope():
    class Unhashable:
        __hash__ = None

        def __call__(self, output, target):
            return (output - target).mean(dim=-1)

    assert slope_of(Unhashable()) is None
    assert slope_of(torch.sub) is None
    assert loss_words("huber") == "huber"
    assert loss_words(Unhashable()).endswith("Unhashable")
    assert loss_words(LOSSES["huber"]) == "psilonnet.training.losses.huber"


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


@pytest.mark.parametrize("name", ["squared_error", "absolute_error", "huber", "poisson"])
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
