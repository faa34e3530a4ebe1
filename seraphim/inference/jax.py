"""Runs the network of a Keras archive by JAX, whose packages bring CUDA: for a GPU that TensorFlow cannot use.

Needs neither TensorFlow nor Keras, and does not look at the SavedModel. Knows the layers that
`seraphim.network.architectures` builds, and refuses others.

Shape letters: `N` positions, `A` actions, `O` shape of an observation.
"""

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import ModelError, SeraphimError, SettingsError, how_to_install
from seraphim.game import Array, Game
from seraphim.inference.interface import FIXED_SIZES, Precision, check_fit, check_process, fixed_size, in_buckets, split
from seraphim.inference.tensorflow import gpu_is_likely
from seraphim.machine import needed, processor_name
from seraphim.network import safety, saved_model
from seraphim.network.archive import read_archive

TITLE = "JAX"

LAYERS = frozenset("Activation Add BatchNormalization Conv2D Dense Flatten InputLayer LeakyReLU ReLU Rescaling".split())
"""The classes of the layers that are known."""

# The options that the layers may have, if they have them, where not every value is known.
_KNOWN_VALUES: dict[str, tuple[Any, ...]] = {
    "activation": ("linear", "relu", "silu", "tanh"),
    "axis": (-1,),
    "data_format": ("channels_last",),
    "dilation_rate": ((1, 1),),
    "groups": (1,),
    "max_value": (None,),
    "padding": ("same", "valid"),
    "renorm": (False,),
    "strides": ((1, 1),),
    "threshold": (0.0,),
}
_USED = ("activation", "center", "epsilon", "negative_slope", "offset", "padding", "scale", "use_bias")  # options


class _Layer(NamedTuple):
    kind: str
    name: str
    inputs: tuple[str, ...]  # the layers whose outputs it takes
    options: tuple[tuple[str, Any], ...]


class _Network(NamedTuple):
    # Hashable, so that the champions of a model, which differ in their weights alone, share their compiled programs.
    layers: tuple[_Layer, ...]  # each after its inputs
    policy: str  # the layer that gives it
    value: str
    precision: Precision


class JaxModel:
    """See `Inference`."""

    def __init__(self, snapshot: Path, game: Game, precision: Precision, platform: str | None = None) -> None:
        """Load the model onto the first device of a platform of JAX, such as `cpu`; None is the one that JAX prefers.

        Raises:
            ModelError: the snapshot has no archive, or it is damaged, or made for another game.
            NotInstalledError: JAX or h5py is not installed.
            SettingsError: the network has a layer that is not known here; or the configuration of JAX is of no use.
        """
        jax = _jax()
        with _configuration():
            device = jax.devices(platform)[0]
        file = snapshot / saved_model.ARCHIVE
        if not file.is_file():
            raise ModelError(
                f"JAX cannot run {snapshot}, because {saved_model.ARCHIVE} is missing: choose another runtime, or "
                "retrain"
            )
        config, stored = read_archive(file)
        try:
            self._network = _read_network(snapshot, config["config"], precision)
            weights = {layer.name: _name_weights(layer, stored.get(layer.name, [])) for layer in self._network.layers}
            with _own_arithmetic():
                _check_shapes(snapshot, game, self._network, config["config"], weights)
        except SeraphimError:
            raise
        except Exception as error:  # Python's and JAX's of whatever a configuration may say
            raise safety.damaged_archive(file, error) from error
        with _configuration(), _own_arithmetic():
            self._weights = jax.device_put(weights, device)
            self._program = _program(self._network)
        self._process, self._num_actions = os.getpid(), game.num_actions
        self.name = str(snapshot)
        self.overlaps = device.platform != "cpu"
        where = device.device_kind if self.overlaps else processor_name()
        self.description = f"{TITLE} {jax.__version__} in {precision} on {where}"

    def infer(self, observations: Array) -> tuple[Array, Array]:
        """See `Inference.infer`."""
        check_process(self._process)

        def infer_bucket(padded: Array) -> tuple[Array, Array]:
            with _own_arithmetic():
                outputs = np.asarray(self._program(self._weights, padded))
            return split(outputs, self._num_actions)

        return in_buckets(observations, infer_bucket, fixed_size, FIXED_SIZES[-1])


def sees_gpu() -> bool:
    """Return whether JAX is installed and can use a GPU."""
    with contextlib.suppress(SettingsError), _configuration():
        return gpu_is_likely() and find_spec("jax") is not None and _jax().default_backend() == "gpu"
    return False


def _jax() -> ModuleType:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors only
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # so that processes can share a GPU
    what = f"the runtime jax needs the package jax: {how_to_install('gpu')}, or choose another runtime"
    with needed(what, ImportError), _configuration():
        import jax
    return jax


@contextlib.contextmanager
def _configuration() -> Iterator[None]:
    # For what depends on nothing but the machine and the configuration, of whose errors there is no list.
    try:
        yield
    except (ImportError, SeraphimError):
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SettingsError(
            f"JAX does not start ({reason}): set its environment variables (JAX_*) otherwise, or choose another runtime"
        ) from error


@contextlib.contextmanager
def _own_arithmetic() -> Iterator[None]:
    # Whatever else JAX is configured to refuse in the user's own programs.
    jax = _jax()
    with jax.transfer_guard("allow"), jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def _read_network(snapshot: Path, config: dict[str, Any], precision: Precision) -> _Network:
    # Of the configuration of a Keras model, whose layers are in topological order.
    layers = tuple(_read_layer(snapshot, layer) for layer in config["layers"])
    policy, value = (config["output_layers"][output][0] for output in ("policy", "value"))
    return _Network(layers, policy, value, precision)


