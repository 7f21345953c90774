"""What classifier and regressor share: everything but the target and the loss."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from psilonnet.certify import Certifier
from psilonnet.estimators.choosing import choose
from psilonnet.estimators.exports import ExportMixin
from psilonnet.estimators.fitting import Design, Pick, Problem, column_map, forward, train_on_all
from psilonnet.estimators.jobs import finish
from psilonnet.estimators.parameters import auto_steps, check_parameters, show_progress
from psilonnet.estimators.pruning import CUTS, choose_cut
from psilonnet.estimators.reading import (
    as_table,
    check_groups,
    check_names,
    check_weights,
)
from psilonnet.estimators.splits import (
    GivenRows,
    NothingHeldOutError,
    hold_out,
    merge_within_sides,
    warn_not_chosen,
)
from psilonnet.estimators.summary import SummaryMixin
from psilonnet.tables import canonical_rows, fit_encoder, read_columns
from psilonnet.training import STRENGTHS, Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.estimators.choosing import Choice
    from psilonnet.estimators.jobs import Fitting
    from psilonnet.estimators.splits import Split
    from psilonnet.estimators.targets import ClassTarget, NumberTarget
    from psilonnet.tables import Column

Array = np.ndarray[Any, Any]
FALLBACK_STRENGTH = 5e-3  # for tables too small to choose on


class BasePSiLON(SummaryMixin, ExportMixin, BaseEstimator):  # type: ignore[misc]
    """Fitting and prediction without a target."""

    reg_strength: Any
    target_: Any
    _loss_name: str
    _stratified: bool

    # What the subclasses define.

    def _fit_target(self, y: Any, weight: Array) -> Array:
        """Check y, keep its classes or shape, and return it as numbers of shape (rows, targets)."""
        raise NotImplementedError

    def _make_target(self, y: Array, weight: Array) -> ClassTarget | NumberTarget:
        """Return the target of rows in canonical form."""
        raise NotImplementedError

    def _check_target(self, y: Any) -> Array:
        """Return the target of validation rows as numbers of shape (rows, targets)."""
        raise NotImplementedError

    def _row_factors(self, y: Array) -> Array:
        """Return by how much the weights of rows in the loss are multiplied."""
        return np.ones(len(y))

    def _needs_held_out(self) -> bool:
        """Whether held-out rows are used even if there is no strength to choose."""
        return False

    def _after_choice(self, choice: Choice | None, problem: Problem) -> None:
        """Use the outputs on the held-out rows of a problem, for instance to calibrate."""

    def _measure(self, outputs: Array, y: Array, weight: Array) -> Any:
        """Return how good outputs of the network are, for y as the network sees it."""
        raise NotImplementedError

    def _output_words(self) -> str:
        """Return what it is that moves, as in "the prediction moves"."""
        raise NotImplementedError

    # Fitting.

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        validation_data: tuple[Any, Any] | None = None,
    ) -> BasePSiLON:
        """Fit the model.

        Parameters
        ----------
        X : pandas, polars or Arrow table, or array-like of shape (rows, columns)
            Numbers, booleans, words, categories and dates; cells may be missing.
        y : array-like of shape (rows,), or (rows, targets) for a regressor
        sample_weight : array-like of shape (rows,), optional
            In training a weight of k is the same as k equal rows. When rows are dealt to be
            held out, a given row is never parted, whatever its weight.
        groups : array-like of shape (rows,), optional
            Rows of one group are held out together when the strength is chosen.
        validation_data : tuple (X, y), optional
            Rows to choose the strength on. The model is then trained on X and y only, and never
            on these.

        Returns
        -------
        self
        """
        finish(self._fitting(X, y, sample_weight, groups, validation_data))
        return self

    def _fitting(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, validation_data: Any
    ) -> Fitting:
        """Fit the model, and yield the populations that have to be trained for it."""
        check_parameters(type(self).__name__, self.get_params(deep=False))
        self.__dict__.pop("net_", None)  # a fit that is stopped leaves no half of a model
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        columns = self._read(X, reset=True)
        check_consistent_length(X, y, sample_weight, groups)
        weight = check_weights(sample_weight, len(columns[0].values))
        self.n_rows_ = int((weight > 0).sum())
        y = self._fit_target(y, weight)
        groups = None if groups is None else check_groups(groups)
        rows = canonical_rows(columns, y, weight)
        # Only distinct rows in sorted order are trained on.
        columns = [column.take(rows.position) for column in columns]
        self.encoder_ = fit_encoder(columns, rows.weight)
        if self.encoder_.width == 0:
            raise ValueError(
                "At least one column must have two different values among the rows of weight above "
                f"0. All {len(columns)} columns are constant or empty (n_samples = {len(weight)}): "
                "nothing can be learned."
            )
        y = y[rows.position]
        self.target_ = self._make_target(y, rows.weight)
        problem = replace(
            self._problem(columns, y, rows.weight),
            columns=column_map(self.encoder_, columns, rows.weight, self.scaling),
        )
        labels = y[:, 0].astype(np.int64) if self._stratified else np.zeros(len(y), np.int64)
        given = GivenRows.of(rows, weight, labels, groups)
        yield from self._train(problem, given, validation_data)

    def _problem(self, columns: Sequence[Column], y: Array, counts: Array) -> Problem:
        weight = counts * self._row_factors(y)
        return Problem(
            x=torch.from_numpy(self.encoder_.encode(columns)),
            y=torch.tensor(self.target_.encode(y), dtype=torch.float32),
            weight=torch.tensor(weight / weight.mean(), dtype=torch.float32),
            counts=torch.tensor(counts),
            loss=self._loss_name,
            outputs=self.target_.outputs,
        )

    def _train(self, problem: Problem, given: GivenRows, validation_data: Any) -> Fitting:
        """Choose the strength, then train on all rows."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        designs = [self._design(int(k), seed, len(problem.y)) for k in np.atleast_1d(self.knots)]
        strengths = self._strengths()
        choice, whole = None, problem
        alone = min(strengths, key=lambda s: abs(math.log((s + 1e-12) / FALLBACK_STRENGTH)))
        asked = len(strengths) * len(designs) > 1 or self.prune or self._needs_held_out()
        if asked or validation_data is not None:
            try:
                whole, splits = self._held_out_rows(problem, given, validation_data, seed)
            except NothingHeldOutError as reason:
                kept = "the temperature is 1, " if self._needs_held_out() else ""
                kept += f"knots are {designs[0].knots}, and there is no held-out score"
                warn_not_chosen(reason, alone, kept)
            else:
                choice = yield from choose(whole, splits, strengths, designs, self.selection)
        picks = [Pick(designs[0], alone)] if choice is None else choice.picks
        self._note(choice, whole)
        if choice is not None and whole.given and self.n_members == 1 and not self.prune:
            average, history = choice.net, choice.history
        else:
            cut = CUTS[-1] if self.prune else None
            if self.prune and choice is not None:
                cut = yield from choose_cut(whole, choice)
            average, history, picks = yield from train_on_all(
                problem, picks, n_members=self.n_members, prune=cut
            )
        self.reg_strength_ = picks[0].strength
        self.members_ = {
            "weight": [pick.weight for pick in picks],
            "reg_strength": [pick.strength for pick in picks],
            "knots": [float(pick.design.knots) for pick in picks],
        }
        self.net_, self.near_sparsity_, self.sparsity_ = average
        self.history_ = history if choice is None else choice.history
        self.n_iter_ = designs[0].plan.steps
        self.measures_ = {
            "training": self._measured(problem, slice(None), forward(self.net_, problem.x)),
            "held_out": None
            if choice is None
            else self._measured(whole, choice.held_out, choice.outputs),
        }

    def _measured(self, problem: Problem, rows: Any, outputs: Array) -> Any:
        y, counts = problem.y.numpy()[rows], problem.counts.numpy()[rows]
        return self._measure(outputs, y, counts)

    def _held_out_rows(
        self, problem: Problem, given: GivenRows, validation_data: Any, seed: int
    ) -> tuple[Problem, list[Split]]:
        """Return the rows to choose on and how they are split."""
        if validation_data is not None:
            rows, whole = len(problem.y), self._append_validation(problem, validation_data)
            return whole, [(np.arange(rows), np.arange(rows, len(whole.y)))]
        # Rows are dealt as they were given: a side gets its share of equal rows.
        dealt = hold_out(given, self.validation, seed)
        distinct, counts, splits = merge_within_sides(given, dealt)
        whole = problem.parted(distinct, counts)
        splits = [(train, held) for train, held in splits if bool(whole.weight[held].any())]
        if not splits:
            raise NothingHeldOutError("all rows that are held out are of classes of weight 0")
        return whole, splits

    def _note(self, choice: Choice | None, whole: Problem) -> None:
        """Keep what was measured on the held-out rows."""
        self.path_ = None if choice is None else choice.path
        self._after_choice(choice, whole)
        self.held_out_score_ = None if choice is None else self._held_out_score(choice, whole)

    def _held_out_score(self, choice: Choice, problem: Problem) -> float | None:
        held = choice.held_out
        y, counts = problem.y.numpy()[held], problem.counts.numpy()[held]
        score: float | None = self.target_.score(y, choice.outputs, counts)
        return score

    def _strengths(self) -> list[float]:
        if isinstance(self.reg_strength, str):
            return list(STRENGTHS)
        return [float(s) for s in np.atleast_1d(self.reg_strength)]

    def _append_validation(self, problem: Problem, validation_data: Any) -> Problem:
        """Return the training rows followed by the validation rows."""
        if not isinstance(validation_data, tuple) or len(validation_data) != 2:
            raise ValueError(
                "The 'validation_data' must be a tuple (X, y). Got "
                f"{type(validation_data).__name__} instead."
            )
        columns = self._read(validation_data[0], reset=False)
        y = self._check_target(validation_data[1])
        check_consistent_length(columns[0].values, y)
        if not self._row_factors(y).any():
            raise ValueError(
                "Some row of 'validation_data' must be of a class with a weight above 0. None is: "
                "change 'class_weight', or choose on other rows."
            )
        return problem.followed_by(self._problem(columns, y, np.ones(len(y))))

    def _design(self, knots: int, seed: int, rows: int) -> Design:
        steps = auto_steps(rows) if self.max_steps == "auto" else int(self.max_steps)
        plan = Plan(
            steps=steps,
            batch_size=self.batch_size,
            evaluate_every=max(1, steps // 20),
            seed=seed,
            # Fits whose rows are one batch may be trained side by side, and must come out equal.
            matmul_precision="medium" if rows > self.batch_size else "highest",
            progress=show_progress(self.verbose),
        )
        return Design(
            architecture=self.architecture,
            width=self.width,
            depth=self.depth,
            knots=knots,
            learning_rate=self.learning_rate,
            device=self.device,
            seed=seed,
            plan=plan,
        )

    # Reading and predicting.

    def _read(self, X: Any, *, reset: bool) -> list[Column]:
        """Return the columns of a table, checked as scikit-learn does."""
        X = as_table(X, type(self).__name__)
        validate_data(self, X, reset=reset, skip_check_array=True)
        columns = read_columns(X)
        if not reset and not hasattr(self, "feature_names_in_"):
            check_names(columns, self.encoder_.names)
        return columns

    def _outputs(self, X: Any) -> Array:
        """Return the averaged outputs of the members in float64, of shape (rows, outputs)."""
        check_is_fitted(self)
        columns = self._read(X, reset=False)
        x = torch.from_numpy(self.encoder_.encode(columns))
        self.encoder_.warn_far_outside(columns)
        return np.asarray(self.target_.decode(forward(self.net_, x)))

    @property
    def _certifier(self) -> Certifier:
        """Proofs about the fitted network, in the units of the table."""
        check_is_fitted(self)
        return Certifier(self.net_, self.encoder_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "net_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
