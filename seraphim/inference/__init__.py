"""A model as a function from observations to logits and values, whatever runs it. Knows no search.

In dependency order:

    interface     what the search needs of a model, and what the runtimes share
    openvino      runs a SavedModel by OpenVINO
    litert        runs a small network, or few positions at a time, by LiteRT
    archive       a network as TensorFlow may have it: built from the Keras archive, compared with the SavedModel
    tensorflow    runs a network by TensorFlow
    loading       a snapshot, loaded by one of them, by a rule
"""

from seraphim.inference.archive import load_network
from seraphim.inference.interface import (
    LARGEST_BATCH,
    Inference,
    Precision,
    Runtime,
    Uniform,
    bucket_size,
    in_buckets,
)
from seraphim.inference.loading import load_inference

__all__ = [
    "LARGEST_BATCH",
    "Inference",
    "Precision",
    "Runtime",
    "Uniform",
    "bucket_size",
    "in_buckets",
    "load_inference",
    "load_network",
]