def _read_layer(snapshot: Path, layer: dict[str, Any]) -> _Layer:
    kind, name, calls = layer["class_name"], layer["name"], layer["inbound_nodes"]
    options = {key: tuple(each) if isinstance(each, list) else each for key, each in layer["config"].items()}
    unknown = [key for key, values in _KNOWN_VALUES.items() if key in options and options[key] not in values]
    problem = ""
    if kind not in LAYERS:
        problem = f"is a {kind}"
    elif unknown:
        problem = f"is a {kind} with {unknown[0]}={options[unknown[0]]!r}"
    elif len(calls) != (kind != "InputLayer"):
        problem = f"is used {len(calls)} times"
    if problem:
        raise SettingsError(
            f"JAX cannot run {snapshot}, because its layer {name!r} {problem}: choose --runtime=openvino or "
            "--runtime=tensorflow"
        )
    tensors = calls[0]["args"][0] if calls else []
    tensors = tensors if isinstance(tensors, list) else [tensors]
    inputs = tuple(tensor["config"]["keras_history"][0] for tensor in tensors)
    return _Layer(kind, name, inputs, tuple((key, options[key]) for key in _USED if key in options))


def _name_weights(layer: _Layer, arrays: Sequence[Array]) -> dict[str, Array]:
    # Keras stores the trainable ones first, then the averages.
    options = dict(layer.options)
    names: dict[str, bool] = {}
    if layer.kind in ("Conv2D", "Dense"):
        names = {"kernel": True, "bias": options["use_bias"]}
    elif layer.kind == "BatchNormalization":
        names = {"gamma": options["scale"], "beta": options["center"], "moving_mean": True, "moving_variance": True}
    return dict(zip([name for name, is_used in names.items() if is_used], arrays, strict=True))


def _check_shapes(
    snapshot: Path, game: Game, network: _Network, config: Mapping[str, Any], weights: Mapping[str, Mapping[str, Array]]
) -> None:
    # Traces the network, which computes nothing: JAX finds weights that do not fit each other.
    inputs = {
        layer["name"]: tuple(layer["config"]["batch_shape"][1:])
        for layer in config["layers"]
        if layer["class_name"] == "InputLayer"
    }
    observations = _jax().ShapeDtypeStruct((2, *inputs.get("observation", ())), np.uint8)
    policies, values = _jax().eval_shape(functools.partial(_evaluate, network), weights, observations)
    check_fit(snapshot, game, inputs, {"policy": policies.shape[1:], "value": values.shape[1:]})


@functools.lru_cache(maxsize=64)
def _program(network: _Network) -> Any:
    # Gives one array float32 [N, A + V], the logits and the values, because each copy from a GPU takes time.
    from jax import numpy as jnp

    def evaluate(weights: Mapping[str, Mapping[str, Any]], observations: Any) -> Any:
        policies, values = _evaluate(network, weights, observations)
        return jnp.concatenate([policies, values], axis=1)

    return _jax().jit(evaluate)


def _evaluate(network: _Network, weights: Mapping[str, Mapping[str, Any]], observations: Any) -> tuple[Any, Any]:
    # Logits float32 [N, A] and values float32 [N, V] of observations uint8 [N, *O].
    # The last layers of the heads are small, and computed in float32.
    outputs: dict[str, Any] = {}
    for layer in network.layers:
        inputs = [outputs[name] for name in layer.inputs] or [observations]
        precision = "float32" if layer.name in (network.policy, network.value) else network.precision
        outputs[layer.name] = _apply(layer, weights[layer.name], inputs, precision)
    return outputs[network.policy], outputs[network.value]


def _apply(layer: _Layer, weights: Mapping[str, Any], inputs: Sequence[Any], precision: str) -> Any:
    # Convolutions and dense layers take arrays of `precision`; sums and all other arithmetic are in float32. Without
    # the highest precision a GPU would round float32 to 10 bits.
    from jax import lax, nn
    from jax import numpy as jnp

    options, tensor = dict(layer.options), inputs[0]
    kernel: Any = weights["kernel"].astype(precision) if "kernel" in weights else None
    match layer.kind:
        case "Conv2D":
            layout, padding = ("NHWC", "HWIO", "NHWC"), options["padding"].upper()
            tensor = lax.conv_general_dilated(
                tensor.astype(precision), kernel, (1, 1), padding, dimension_numbers=layout, precision="highest"
            ).astype(jnp.float32)
        case "Dense":
            product = functools.partial(jnp.matmul, precision="highest", preferred_element_type=jnp.float32)
            tensor = product(tensor.astype(precision), kernel)
        case "BatchNormalization":
            scale = weights.get("gamma", 1.0) * lax.rsqrt(weights["moving_variance"] + options["epsilon"])
            tensor = (tensor - weights["moving_mean"]) * scale + weights.get("beta", 0.0)
        case "Add":
            tensor = sum(inputs[1:], start=tensor)
        case "Flatten":
            tensor = tensor.reshape(len(tensor), -1)
        case "Rescaling":
            tensor = tensor.astype(jnp.float32) * options["scale"] + options["offset"]
        case "ReLU" | "LeakyReLU":
            tensor = nn.leaky_relu(tensor, options["negative_slope"])
    tensor = tensor + weights["bias"] if "bias" in weights else tensor
    activations = {"relu": nn.relu, "silu": nn.silu, "tanh": jnp.tanh}
    return activations.get(options.get("activation", ""), lambda same: same)(tensor)
