"""Checks the arguments of public functions as options are checked."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, get_args

from seraphim.options import converted
from seraphim.storage.atomic import check_path

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")


def checked(**ranges: Any) -> Callable[[Callable[_Parameters, _Returned]], Callable[_Parameters, _Returned]]:
    """Let a public function refuse arguments whose types differ from its annotations, or that are out of `ranges`.

    Args:
        ranges: kinds such as `Count` by the names of arguments. Scalars of NumPy are numbers.
    """

    def decorate(function: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
        signature = inspect.signature(function)
        options = [each.name for each in signature.parameters.values() if each.kind == each.VAR_KEYWORD]

        @functools.wraps(function)
        def call(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Returned:
            given = signature.bind(*arguments, **named)
            for name, value in given.arguments.items():
                kind = signature.parameters[name].annotation
                if name not in options and kind != inspect.Parameter.empty and not isinstance(kind, str):
                    given.arguments[name] = converted(name, value, kind)
                    if value is not None and Path in get_args(kind):
                        check_path(**{name: value})
                if name in ranges and value is not None:
                    given.arguments[name] = converted(name, value, ranges[name])
            return function(*given.args, **given.kwargs)

        return call

    return decorate
