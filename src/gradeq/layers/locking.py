"""Layers are guarded: threads take turns, since every public verb holds the layer's lock, and settings are fixed.

``predict`` and ``update`` acquire it inside ``try``, which costs half of ``with``: an interrupt right after it is
then followed by the release (one that comes while waiting ends in RuntimeError, and nothing has changed).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from copy import deepcopy
from functools import wraps
from inspect import signature
from threading import RLock
from typing import Any, Never, Self, TypeVar, cast

from gradeq.engine import scalars

Method = TypeVar("Method", bound=Callable[..., Any])

set_attribute = object.__setattr__  # quicker at events than an assignment, which is checked
WAIT = 0.05  # seconds until locks are released again when one of several cannot be had


class Guarded:
    """An object for several threads (``lock`` makes them take turns) whose settings are fixed once it is built.

    Hold the lock yourself (``with layer.lock:``) to make several calls one.
    """

    lock: RLock
    _built: bool = False
    _keyed: bool = False  # whether it is the pattern of a ``Keyed``

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """An object with its own lock, also when it is copied or unpickled."""
        self = super().__new__(cls)
        self.lock = RLock()
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        memo[id(self)] = twin = type(self).__new__(type(self))
        with self.lock:
            for name, value in list(vars(self).items()):
                if name != "lock":
                    set_attribute(twin, name, deepcopy(value, memo))
        return twin

    def __getstate__(self) -> dict[str, object]:
        """A copy, so that other threads may go on while it is pickled."""
        contents = dict(vars(deepcopy(self)))
        del contents["lock"]
        return contents

    def __setstate__(self, contents: dict[str, object]) -> None:
        """Set attributes one by one: reading them is slower if their dictionary is replaced as a whole."""
        for name, value in contents.items():
            set_attribute(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_") and self._built:
            value = self._change(name, value)
        set_attribute(self, name, value)

    def __delattr__(self, name: str) -> None:
        if not name.startswith("_"):
            self._refuse_change(name)
        super().__delattr__(name)

    def _change(self, name: str, value: object) -> object:
        """The new value of a public attribute, checked; only ``shadow`` may change."""
        if name == "shadow" and "shadow" in signature(type(self)).parameters and not self._keyed:
            return scalars.flag(value, "shadow")
        user_defined = type(self).__module__.partition(".")[0] != "gradeq"
        if name in vars(self) or hasattr(type(self), name) or not user_defined:
            self._refuse_change(name)
        return value

    def _refuse_change(self, name: str) -> Never:
        kind = type(self).__name__
        remedy = f"make a new {kind}"
        if self._keyed:
            remedy = "change the Keyed that it belongs to"
        elif name in ("eta", "schedule", "step") and hasattr(self, "set_step"):
            auto = getattr(self, "eta", None) == "auto"
            remedy = remedy if auto else f"call set_step(eta), or {remedy}"
        elif name == "frozen":
            remedy = "call freeze() or resume()"
        if name in vars(self) or hasattr(type(self), name):
            raise AttributeError(f"{name} of a {kind} is fixed once it is made; {remedy}")
        raise AttributeError(f"a {kind} has no attribute {name} to set; {remedy}")


def locked(method: Method) -> Method:
    @wraps(method)
    def call(self: Guarded, /, *args: object, **kwargs: object) -> object:
        with self.lock:
            return method(self, *args, **kwargs)

    return cast(Method, call)


def together(*guarded: Guarded) -> ExitStack:
    """Hold the locks of several objects. If one is not free in time, release all and try again: no deadlock."""
    while True:
        with ExitStack() as locks:
            for each in guarded:
                if not each.lock.acquire(timeout=WAIT):
                    break
                locks.callback(each.lock.release)
            else:
                return locks.pop_all()
