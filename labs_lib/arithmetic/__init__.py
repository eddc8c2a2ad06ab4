"""What attention costs, on paper: parameters, operations, bytes.

    units       bytes whose decimal and binary units never mix
    parameters  of a layer and of a whole model
    flops       of each product, and of the softmax, which alone grows with the heads
    memory      scores, activations, the cache of keys and values, traffic, intensity
    traffic     what crosses between memory and chip: whole matrices against tiles
    occupancy   what a multiprocessor of a GPU holds, and how many blocks fit on it

Every formula is asserted in the tests against real modules and real tensors.
"""

from labs_lib.arithmetic.flops import (
    attention_flops,
    latent_flops,
    mlp_flops,
    model_flops,
    softmax_work,
)
from labs_lib.arithmetic.memory import (
    activation_bytes,
    arithmetic_intensity,
    attention_traffic,
    cached_elements,
    element_size,
    kv_bytes,
    matmul_intensity,
    score_bytes,
    weight_bytes,
)
from labs_lib.arithmetic.parameters import (
    ModelShape,
    attention_params,
    latent_params,
    mlp_params,
    model_params,
    param_share,
    params_by_part,
)
from labs_lib.arithmetic.units import Bytes, Quantity, is_about, right_number_wrong_unit

__all__ = [
    "Bytes",
    "ModelShape",
    "Quantity",
    "activation_bytes",
    "arithmetic_intensity",
    "attention_flops",
    "attention_params",
    "attention_traffic",
    "cached_elements",
    "element_size",
    "is_about",
    "kv_bytes",
    "latent_flops",
    "latent_params",
    "matmul_intensity",
    "mlp_flops",
    "mlp_params",
    "model_flops",
    "model_params",
    "param_share",
    "params_by_part",
    "right_number_wrong_unit",
    "score_bytes",
    "softmax_work",
    "weight_bytes",
]
