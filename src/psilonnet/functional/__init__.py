"""The paper's mathematics as pure functions of tensors: no state, no modules.

Weights have the shape ``(..., out, pieces, in)``; leading axes are batch (the members of a
population). A plain matrix ``(out, in)`` enters as ``w.unsqueeze(-2)``.
"""

from psilonnet.functional.activation import crelu, knots, relu
from psilonnet.functional.compiled import compiled_weights
from psilonnet.functional.normalized_linear import fused_weight, linear, normalized_linear
from psilonnet.functional.path_norm import (
    Bound,
    add_bias_neuron,
    closed_form,
    improved_matrix,
    layer_matrix,
    merged_matrix,
    original_matrix,
    path_mass,
    path_matrix,
    path_norm,
    piece_mass,
    product_bound,
)
from psilonnet.functional.pieces import largest_piece
from psilonnet.functional.projection import (
    project_ball,
    project_sphere,
    projected_weight,
    threshold,
)
from psilonnet.functional.sparsity import exact_sparsity, near_sparsity
from psilonnet.functional.weight_norm import (
    mixed_weight,
    normalized_weight,
    oblique_project,
    row_norm,
    smallest_norm,
)

__all__ = [
    "Bound",
    "add_bias_neuron",
    "closed_form",
    "compiled_weights",
    "crelu",
    "exact_sparsity",
    "fused_weight",
    "improved_matrix",
    "knots",
    "largest_piece",
    "layer_matrix",
    "linear",
    "merged_matrix",
    "mixed_weight",
    "near_sparsity",
    "normalized_linear",
    "normalized_weight",
    "oblique_project",
    "original_matrix",
    "path_mass",
    "path_matrix",
    "path_norm",
    "piece_mass",
    "product_bound",
    "project_ball",
    "project_sphere",
    "projected_weight",
    "relu",
    "row_norm",
    "smallest_norm",
    "threshold",
]
