"""A model as a function from observations to logits and values, whatever runs it. Knows no search.

In dependency order:

    interface     what the search needs of a model, and what the runtimes share
    openvino      runs a SavedModel by OpenVINO
    litert        runs a small network, or few positions at a time, by LiteRT
    tensorflow    runs a network by TensorFlow, or loads it to be trained
    jax           runs a network by JAX, on a GPU that TensorFlow cannot use
    loading       loads a snapshot, and chooses the runtime by a rule
"""

from seraphim.inference.interface import Evaluate, Inference, Precision, Runtime, StateFunction, Uniform, inputs_of
from seraphim.inference.loading import SavedNetwork, load_inference, uses_gpu
from seraphim.inference.tensorflow import load_network

__all__ = [
    "Evaluate",
    "Inference",
    "Precision",
    "Runtime",
    "SavedNetwork",
    "StateFunction",
    "Uniform",
    "inputs_of",
    "load_inference",
    "load_network",
    "uses_gpu",
]
