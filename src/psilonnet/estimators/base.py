"""What classifier and regressor share: everything but the target and the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from sklearn.utils import check_consistent_length, check_random_state

from psilonnet._warnings import warn_user
from psilonnet.estimators.callbacks import check_callbacks
from psilonnet.estimators.chosen import ChosenModel
from psilonnet.estimators.folds import (
    COPIES,
    FOLDS,
    Folds,
    GivenRows,
    HeldOutWarning,
    NothingHeldOutError,
    deal_folds,
    splits_of,
    warn_not_chosen,
)
from psilonnet.estimators.joint_fit import finish
from psilonnet.estimators.monotone import (
    check_columns,
    check_one_output,
    encoded_signs,
    read_signs,
)
from psilonnet.estimators.parameters import check_parameters
from psilonnet.estimators.paths import train_designs
from psilonnet.estimators.problem import Problem
from psilonnet.estimators.progress import Progress
from psilonnet.estimators.pruning import MOST_PRUNED, prune_candidates
from psilonnet.estimators.reading import check_groups, check_weights, refuse_names
from psilonnet.estimators.recipe import make_recipe
from psilonnet.estimators.selection import HeldOut, choose
from psilonnet.estimators.training_record import Record
from psilonnet.tables import canonical_rows, count_repeats, fit_encoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from psilonnet.estimators.class_target import ClassTarget
    from psilonnet.estimators.joint_fit import Fitting
    from psilonnet.estimators.number_targets import NumberTarget
    from psilonnet.estimators.recipe import Recipe
    from psilonnet.tables import Column
    from psilonnet.training import Callback, Loss

Array = np.ndarray[Any, Any]


class _Given(NamedTuple):
    """The rows of a fit, checked: distinct ones in sorted order, and as they were given."""

    columns: list[Column]
    y: Array
    weight: Array
    rows: GivenRows
    cv: Any

    @property
    def counts(self) -> Array:
        """How many rows each stands for: its weight if all are whole, else in proportion to it."""
        if (self.weight == np.floor(self.weight)).all():
            return self.weight
        return np.asarray(self.weight * (len(self.rows.position) / self.weight.sum()))


class BasePSiLON(ChosenModel):
    """Fitting without a target."""

    designs: Any
    monotonic_cst: Any
    reg_strength: Any
    cv: Any
    random_state: Any
    verbose: Any
    _loss: str | Loss
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

    def _several_outputs(self) -> tuple[str, str]:
        """Return in words which outputs there are if there are several, and how to have one."""
        raise NotImplementedError

    def _row_factors(self, y: Array) -> Array:
        """Return by how much the weights of rows in the loss are multiplied."""
        return np.ones(len(y))

    # Fitting.

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        validation_data: tuple[Any, Any] | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Self:
        """Fit the model to a table.

        Parameters
        ----------
        X : pandas, polars or Arrow table, or array-like of shape (rows, columns)
            Numbers, booleans, words, categories and dates; cells may be missing.
        y : array-like of shape (rows,), or (rows, targets) for a regressor
        sample_weight : array-like of shape (rows,), optional
            In training a weight of k is the same as k equal rows. When rows are dealt to be
            held out, a given row is never parted, whatever its weight.
        groups : array-like of shape (rows,), optional
            Rows of one group are held out together.
        validation_data : tuple (X, y), optional
            Rows to choose on. All networks are then trained on all of X and y, from five
            different starts, and none is ever trained on these rows.
        callbacks : list of psilonnet.training.Callback, optional
            They are told of every step and every evaluation, for example to log them. Each design
            is a training of its own, named by ``run.name``, with a member for each fold. Pruning is
            another training.

        Returns
        -------
        self
        """
        hooks = check_callbacks(callbacks)
        finish(self._fitting(X, y, sample_weight, groups, validation_data), hooks)
        return self

    def _fitting(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, validation_data: Any
    ) -> Fitting[None]:
        """Fit the model, and yield the populations that have to be trained for it."""
        check_parameters(type(self).__name__, self.get_params(deep=False))
        self._forget()  # a fit that is stopped leaves nothing of a model
        given = self._read_rows(X, y, sample_weight, groups)
        problem = self._encode(given)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        folds, recipe = self._split(problem, given, validation_data, seed)
        progress = Progress(self.verbose)
        try:
            record = yield from self._train(folds, recipe, progress)
            self._choose(record)
        except BaseException:
            progress.end("")
            raise
        progress.end(self._score_in_words())

    def _forget(self) -> None:
        """Drop what an earlier fit has found."""
        for name in list(vars(self)):
            is_fitted = name.endswith("_") and not name.startswith("_")
            if is_fitted or name in ("_record", "_known_errors"):
                delattr(self, name)

    def _read_rows(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> _Given:
        """Check what was given."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        refuse_names(y=y, sample_weight=sample_weight, groups=groups)
        columns = self._read(X, reset=True)
        check_consistent_length(X, y, sample_weight, groups)
        weight = check_weights(sample_weight, len(columns[0].values))
        self.n_rows_ = int((weight > 0).sum())
        cv = splits_of(self.cv, y, groups)
        y = self._fit_target(y, weight)
        groups = None if groups is None else check_groups(groups)
        rows = canonical_rows(columns, y, weight)
        # Only distinct rows in sorted order are trained on.
        columns, y = [column.take(rows.position) for column in columns], y[rows.position]
        labels = y[:, 0].astype(np.int64) if self._stratified else np.zeros(len(y), np.int64)
        return _Given(columns, y, rows.weight, GivenRows.of(rows, weight, labels, groups), cv)

    def _encode(self, given: _Given) -> Problem:
        """Choose the codes of columns and target, and encode the rows."""
        names = [column.name for column in given.columns]
        signs = read_signs(self.monotonic_cst, names)
        check_columns(signs, given.columns)
        self.monotonic_cst_ = signs
        ordered = [name for name, sign in zip(names, signs, strict=True) if sign]
        self.encoder_ = fit_encoder(given.columns, given.counts, ordered)
        if self.encoder_.width == 0:
            raise ValueError(
                "At least one column must have two different values among the rows of weight above "
                f"0. All {len(given.columns)} columns are constant or empty (n_samples = "
                f"{given.rows.table_rows}): nothing can be learned."
            )
        self.target_ = self._make_target(given.y, given.weight)
        if signs.any():
            check_one_output(self.target_.outputs, *self._several_outputs())
        return self._problem(given.columns, given.y, given.weight)

    def _problem(self, columns: Sequence[Column], y: Array, counts: Array) -> Problem:
        weight = counts * self._row_factors(y)
        return Problem(
            x=torch.from_numpy(self.encoder_.encode(columns)),
            y=torch.tensor(self.target_.encode(y), dtype=torch.float32),
            weight=torch.tensor(weight / weight.mean(), dtype=torch.float32),
            counts=torch.tensor(counts),
            numbers=torch.from_numpy(self.encoder_.holds_numbers),
            loss=self._loss,
            outputs=self.target_.outputs,
            signs=encoded_signs(self.monotonic_cst_, self.encoder_),
        )

    def _split(
        self, problem: Problem, given: _Given, validation_data: Any, seed: int
    ) -> tuple[Folds, Recipe]:
        """Return which rows each network sees, and how the networks are trained."""
        rows, parameters = len(problem.y), self.get_params(deep=False)
        if validation_data is not None:
            if given.rows.groups is not None or given.cv is not None:
                warn_user(
                    "Nothing is held out of X where 'validation_data' is given: 'groups' and 'cv' "
                    "have no effect. Leave them out, or the validation_data.",
                    HeldOutWarning,
                )
            whole = self._append_validation(problem, given, validation_data)
            sides = np.arange(rows), np.arange(rows, len(whole.y))
            recipe = make_recipe(parameters, rows, seed, alone=False)
            return Folds(whole, [sides] * FOLDS), recipe
        try:
            folds = deal_folds(problem, given.rows, given.cv, seed)
        except NothingHeldOutError as reason:
            recipe = make_recipe(parameters, rows, seed, alone=True)
            used = f"the design is {recipe.designs[0].in_words()}, and there is no held-out score"
            warn_not_chosen(reason, recipe.factor * recipe.asked[-1], used)
            return Folds(problem, [(np.arange(rows), np.arange(0))] * FOLDS), recipe
        return folds, make_recipe(parameters, rows, seed, alone=False)

    def _train(self, folds: Folds, recipe: Recipe, progress: Progress) -> Fitting[Record]:
        """Train all designs; prune what would be chosen of them, if that is asked for."""
        candidates, histories = yield from train_designs(folds, recipe, progress)
        held_out = HeldOut(folds.problem, folds.held) if len(folds.held) else None
        if self.prune:
            choice = choose(candidates, held_out, self.selection, MOST_PRUNED)
            chosen = [candidates[k] for k in choice.picks]
            candidates = yield from prune_candidates(folds, recipe, chosen, held_out, progress)
        return Record(recipe.designs, candidates, histories, folds.problem, held_out)

    def _append_validation(self, problem: Problem, given: _Given, validation_data: Any) -> Problem:
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
        same = self.encoder_.matched(columns)
        known = [column.take(given.rows.distinct) for column in given.columns]
        repeats = count_repeats((known, given.y[given.rows.distinct]), (same, y))
        if repeats >= max(COPIES * len(y), 1):
            warn_user(
                f"{repeats} of {len(y)} rows of 'validation_data' are exact copies of rows of X "
                "and y, columns and target alike. The networks are trained on these, so their "
                "choice and held_out_score_ are too optimistic. Leave such rows out on one side.",
                HeldOutWarning,
            )
        return problem.followed_by(self._problem(columns, y, np.ones(len(y))))
