"""The classifier: classes, calibrated probabilities, class weights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin

from psilonnet._numbers import is_real
from psilonnet._warnings import warn_user
from psilonnet.estimators.base import BasePSiLON
from psilonnet.estimators.counterexamples import class_goals, refuted_rows, verdicts
from psilonnet.estimators.coverage import possible_classes
from psilonnet.estimators.labels import check_labels, warn_of_many_classes
from psilonnet.estimators.measures import class_measures, some_of
from psilonnet.estimators.reading import as_table
from psilonnet.estimators.targets import ClassTarget, fit_temperature

if TYPE_CHECKING:
    from psilonnet.estimators.counterexamples import Refuted
    from psilonnet.estimators.measures import ClassMeasures

Array = np.ndarray[Any, Any]


class PSiLONClassifier(ClassifierMixin, BasePSiLON):  # type: ignore[misc]
    """A classifier for small tables whose predictions come with a proof.

    A neural network with L1-normalised weights, regularised by the 1-path-norm, which bounds how
    far its outputs can move. The strength of the regularisation is chosen on held-out rows.

    Parameters
    ----------
    designs : "auto" or list of Design, default="auto"
        What networks are made of. "auto" is rows of weights normalised in L1 and in L2, each with
        the columns as they are and in 8 pieces; all are trained, and the held-out rows choose.
    width, depth : int, default=128 and 3
        Neurons in a hidden layer, and the number of hidden layers.
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
    near_sparsity_, sparsity_ : float
    temperature_ : float
    n_iter_ : int
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
        width: int = 128,
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
        return _log_proba(self._outputs(X))

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, of shape (rows, classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        logits = self._outputs(X)
        return np.asarray(self.classes_[self.target_.numbers(logits)])

    def certified_radius(self, X: Any, *, method: str = "local") -> Array:
        """Return how far all numbers of a row may move together while its predicted class stays.

        Parameters
        ----------
        X : table
        method : {"local", "global", "linear"}
            "global" holds everywhere and costs next to nothing; "local" looks at the neighbourhood
            of each row, and "linear" follows every neuron there: the tightest, and the slowest.

        Returns
        -------
        ndarray of shape (rows,)
            In standard deviations of each column, as the encoder scales it.
        """
        radius = self._certifier.certified_radius(self._read(X, reset=False), method=method)
        encoder = self.encoder_
        if not encoder.has_numbers:
            pairs = zip(encoder.names, encoder.kinds, strict=True)
            levels = {name: "any" for name, kind in pairs if kind == "category"}
            remedy = f" Ask is_robust about levels, with delta={levels}." if levels else ""
            warn_user(
                "A radius is how far numbers can move, and this table has none that vary: that it "
                f"is huge says nothing.{remedy}"
            )
        return radius

    def is_robust(self, X: Any, delta: Any, *, method: str = "auto") -> Array:
        """Return True for the rows whose predicted class provably stays when columns move.

        Parameters
        ----------
        X : table
        delta : float, array-like, dict from column name to amount, or Perturbation
            What may move: a number of standard deviations for every column of numbers (as the
            encoder scales it); an array, dict or Series in the columns' own units (days or a
            timedelta for times). "any" lets a category take any level. Columns left out stay as
            they are. A :class:`psilonnet.certify.Perturbation` can say more: shares of a cell,
            other amounts for each row.
        method : {"auto", "global", "local", "linear"}
            "global" holds everywhere and costs next to nothing; "local" looks at the neighbourhood
            of each row, and "linear" follows every neuron there: the tightest, and the slowest.
            Each begins with those before it. "auto" is all of them: the next
            one is for the rows that are left.

        Returns
        -------
        ndarray of bool of shape (rows,)
        """
        return self._certifier.is_robust(self._read(X, reset=False), delta, method=method)

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, delta: Any = None, method: str = "auto"
    ) -> Array:
        """Return sets of classes that hold the true class of a new row, with a probability.

        A set holds the classes whose probability is at least a threshold, and the most probable
        one in any case. After :meth:`conformalize` it holds the true class with at least the asked
        probability, if the new row and the conformalized ones are exchangeable. Without it, the
        threshold is a quantile over the rows held out in the fit, and the coverage is empirical:
        their probabilities are of one network for each pick, slightly worse than those of the
        average of five; and the same rows chose the average and fitted the temperature. After a
        fit with ``groups`` nothing is promised for rows of new groups, unless whole groups were
        conformalized. No class by itself is promised the coverage: a rare one can be missed more
        often.

        Parameters
        ----------
        X : table
        coverage : float, default=0.9
            Above 0 and below 1.
        delta : as for :meth:`is_robust`, optional
            The cells of these rows may differ from the true ones by so much, in the worst way,
            while the conformalized or held-out rows are as they were measured. A set then holds
            every class that some row in the box around the row would have in its set, so that the
            true class is in it with the same probability. Errors of measurement that the known
            rows share need no delta.
        method : {"auto", "global", "local", "linear"}
            Of the certificate, where there is a delta: the best by default.

        Returns
        -------
        ndarray of bool of shape (rows, classes)
            True where a class, in the order of ``classes_``, is in the set of the row; one of each
            row at least.
        """
        threshold = float(self._threshold(coverage)[0])
        if delta is None:
            logits = self._outputs(X)
            sets = -_log_proba(logits) <= threshold
            sets[np.arange(len(sets)), self.target_.numbers(logits)] = True
            return np.asarray(sets)
        scale = self.target_.scale[0]
        parts = self._certifier.largest_margins(self._read(X, reset=False), delta, method=method)
        return np.concatenate([possible_classes(part * scale, threshold) for part in parts])

    def verdict(self, X: Any, delta: Any, *, budget: int = 200) -> Array:
        """Return for each row whether its class is proven to stay, refuted, or open.

        What linear bounds do not prove is looked for by an attack, as in :meth:`counterexample`.
        What is neither is divided into cases, by halves of columns, levels of categories and signs
        of single neurons, and each case is proven by itself.

        Parameters
        ----------
        X : table
        delta : as for :meth:`is_robust`
        budget : int, default=200
            How many cases are looked at for each row and other class. More decide more rows, and
            take longer; where few columns move, enough of them decide nearly every row.

        Returns
        -------
        ndarray of str of shape (rows,)
            "proven", "refuted" or "open".
        """
        rows = self._read(X, reset=False)
        return verdicts(
            self._certifier.is_robust(rows, delta),
            self.counterexample(X, delta).rows,
            lambda left: self._certifier.is_robust_by_cases(rows, delta, left, budget=budget),
        )

    def counterexample(self, X: Any, delta: Any) -> Refuted:
        """Return rows moved within delta where ``predict`` gives another class.

        They are looked for along the gradient of the margins, in corners, and from level to level.
        A row that is not returned is not proven to be safe: ask ``is_robust``.

        Parameters
        ----------
        X : table
        delta : float, array-like, dict from column name to amount, or Perturbation
            As in ``is_robust``. Each returned cell is within it of the given one; what is missing
            stays missing, and times move by whole milliseconds.

        Returns
        -------
        rows : ndarray of int
            Positions of the refuted rows in X.
        table : table of the type of X
            These rows, moved. Numbers that move are float64, and a category may hold "a level not
            seen in training".
        """
        classes = self.predict(X)
        columns = self._read(X, reset=False)
        outputs = self.net_(torch.from_numpy(self.encoder_.encode(columns)))
        table = as_table(X, type(self).__name__)
        return refuted_rows(
            self,
            table,
            columns,
            delta,
            class_goals(outputs),
            lambda found, rows: np.asarray(found != classes[rows]),
        )

    def _measure(self, outputs: Array, y: Array, weight: Array) -> ClassMeasures:
        return self._compare(self.target_.decode(outputs), y[:, 0].astype(int), weight)

    def _errors(self, outputs: Array, y: Array) -> Array:
        log_proba = _log_proba(self.target_.decode(outputs))
        return -np.take_along_axis(log_proba, y[:, :1].astype(int), axis=1)

    def _row_errors(self, X: Any, y: Any) -> Array:
        numbers = self._numbers_of(y)[:, None]
        log_proba = _log_proba(self._outputs(X))
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
        return self._compare(self._outputs(X), self._numbers_of(y))

    def _numbers_of(self, y: Any) -> Array:
        """Return class numbers; classes that the model does not know get the one behind."""
        labels = check_labels(y).tolist()
        place = {label: k for k, label in enumerate(self.classes_.tolist())}
        numbers = np.array([place.get(label, len(place)) for label in labels])
        if (numbers == len(place)).all():
            known, found = (some_of([repr(v) for v in dict.fromkeys(w)]) for w in (place, labels))
            raise ValueError(
                f"The labels must be classes of the model: {known}. None of y is; it holds {found}."
            )
        return numbers

    def _compare(self, logits: Array, y: Array, weight: Array | None = None) -> ClassMeasures:
        predicted = self.target_.numbers(logits)
        return class_measures(self.classes_.tolist(), _log_proba(logits), predicted, y, weight)

    def _output_words(self) -> str:
        labels = self.classes_.tolist()
        return "the logits move" if len(labels) > 2 else f"the log-odds of {labels[1]!r} move"


def _log_proba(logits: Array) -> Array:
    """Return the logarithms of the probabilities, of shape (rows, classes)."""
    if logits.shape[1] == 1:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    logits = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))
