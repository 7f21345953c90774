"""The training loop: one population, one tensor program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from psilonnet.nn import shared_weights
from psilonnet.training.adam import Adam
from psilonnet.training.arithmetic import flushed_denormals
from psilonnet.training.batches import Batches
from psilonnet.training.callbacks import ProgressBar
from psilonnet.training.gradients import make_gradients, mean_losses
from psilonnet.training.history import DivergedError, Divergence, History
from psilonnet.training.interrupt import held_interrupt
from psilonnet.training.losses import get_loss
from psilonnet.training.memory import kept_memory
from psilonnet.training.plan import Plan
from psilonnet.training.population import check_memory, members_of, take_members
from psilonnet.training.projected import project_directions_
from psilonnet.training.pruning import drop_neurons_, rescale_rows_, row_norms
from psilonnet.training.state import RunState
from psilonnet.training.weight_average import WeightAverage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psilonnet.nn import Network
    from psilonnet.training.batches import Rows
    from psilonnet.training.callbacks import Callback
    from psilonnet.training.gradients import Gradients, Whole
    from psilonnet.training.losses import Loss
    from psilonnet.training.pruning import Pruning

DIVERGENCE_FACTOR = 1e6  # a loss this many times the first one counts as diverged


class Run(RunState):
    """One training run of a population.

    Minimises, for each member m, ``mean(weight * loss) + reg_strength[m] * penalty``.

    Parameters
    ----------
    net : Network with one member axis
    train_rows, valid_rows : Rows
    loss : str or callable
        A name in ``psilonnet.training.LOSSES``, or ``loss(output, target)`` per row.
    penalty : callable
        ``penalty(net)`` with one number per member.
    reg_strength : float or Tensor of shape (members,)
    plan : Plan
    callbacks : sequence of Callback
    whole : callable, optional
        Maps the network to the function that is trained and penalised, if it is not the network
        itself: such as ``lambda net: MonotoneNet(net, signs)``. Its gradients are left to autograd.
    name : str
        What is trained, for callbacks that tell of it.

    Attributes
    ----------
    net : Network
        The members still in training.
    members : list of int
        Their numbers in the population that the run began with.
    step : int
    history : History
    """

    def __init__(
        self,
        net: Network,
        train_rows: Rows,
        valid_rows: Rows | None = None,
        *,
        loss: str | Loss,
        penalty: Callable[..., Tensor],
        reg_strength: float | Tensor,
        plan: Plan | None = None,
        callbacks: Sequence[Callback] = (),
        whole: Whole | None = None,
        name: str = "",
    ) -> None:
        self.name = name
        self.net, self._whole = net, whole
        self.plan = Plan() if plan is None else plan
        check_memory(net, min(self.plan.batch_size, train_rows.count))
        self.members = list(range(members_of(net)))
        dtype, self.device = net.layers[0].direction.dtype, net.layers[0].direction.device
        self.train_rows = train_rows.to(self.device, dtype)
        self.valid_rows = None if valid_rows is None else valid_rows.to(self.device, dtype)
        self.all_rows = (self.train_rows, self.valid_rows)  # before members are dropped
        self.loss, self.penalty = get_loss(loss), penalty
        strengths = torch.as_tensor(reg_strength, dtype=dtype, device=self.device)
        self.all_strengths = self.reg_strength = strengths.expand(len(self.members)).clone()
        _check_fit(net, self.plan, strengths)
        self.start = _sample(net)
        self.callbacks = [*callbacks, *([ProgressBar()] if self.plan.progress else [])]
        self.step = 0
        self.history = History(len(self.members))
        self.running_loss = [0.0] * len(self.members)  # since the last evaluation
        self.first_loss: list[float] = []
        # The shares of the bound that earlier parts of the pruning left over.
        self.owed = strengths.new_zeros(len(self.members), len(net.layers) - 1)
        self.optimizer = Adam(net.parameters())
        self.weight_average = WeightAverage(self.plan.average) if self.plan.average else None
        self._strengths = self.reg_strength.clone()  # at this step
        self._gradients: Gradients | None = None
        self._batches = Batches(self.train_rows, size=1, seed=0, members=self.members)

    def _begin_steps(self) -> Gradients:
        """Choose how to differentiate the network as it is; the optimiser's state follows."""
        given = self.reg_strength
        self._strengths = given if self.plan.strength is None else given.clone()
        gradients = make_gradients(
            self.net,
            self.loss,
            self.penalty,
            self._strengths,
            self.plan.matmul_precision,
            self._whole,
        )
        self._batches = Batches(
            gradients.prepare(self.train_rows),
            size=self.plan.batch_size,
            seed=self.plan.seed,
            members=self.members,
        )
        self.optimizer = self.optimizer.take(self.net.parameters(), flat=gradients.flat)
        self._gradients = gradients
        return gradients

    def end_steps(self) -> None:
        """Leave an ordinary network, which may be changed; the next step begins anew with it."""
        if self._gradients is not None:
            self._gradients.release()
            self._gradients = None

    def train(self) -> Network:
        """Train to the end of the plan and return the members that are left."""
        between_steps = True
        try:
            with (
                flushed_denormals(),
                kept_memory(),
                held_interrupt() as interrupt,
            ):
                self._tell("on_start")
                while self.step < self.plan.steps:
                    interrupt()
                    between_steps = False
                    self.take_step()
                    if self.plan.is_evaluated(self.step):
                        self._evaluate()
                        self._tell("on_evaluation")
                    between_steps = True
                    self._tell("on_step")
                interrupt()
        except KeyboardInterrupt:
            if between_steps:  # a second Ctrl-C is not held back, and half a step is not a state
                self._tell("on_interrupt")
            raise
        finally:
            self.end_steps()
            self._tell("on_end")
        return self.net

    def _tell(self, event: str) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def take_step(self) -> None:
        """Take one step of the plan."""
        plan = self.plan
        if plan.prune is not None:
            self._prune(plan.prune)
        gradients = self._gradients
        if gradients is not None and gradients.flat and not gradients.flat.holds_all():
            self.end_steps()  # a callback has given parameters other values
        gradients = self._gradients or self._begin_steps()
        share = self.step / max(1, plan.steps - 1)
        if plan.strength is not None:
            torch.mul(self.reg_strength, plan.strength(share), out=self._strengths)
        losses, penalties = gradients(self._batches.at(self.step))
        self.optimizer.step(self._learning_rate(self.step))
        if plan.projected:
            project_directions_(self.net)
        self.step += 1
        if self.weight_average is not None:
            self.weight_average.take_in(self.net, self.step)
        values = losses.tolist()
        self.running_loss = [a + b for a, b in zip(self.running_loss, values, strict=True)]
        self._drop_diverged(values, penalties)

    def _learning_rate(self, step: int) -> float:
        rate = self.plan.schedule(step / max(1, self.plan.steps - 1))
        if not rate >= 0:
            raise ValueError(
                f"A schedule must give a learning rate of at least 0. Got {rate!r} at step {step}."
            )
        return rate

    def _prune(self, prune: Pruning) -> None:
        if self.step == prune.begins_at(self.plan.steps):
            norms = [prune.norm_of(member) for member in self.members]
            if None not in norms:
                rescale_rows_(self.net, torch.tensor(norms), self.optimizer)
            self.history.row_norms = [float(norms.mean()) for norms in row_norms(self.net)]
        mix = prune.mix_at(self.step, self.plan.steps)
        if mix > 0:
            if float(self.net.layers[0].prune_mix) == 0:
                self.end_steps()
            self.net.set_prune_mix(mix)
        part = prune.part_at(self.step, self.plan.steps)
        if prune.drop and part:
            shares = torch.tensor([[prune.drop_of(member)] for member in self.members])
            due = self.owed + part * shares.to(self.owed)
            self.owed = drop_neurons_(self.net, due, self.optimizer)

    @torch.no_grad()
    def _evaluate(self) -> None:
        history = self.history
        since = self.step - (history.step[-1] if history.step else 0)
        history.step.append(self.step)
        history.learning_rate.append(self._learning_rate(self.step - 1))
        history.prune_mix.append(float(self.net.layers[0].prune_mix))
        nothing = [math.nan] * len(self.members)
        valid = nothing if self.valid_rows is None else self.mean_loss(self.valid_rows).tolist()
        history.add(
            self.members,
            train_loss=[loss / since for loss in self.running_loss],
            valid_loss=valid,
            penalty=self.penalty(self._function_of(self.net)).tolist(),
        )
        self.running_loss = [0.0] * len(self.members)

    def _function_of(self, net: Network) -> nn.Module:
        """Return the function that is trained."""
        return net if self._whole is None else self._whole(net)

    def averaged_net(self) -> Network:
        """Return a copy of the members, with the average of their weights if one is kept."""
        net = take_members(self.net, slice(None))
        return net if self.weight_average is None else self.weight_average.put_into(net)

    @torch.no_grad()
    def mean_loss(self, rows: Rows) -> Tensor:
        """Return the weighted mean loss of each member over rows, of shape (members,)."""
        net = self.net if self.weight_average is None else self.averaged_net()
        width = max(layer.direction.shape[-3] for layer in net.layers)
        chunk = max(1, 2**23 // (width * len(self.members)))
        positions = torch.arange(rows.count, device=self.device)
        total = torch.zeros(len(self.members), dtype=rows.x.dtype, device=self.device)
        function = self._function_of(net)
        with shared_weights(net):
            for part in torch.split(positions, chunk):
                total += mean_losses(function, self.loss, rows.at(part)) * len(part)
        return total / rows.count

    def _drop_diverged(self, losses: list[float], penalties: Tensor) -> None:
        self.first_loss = self.first_loss or [abs(loss) for loss in losses]
        limits = [DIVERGENCE_FACTOR * (1 + first) for first in self.first_loss]
        fine = [math.isfinite(a) and abs(a) <= b for a, b in zip(losses, limits, strict=True)]
        if self.step == self.plan.steps:  # no further loss would tell what this step has done
            finite = [p.isfinite().flatten(1).all(dim=1) for p in self.net.parameters()]
            whole = torch.stack(finite).all(dim=0).tolist()
            fine = [a and b for a, b in zip(fine, whole, strict=True)]
        if all(fine):
            return
        for position, is_fine in enumerate(fine):
            if not is_fine:
                member, penalty = self.members[position], float(penalties[position])
                lost = Divergence(member, self.step, losses[position], penalty)
                self.history.diverged.append(lost)
        if not any(fine):
            raise DivergedError(self.history.diverged)
        self.drop(keep=torch.tensor(fine))

    def drop(self, keep: Tensor) -> None:
        """Go on with some of the members, by place or as a mask; the optimiser's state follows."""
        keep = keep.nonzero().flatten() if keep.dtype == torch.bool else keep
        self.end_steps()
        net = take_members(self.net, keep)
        self.optimizer = self.optimizer.take(net.parameters(), keep)
        self.net = net
        if self.weight_average is not None:
            self.weight_average.keep(keep)
        self.members = [self.members[k] for k in keep.tolist()]
        self.reg_strength, self.owed = self.reg_strength[keep], self.owed[keep]
        self.running_loss = [self.running_loss[k] for k in keep.tolist()]
        self.first_loss = [self.first_loss[k] for k in keep.tolist() if self.first_loss]
        self.train_rows = self.train_rows.take(keep)
        if self.valid_rows is not None:
            self.valid_rows = self.valid_rows.take(keep)


def _sample(net: Network) -> Tensor:
    """Return some numbers of each tensor of a network, by which a checkpoint knows its start."""
    tensors = net.state_dict().values()
    return torch.cat([t.flatten()[:: 1 + t.numel() // 64] for t in tensors])


def _check_fit(net: Network, plan: Plan, strengths: Tensor) -> None:
    """Refuse what would train on, and end in something else than was asked for."""
    bad = strengths[~(strengths.isfinite() & (strengths >= 0))]
    if len(bad):
        raise ValueError(
            f"The 'reg_strength' must be finite and not negative. Got {float(bad[0])}."
        )
    if not plan.projected and any(layer.normalization == "ball" for layer in net.layers):
        raise ValueError(
            "A network with normalization='ball' leaves the ball, and its bound, unless each step "
            "projects it back: train it with Plan(projected=True)."
        )
    if plan.prune is not None:
        net.set_prune_mix(0.0)  # also if it was pruned before
