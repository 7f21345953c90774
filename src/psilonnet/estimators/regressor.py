"""The regressor: one or several numbers, three losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin

from psilonnet.estimators.base import BasePSiLON
from psilonnet.estimators.measures import number_measures
from psilonnet.estimators.quantities import check_quantities
from psilonnet.estimators.targets import NumberTarget

if TYPE_CHECKING:
    from psilonnet.estimators.measures import NumberMeasures

Array = np.ndarray[Any, Any]


class PSiLONRegressor(RegressorMixin, BasePSiLON):  # type: ignore[misc]
    """A regressor for small tables whose predictions come with a proof.

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
        Networks with different starts, for each strength in use, whose predictions are averaged.
    prune : bool, default=False
        Spend the last half of the steps on exact zeros among the weights, and on training what is
        left. How many is chosen on held-out rows: as many as possible without a loss that is higher
        by more than 2 % and one standard error.
    scaling : {"standard", "robust", "log_tails"}, default="log_tails"
        How networks see numbers, which are encoded in standard deviations (far-out ones, such as
        -999, are pulled in before it is taken): as they are; by quartiles, with outliers clipped
        smoothly; or with tails that grow like a logarithm.
    loss : {"squared_error", "absolute_error", "huber"}, default="squared_error"
        What is minimised, in quartile deviations of the target; Huber's is linear beyond 1.
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
        The R^2 of the chosen networks on rows they were not trained on. The
        strength was chosen on these same rows, so it is slightly optimistic.
    measures_ : dict
        ``training`` and ``held_out`` (None if nothing was held out): R^2, and the standard
        deviations of targets and predictions, on the rows in training, and on the others as above.
    lipschitz_bound_ : float
        How far the prediction can move, in units of the target, if every encoded column moves by
        at most 1 (one standard deviation).
    feature_sensitivity_, feature_sensitivity_raw_ : ndarray of shape (columns,)
        How far it can move with each column alone, for one standard deviation, or for one unit of
        the table; for categories both are for a change of level.
    near_sparsity_, sparsity_ : float
    n_iter_ : int
    n_rows_ : int
        Rows of weight above 0 that were given to fit.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PSiLONRegressor(width=32, depth=2, max_steps=200, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    _stratified = False

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
        loss: str = "squared_error",
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
        self.loss = loss
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _loss_name(self) -> str:  # type: ignore[override]
        return self.loss

    def _fit_target(self, y: Any, weight: Array) -> Array:
        y = check_quantities(y)
        self._one_target = y.ndim == 1
        return np.asarray(y.reshape(len(y), -1))

    def _make_target(self, y: Array, weight: Array) -> NumberTarget:
        return NumberTarget.fit(y, weight)

    def _check_target(self, y: Any) -> Array:
        y = check_quantities(y)
        numbers: Array = y.reshape(len(y), -1)
        if numbers.shape[1] != self.target_.outputs:
            raise ValueError(
                f"These rows must have the {self.target_.outputs} targets of the training rows. "
                f"Got {numbers.shape[1]} instead."
            )
        return numbers

    def predict(self, X: Any) -> Array:
        """Return the predictions, of the shape that y had in fit."""
        predictions = self._outputs(X)
        return predictions[:, 0] if self._one_target else predictions

    def output_range(self, X: Any, delta: Any, *, method: str = "global") -> tuple[Array, Array]:
        """Return a range that holds every prediction when the columns of a row move a little.

        It says where the prediction can go, not where the truth is.

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
        low, high : ndarray of the shape of the predictions
        """
        rows = self._read(X, reset=False)
        outputs, moved = self._certifier.largest_moves(rows, delta, method=method)
        middle = self.target_.decode(outputs)
        # The last product and sum are rounded, too.
        half = self.target_.scale * moved * (1 + 1e-12) + 1e-15 * np.abs(middle)
        low, high = middle - half, middle + half
        return (low[:, 0], high[:, 0]) if self._one_target else (low, high)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _measure(self, outputs: Array, y: Array, weight: Array) -> NumberMeasures:
        return number_measures(self.target_.decode(outputs), self.target_.decode(y), weight)

    def _measure_rows(self, X: Any, y: Any) -> NumberMeasures:
        return number_measures(self._outputs(X), self._check_target(y))

    def _output_words(self) -> str:
        return "the prediction moves" if self._one_target else "the predictions move in all"
