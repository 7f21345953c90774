"""A model made from the candidates of a fit, by what is asked of loss and bound."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from psilonnet._warnings import warn_user
from psilonnet.estimators.conformal import HELD_OUT
from psilonnet.estimators.coverage import CoveredModel
from psilonnet.estimators.parameters import check_parameters
from psilonnet.estimators.selection import choose

if TYPE_CHECKING:
    from typing_extensions import Self

    from psilonnet.estimators.training_record import Record

Array = np.ndarray[Any, Any]


class ChosenModel(CoveredModel):
    """A fitted model that can be chosen anew from its candidates."""

    selection: Any
    prune: bool
    _record: Record | None

    # What the subclasses define.

    def _calibrated(self, target: Any, outputs: Array, truth: tuple[Array, Array, Array]) -> Any:
        """Return the target, calibrated by outputs on the held-out rows if that is asked for."""
        return target

    def _measure(self, outputs: Array, y: Array, weight: Array) -> Any:
        """Return how good outputs of the network are, for y as the network sees it."""
        raise NotImplementedError

    def _choose(self, record: Record) -> None:
        """Make the model from the candidates, by the selection that is asked for."""
        candidates, held_out, problem = record.candidates, record.held_out, record.problem
        choice = choose(candidates, held_out, self.selection)
        first = candidates[choice.picks[0]]
        self.target_ = self._calibrated(
            self.target_,
            choice.outputs,
            problem.truth(held_out.rows if held_out is not None else np.arange(0)),
        )
        self.designs_ = list(record.designs)
        self.path_ = record.path(choice)
        self.members_ = record.members(choice)
        self.history_ = record.histories[first.design]
        self.n_iter_, self.reg_strength_ = first.step, first.strength
        shares = np.array(choice.shares)
        self.near_sparsity_ = float(shares @ [candidates[k].near_sparsity for k in choice.picks])
        self.sparsity_ = float(shares @ [candidates[k].sparsity for k in choice.picks])
        self.net_ = choice.averaged(candidates)
        y, counts = problem.y.numpy(), problem.counts.numpy()
        known = slice(len(y) - problem.validation_rows)
        training = self.net_(problem.x[known]).numpy()
        self.measures_ = {
            "training": self._measure(training, y[known], counts[known]),
            "held_out": None,
        }
        self.held_out_score_ = self._known_errors = None
        if held_out is not None:
            outputs, y, counts = choice.outputs, y[held_out.rows], counts[held_out.rows]
            self.measures_["held_out"] = self._measure(outputs, y, counts)
            self.held_out_score_ = self.target_.score(y, outputs, counts)
            # A new row counts as much as the average row that was given.
            new = 1.0 if problem.validation_rows else float(problem.counts.sum()) / self.n_rows_
            self._keep_errors(outputs, y, counts, new)
        self._record = record

    def _score_in_words(self) -> str:
        held_out = self.measures_["held_out"]
        return f"On held-out rows: {held_out.in_words()}." if held_out else ""

    # The choice between accuracy and proof.

    def with_selection(self, selection: Any) -> Self:
        """Return another fitted model of the same training, made by another selection.

        Parameters
        ----------
        selection : {"accurate", "balanced", "provable"} or float
            As the parameter of that name.

        Returns
        -------
        A fitted estimator with its own weights, temperature, held-out score and errors. What
        ``conformalize`` measured is of this model and not of the other: call it there again.
        """
        check_is_fitted(self)
        check_parameters(type(self).__name__, {"selection": selection})
        record = getattr(self, "_record", None)
        if record is None:
            raise ValueError(
                "The candidates of a fit are kept in the memory of the process that fitted it, not "
                "in files, pickles and copies, and they can be freed. They are gone: fit again "
                f"with selection={selection!r}."
            )
        if self.prune:
            raise ValueError(
                "A pruned model was trained on after the choice, so that another choice needs "
                f"another fit: fit again with selection={selection!r}."
            )
        if self._known_errors is not None and self._known_errors.basis != HELD_OUT:
            warn_user(
                "Another choice makes other errors: intervals and sets of the new model are from "
                "held-out rows again, and their coverage is empirical. Call its conformalize(X, y)."
            )
        other = copy.copy(self)
        other.selection = selection
        other._choose(record)
        return other

    def free_candidates(self) -> Self:
        """Free the memory of the networks that were not chosen; return self."""
        self._record = None
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_record", None)
        return state
