"""Proofs about a trained network, and about the table in front of it."""

from psilonnet.certify.attack import Effort, attack
from psilonnet.certify.box import Box
from psilonnet.certify.certifier import Certifier
from psilonnet.certify.column_bounds import ColumnBounds, column_bounds
from psilonnet.certify.combinations import class_margins
from psilonnet.certify.counterexamples import Goals, farthest_cells
from psilonnet.certify.forward_error import forward_error
from psilonnet.certify.global_bound import first_masses, input_moves
from psilonnet.certify.linear_bound import linear_falls
from psilonnet.certify.local_bound import local_moves
from psilonnet.certify.monotone import averaged, column_slopes, increasing_term, slope_range
from psilonnet.certify.perturbation import Perturbation

__all__ = [
    "Box",
    "Certifier",
    "ColumnBounds",
    "Effort",
    "Goals",
    "Perturbation",
    "attack",
    "averaged",
    "class_margins",
    "column_bounds",
    "column_slopes",
    "farthest_cells",
    "first_masses",
    "forward_error",
    "increasing_term",
    "input_moves",
    "linear_falls",
    "local_moves",
    "slope_range",
]
