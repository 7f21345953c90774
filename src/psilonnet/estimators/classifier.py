"""The classifier: classes, calibrated probabilities, class weights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin

from psilonnet._numbers import is_real
from psilonnet._warnings import warn_user
from psilonnet.estimators.base import BasePSiLON
from psilonnet.estimators.labels import check_labels, warn_of_many_classes
from psilonnet.estimators.measures import class_measures, some_of
from psilonnet.estimators.targets import ClassTarget, fit_temperature

if TYPE_CHECKING:
    from psilonnet.estimators.choosing import Choice
    from psilonnet.estimators.fitting import Problem
    from psilonnet.estimators.measures import ClassMeasures

Array = np.ndarray[Any, Any]


class PSiLONClassifier(ClassifierMixin, BasePSiLON):  # type: ignore[misc]
    """A classifier for small tables whose predictions come with a proof.

    A neural network with L1-normalised weights, regularised by the 1-path-norm, which bounds how
    far its outputs can move. The strength of the regularisation is chosen on held-out rows.

    Parameters
    ----------
    architecture : {"mlp", "crelu", "resnet"}, default="mlp"
        Hidden layers with ReLU, with CReLU (both signs are kept), or residual CReLU blocks.
    width, depth : int, default=128 and 3
        Neurons in a hidden layer, and the number of hidden layers.
    knots : int or sequence of int, default=(0, 8)
        Split each column of numbers at its quantiles into this many pieces; 0 for none. Several
        numbers are all tried, and the held-out rows choose or average.
    reg_strength : "auto", float or sequence of float, default="auto"
        The strength, or those to choose from; "auto" is the paper's grid of 13.
    selection : {"average", "best", "one_standard_error"}, default="average"
        Average the strengths that go best together on the held-out rows, take the one with the
        least loss there, or the strongest one within a standard error of it: a smaller bound for
        hardly more loss.
    validation : float, int or list of splits, default=0.2
        The fraction of rows held out to choose the strength, a number of folds, or splits of your
        own: pairs of positions of rows, to train on and to hold out.
    n_members : int, default=1
        Networks with different starts, for each strength in use, whose logits are averaged.
    prune : bool, default=False
        Spend the last half of the steps on exact zeros among the weights, and on training what is
        left. How many is chosen on held-out rows: as many as possible without a loss that is higher
        by more than 2 % and one standard error.
    scaling : {"standard", "robust", "log_tails"}, default="log_tails"
        How networks see numbers, which are encoded in standard deviations (far-out ones, such as
        -999, are pulled in before it is taken): as they are; by quartiles, with outliers clipped
        smoothly; or with tails that grow like a logarithm.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the loss of the rows of a class; "balanced" gives all classes the same sum.
    calibrate : bool, default=True
        Divide the logits by a temperature fitted on held-out rows.
    max_steps : int or "auto", default="auto"
        Steps of a training; "auto" is four per row, at least 1,000 and at most 3,000, and above
        2,000 rows 3,000 times the root of rows / 2,000, at most 10,000.
    batch_size : int, default=256
        Rows of one step.
    learning_rate : float, default=2e-3
        The largest one; it rises at the beginning of a training and falls over its second half.
    device : str, default="cpu"
        Where networks are trained, such as "cuda"; predictions are computed on the CPU.
    random_state : int, RandomState or None, default=None
        Of splits, starts and batches; an int gives the same model every time.
    verbose : bool or "auto", default="auto"
        Show a progress bar; "auto" shows it in terminals and notebooks.

    Attributes
    ----------
    classes_ : ndarray
    reg_strength_ : float
        The strength in use; of an average, the heaviest.
    members_ : dict of lists
        What is averaged: ``weight``, ``reg_strength`` and ``knots``, the heaviest first; each
        stands for n_members networks.
    path_ : dict of lists, or None if nothing was chosen
        For each number of knots and each strength: held-out loss, bound, near-sparsity, sparsity,
        steps trained.
    history_ : dict of lists
        ``step``, ``train_loss``, ``valid_loss`` and ``penalty`` (the bound) along the training of
        the heaviest network, before the last training on all rows.
    held_out_score_ : float, or None if nothing was held out
        The accuracy of the chosen networks on rows they were not trained on. The
        strength was chosen on these same rows, so it is slightly optimistic.
    measures_ : dict
        ``training`` and ``held_out`` (None if nothing was held out): accuracy, AUC, log loss and
        the confusion matrix on the rows in training, and on the others as above.
    lipschitz_bound_ : float
        How far the logits can move, summed over classes, if every encoded column moves by at most
        1 (one standard deviation).
    feature_sensitivity_, feature_sensitivity_raw_ : ndarray of shape (columns,)
        How far they can move with each column alone, for one standard deviation, or for one unit
        of the table; for categories both are for a change of level.
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
        architecture: str = "mlp",
        width: int = 128,
        depth: int = 3,
        knots: Any = (0, 8),
        reg_strength: Any = "auto",
        selection: str = "average",
        validation: float = 0.2,
        n_members: int = 1,
        prune: bool = False,
        scaling: str = "log_tails",
        class_weight: Any = None,
        calibrate: bool = True,
        max_steps: Any = "auto",
        batch_size: int = 256,
        learning_rate: float = 2e-3,
        device: str = "cpu",
        random_state: Any = None,
        verbose: Any = "auto",
    ) -> None:
        self.architecture = architecture
        self.width = width
        self.depth = depth
        self.knots = knots
        self.reg_strength = reg_strength
        self.selection = selection
        self.validation = validation
        self.n_members = n_members
        self.prune = prune
        self.scaling = scaling
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _loss_name(self) -> str:  # type: ignore[override]
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

    def _needs_held_out(self) -> bool:
        return self.calibrate

    def _after_choice(self, choice: Choice | None, problem: Problem) -> None:
        if self.calibrate and choice is not None:
            temperature = fit_temperature(choice.outputs, *problem.truth(choice.held_out))
            self.target_ = replace(self.target_, temperature=temperature)
        self.temperature_ = self.target_.temperature

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

    def certified_radius(self, X: Any, *, method: str = "global") -> Array:
        """Return how far all numbers of a row may move together while its predicted class stays.

        Parameters
        ----------
        X : table
        method : {"global", "local"}
            "local" looks at the neighbourhood of each row: tighter, and slower.

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

    def is_robust(self, X: Any, delta: Any, *, method: str = "global") -> Array:
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
        method : {"global", "local"}
            "local" looks at the neighbourhood of each row: tighter, and slower.

        Returns
        -------
        ndarray of bool of shape (rows,)
        """
        return self._certifier.is_robust(self._read(X, reset=False), delta, method=method)

    def _measure(self, outputs: Array, y: Array, weight: Array) -> ClassMeasures:
        return self._compare(self.target_.decode(outputs), y[:, 0].astype(int), weight)

    def _measure_rows(self, X: Any, y: Any) -> ClassMeasures:
        labels, logits = check_labels(y).tolist(), self._outputs(X)
        place = {label: k for k, label in enumerate(self.classes_.tolist())}
        # Classes that the model does not know get the number behind those that it does.
        numbers = np.array([place.get(label, len(place)) for label in labels])
        if (numbers == len(place)).all():
            known, found = (some_of([repr(v) for v in dict.fromkeys(w)]) for w in (place, labels))
            raise ValueError(
                f"The labels must be classes of the model: {known}. None of y is; it holds {found}."
            )
        return self._compare(logits, numbers)

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
