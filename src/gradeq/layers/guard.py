"""One lock for each layer: whatever is called from outside holds it, so threads may share a layer.

Every public method and property of a layer is wrapped here when its class is made, so none can be forgotten. The
verbs of single events, where a further call would show, hold the lock in their own text and say so by ``holds_lock``.
``predict`` and ``update`` acquire it inside ``try``, half as dear as ``with``: an interrupt that comes right after is
then followed by the release (one that comes while waiting ends in RuntimeError, and nothing has changed).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from copy import deepcopy
from functools import wraps
from inspect import isfunction
from threading import Lock, RLock
from typing import Any, Self, TypeVar
from weakref import WeakSet

Method = TypeVar("Method", bound=Callable[..., Any])

WAIT = 0.05  # seconds until locks that cannot all be had are let go again

_locks: WeakSet[Any] = WeakSet()  # of all layers that live
_listing = Lock()


class Guarded:
    """What can be called from several threads at once: calls take turns."""

    _lock: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An object with a lock of its own, also when it is copied or unpickled."""
        self = super().__new__(cls)
        self._lock = RLock()
        with _listing:
            _locks.add(self._lock)
        return self

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, member in list(vars(cls).items()):
            if name.startswith("_") and name != "__repr__":
                continue
            if isfunction(member) and not getattr(member, "holds_lock", False):
                setattr(cls, name, locked(member))
            elif isinstance(member, property) and member.fget is not None:
                setattr(cls, name, member.getter(locked(member.fget)))

    def _parts(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self)] = twin = type(self).__new__(type(self))
        with self._lock:
            twin.__setstate__(deepcopy(self._parts(), memo))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled, after this returns: a copy, so that others may go on."""
        return deepcopy(self)._parts()

    def __setstate__(self, parts: dict[str, Any]) -> None:
        """Take up what was copied or unpickled: one by one, as those of a whole dictionary are slower to read."""
        for name, value in parts.items():
            object.__setattr__(self, name, value)


def locked(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, called while the lock is held."""

    @wraps(method)
    def held(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return held


def holds_lock(method: Method) -> Method:
    """Say that a method holds the lock by itself."""
    method.holds_lock = True  # type: ignore[attr-defined]
    return method


def together(*guarded: Guarded) -> ExitStack:
    """The locks of several layers, however others may want them at the same time."""
    held = ExitStack()
    for lock in all_of([own._lock for own in guarded]):
        held.callback(lock.release)
    return held


def all_of(locks: Iterable[Any]) -> list[Any]:
    """All these locks, acquired; those held are let go when one cannot be had, so nobody blocks another for ever."""
    wanted = list(locks)
    while True:
        held = []
        for lock in wanted:
            if not lock.acquire(timeout=WAIT):
                break
            held.append(lock)
        else:
            return held
        for lock in held:
            lock.release()


# A process that is forked has the one thread that forked it: a layer that another thread was inside of would stay
# locked, and half changed, for ever. So a fork waits until no layer is inside a call.


def _before_fork() -> None:
    known: set[Any] = set()
    while not known.issuperset(_locks):  # a layer may be made while the others are waited for
        _after_fork()
        with _listing:
            known = set(_locks)
        _forking.extend(all_of([_listing, *known]))


def _after_fork() -> None:
    while _forking:
        _forking.pop().release()


_forking: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
