"""The classifier: classes, calibrated probabilities, class weights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin

from psilonnet._numbers import is_real
from psilonnet._warnings import warn_user
from psilonnet.estimators.base import BasePSiLON
from psilonnet.estimators.class_target import ClassTarget, fit_temperature
from psilonnet.estimators.coverage import CoveringSets
from psilonnet.estimators.labels import (
    check_labels,
    label_numbers,
    warn_of_many_classes,
    warn_of_spaces,
)
from psilonnet.estimators.measures import class_measures

if TYPE_CHECKING:
    from psilonnet.estimators.measures import ClassMeasures

Array = np.ndarray[Any, Any]


class PSiLONClassifier(ClassifierMixin, CoveringSets, BasePSiLON):  # type: ignore[misc]
    """A classifier for small tables whose predictions come with a proof.

    It is a weighted average of small networks, regularised by the 1-path-norm, which bounds how far
    their outputs can move. Held-out rows choose which networks, and how strongly regularised ones.

    Parameters
    ----------
    designs : "auto" or list of Design, default="auto"
        What networks are made of. "auto" is rows of weights normalised in L1 on clipped columns,
        and in L1 and in L2 on columns in 16 pieces; all are trained, and the held-out rows choose.
    width : int or "auto", default="auto"
        Neurons in a hidden layer. "auto" is 128, and 64 for tables of up to 256 rows.
    depth : int, default=3
        The number of hidden layers.
    reg_strength : "auto", float or sequence of float, default="auto"
        The strengths to choose from. While a network is trained its strength rises, and a snapshot
        is taken at each of them; "auto" is eleven from 5e-5 to 0.1,
        all of them larger for tables of fewer than 2,000 rows.
    selection : {"balanced", "accurate", "provable"} or float, default="balanced"
        What is minimised on the held-out rows when snapshots are averaged: ``log(loss) + w
        log(1 + bound)`` with w = 0.01, 0 or 0.03, or a weight w of your own. A larger one gives
        smaller bounds, and so proofs that reach farther, for some loss; see
        :meth:`with_selection`.
    cv : int, splitter, iterable of splits or None, default=None
        Which rows are held out. Each network is trained on the rows of one split, and the model is
        the average over the splits; None is five folds. A splitter and splits are as in
        scikit-learn, and their positions are those of the given rows.
    prune : bool, default=False
        Train on towards exact zeros among the weights. How many is chosen on held-out rows: as many
        as possible without a loss that is higher by more than 2 % and one standard error. Only
        designs with L1 directions are trained then.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the loss of the rows of a class; "balanced" gives all classes the same sum.
    calibrate : bool, default=True
        Divide the logits by a temperature fitted on held-out rows.
    monotonic_cst : dict, array-like of shape (columns,) or None, default=None
        1 for columns along which the probability of the second class must not fall, -1 where it
        must not rise, 0 or left out where it is free; by name or by place, as in scikit-learn. Two
        classes only. Columns of numbers, booleans, dates and durations can have a direction; a
        missing cell is not compared with numbers. It is proven, not checked on rows; see
        ``feature_slopes_``.
    max_steps : int or "auto", default="auto"
        Steps of a training. "auto" is 600 for tables of up to one batch; then they grow with the
        root of the rows, 1,500 at 2,000 rows and at most 4,500, and the part before the strength
        rises goes on while the held-out loss still falls.
    batch_size : int, default=256
        Rows of one step.
    learning_rate : float, default=4e-3
        The largest one; it falls to a quarter while the strength rises.
    device : str, default="cpu"
        Where networks are trained, such as "cuda"; predictions are computed on the CPU.
    random_state : int, RandomState or None, default=None
        Of splits, starts and batches; an int gives the same model every time.
    verbose : bool, 2 or "auto", default="auto"
        Show one progress bar for the fit; "auto" shows it in terminals and notebooks, 2 prints
        lines for logs instead.

    Attributes
    ----------
    classes_ : ndarray
        The labels in sorted order.
    encoder_ : TableEncoder
        How the columns of the table are scaled; :class:`psilonnet.certify.Certifier` takes it.
    designs_ : list of Design
    reg_strength_ : float
        The strength of the heaviest of the networks.
    members_ : dict of lists
        What is averaged: ``weight``, ``design`` (its number in ``designs_``) and ``reg_strength``,
        the heaviest first; each stands for one network per fold.
    path_ : dict of lists, or None if nothing was held out
        For each snapshot: ``design``, ``reg_strength``, held-out loss, bound, near-sparsity,
        sparsity, steps trained, and its weight in the model.
    history_ : dict of lists
        ``step``, ``train_loss``, ``valid_loss`` and ``penalty`` (the bound) along the training of
        the heaviest design, averaged over the folds.
    held_out_score_ : float, or None if nothing was held out
        The accuracy of the chosen networks on rows they were not trained on, one network per
        fold. They were chosen on these same rows, and the model averages all folds.
    measures_ : dict
        ``training`` and ``held_out`` (None if nothing was held out): accuracy, AUC, log loss and
        the confusion matrix on the rows in training, and on the others as above.
    coverage_basis_ : str, or None if nothing was held out
        What rows the coverage of sets is measured on: "held-out rows",
        "conformalized rows" or "conformalized groups".
    lipschitz_bound_ : float
        How far the logits can move, summed over classes, if every encoded column moves by at most
        1 (one standard deviation).
    feature_sensitivity_, feature_sensitivity_raw_ : ndarray of shape (columns,)
        How far they can move with each column alone, for one standard deviation, or for one unit
        of the table; for categories both are for a change of level.
    feature_slopes_ : ndarray of shape (columns, 2), or (outputs, columns, 2)
        The least and the largest slope that the output can have along each column, per unit of the
        table (for a boolean the whole change from False to True; NaN for words). With a direction
        one of the two is 0.
    monotonic_cst_ : ndarray of shape (columns,)
        The direction of each column: -1, 0 or 1.
    near_sparsity_, sparsity_ : float
        The share of the weights that hardly count beside the others of their row (the
        near-sparsity of the paper), and the share that is exactly 0.
    temperature_ : float
        What the logits are divided by.
    n_iter_ : int
        Steps of training after which the heaviest of the networks was taken.
    n_rows_ : int
        Rows of weight above 0 that were given to fit.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PSiLONClassifier(width=32, depth=2, max_steps=200, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _stratified = True

    def __init__(
        self,
        *,
        designs: Any = "auto",
        width: Any = "auto",
        depth: int = 3,
        reg_strength: Any = "auto",
        selection: Any = "balanced",
        cv: Any = None,
        prune: bool = False,
        class_weight: Any = None,
        calibrate: bool = True,
        monotonic_cst: Any = None,
        max_steps: Any = "auto",
        batch_size: int = 256,
        learning_rate: float = 4e-3,
        device: str = "cpu",
        random_state: Any = None,
        verbose: Any = "auto",
    ) -> None:
        self.designs = designs
        self.width = width
        self.depth = depth
        self.reg_strength = reg_strength
        self.selection = selection
        self.cv = cv
        self.prune = prune
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.monotonic_cst = monotonic_cst
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _loss(self) -> str:  # type: ignore[override]
        return "binary_cross_entropy" if len(self.classes_) == 2 else "cross_entropy"

    def _fit_target(self, y: Any, weight: Array) -> Array:
        y = check_labels(y)
        self.classes_ = np.unique(y[weight > 0])
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes among the rows of weight above 0. "
                f"The data contains one class only: {self.classes_.tolist()[0]!r}."
            )
        warn_of_many_classes(len(self.classes_), self.n_rows_)
        warn_of_spaces(self.classes_)
        # Labels that occur with weight zero only get any number: their rows are dropped.
        return np.asarray(np.searchsorted(self.classes_, y).reshape(-1, 1), dtype=float)

    def _make_target(self, y: Array, weight: Array) -> ClassTarget:
        self._factors = self._class_factors(y[:, 0].astype(int), weight)
        return ClassTarget(self.classes_)

    def _several_outputs(self) -> tuple[str, str]:
        remedy = "fit one model for each class against the rest, or leave it out"
        return f"{len(self.classes_)} classes", remedy

    def _output_name(self) -> str:
        return f"the probability of {self.classes_.tolist()[1]!r}"

    def _check_target(self, y: Any) -> Array:
        y = check_labels(y)
        unknown = sorted(set(np.unique(y).tolist()) - set(self.classes_.tolist()), key=str)
        if unknown:
            raise ValueError(
                "The classes of the validation rows must occur among the training rows. "
                f"These do not: {unknown}."
            )
        numbers: Array = np.searchsorted(self.classes_, y).reshape(-1, 1).astype(float)
        return numbers

    def _class_factors(self, numbers: Array, weight: Array) -> Array:
        """Return the weight of each class."""
        labels = self.classes_.tolist()
        if self.class_weight is None:
            return np.ones(len(labels))
        if isinstance(self.class_weight, str):  # balanced
            mass = np.bincount(numbers, weights=weight)
            return np.asarray(weight.sum() / (len(mass) * mass))
        given = [self.class_weight.get(label, 1.0) for label in labels]
        if not all(is_real(w) and w >= 0 for w in given) or sum(w > 0 for w in given) < 2:
            raise ValueError(
                "The 'class_weight' must be a number of at least 0 for each class, and above 0 for "
                f"two of them. Got {self.class_weight!r} instead."
            )
        unknown = [key for key in self.class_weight if key not in labels]
        if unknown and not set(labels) <= set(self.class_weight):
            raise ValueError(
                f"The keys of 'class_weight' must be classes. These are not: {unknown}. The "
                f"classes are {labels}."
            )
        return np.array(given, dtype=float)

    def _row_factors(self, y: Array) -> Array:
        return np.asarray(self._factors[y[:, 0].astype(int)])

    def _calibrated(
        self, target: ClassTarget, outputs: Array, truth: tuple[Array, Array, Array]
    ) -> ClassTarget:
        temperature = fit_temperature(outputs, *truth) if self.calibrate and len(truth[0]) else 1.0
        self.temperature_ = temperature
        return replace(target, temperature=temperature)

    def decision_function(self, X: Any) -> Array:
        """Return the logits, of shape (rows,) for two classes or (rows, classes)."""
        logits = self._outputs(X)
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities, of shape (rows, classes)."""
        logits = self._outputs(X)
        return np.asarray(self.target_.log_proba(logits))

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, of shape (rows, classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        logits = self._outputs(X)
        return np.asarray(self.classes_[self.target_.numbers(logits)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on some rows."""
        return float(super().score(X, check_labels(y), sample_weight))

    def _measure(self, outputs: Array, y: Array, weight: Array) -> ClassMeasures:
        return self._compare(self.target_.decode(outputs), y[:, 0].astype(int), weight)

    def _errors(self, outputs: Array, y: Array) -> Array:
        log_proba = self.target_.log_proba(self.target_.decode(outputs))
        return -np.take_along_axis(log_proba, y[:, :1].astype(int), axis=1)

    def _row_errors(self, X: Any, y: Any) -> Array:
        numbers = label_numbers(y, self.classes_)[:, None]
        log_proba = self.target_.log_proba(self._outputs(X))
        strangers = numbers == log_proba.shape[1]
        if strangers.any():
            warn_user(
                f"{int(strangers.sum())} of {len(numbers)} rows are of classes that the model does "
                "not know. No set can hold them, so the sets of all rows grow to make up for it. "
                "Fit with rows of these classes, or leave them out and promise nothing for them."
            )
        known = np.take_along_axis(log_proba, np.where(strangers, 0, numbers), axis=1)
        return np.where(strangers, np.inf, -known)

    def _measure_rows(self, X: Any, y: Any) -> ClassMeasures:
        return self._compare(self._outputs(X), label_numbers(y, self.classes_))

    def _compare(self, logits: Array, y: Array, weight: Array | None = None) -> ClassMeasures:
        log_proba, predicted = self.target_.log_proba(logits), self.target_.numbers(logits)
        return class_measures(self.classes_.tolist(), log_proba, predicted, y, weight)

    def _output_words(self) -> str:
        labels = self.classes_.tolist()
        return "the logits move" if len(labels) > 2 else f"the log-odds of {labels[1]!r} move"
