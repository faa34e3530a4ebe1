"""A model as a function from observations to logits and values, whatever runs it. Knows no search.

In dependency order:

    interface    what the search needs of a model, and what the runtimes share
    openvino     runs a SavedModel by OpenVINO
    litert       runs a small network, or few positions at a time, by LiteRT
    tensorflow   runs a SavedModel by TensorFlow
    choice       which of them is the fastest here, by a measurement that is made once
    loading      a snapshot, loaded by one of them

Each outside library is imported only in the module of its name, and only when it is asked for.
"""

from seraphim.inference.choice import Choice
from seraphim.inference.interface import (
    LARGEST_BATCH,
    Inference,
    Precision,
    Runtime,
    Uniform,
    bucket_size,
    in_buckets,
)
from seraphim.inference.loading import choose_runtime, load_inference

__all__ = [
    "LARGEST_BATCH",
    "Choice",
    "Inference",
    "Precision",
    "Runtime",
    "Uniform",
    "bucket_size",
    "choose_runtime",
    "in_buckets",
    "load_inference",
]
