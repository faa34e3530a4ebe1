"""A model as a function from observations to logits and values: the runtimes of `seraphim.search.evaluator.Inference`.

In dependency order:

    interface     what the runtimes share
    openvino      runs a SavedModel by OpenVINO
    litert        runs a small network, or few positions at a time, by LiteRT
    tensorflow    runs a network by TensorFlow, or loads it to be trained
    jax           runs a network by JAX, on a GPU that TensorFlow cannot use
    loading       loads a snapshot, and chooses the runtime by a rule
"""

from seraphim.inference.interface import Precision, Runtime
from seraphim.inference.loading import SavedNetwork, load_inference, uses_gpu
from seraphim.inference.tensorflow import load_network

__all__ = ["Precision", "Runtime", "SavedNetwork", "load_inference", "load_network", "uses_gpu"]
