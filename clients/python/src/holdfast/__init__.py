"""Run code under a Holdfast lease, and never past its end.

The functions of this module use one client for the whole process, which is made from HOLDFAST_ENDPOINT,
HOLDFAST_NAMESPACE, HOLDFAST_TOKEN and HOLDFAST_HOLDER. `holdfast.aio` has the same functions for asyncio. All times are
in seconds.

Example:
    >>> import holdfast
    >>> with holdfast.lease("nightly", wait=600) as lease:
    ...     build_report(fence=lease.fence)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from .acquire import LeaseOptions as LeaseOptions
from .acquire import RateTerms as RateTerms
from .base import Key, OnHeld, default_client
from .client import Holdfast as Holdfast
from .client import Lease as Lease
from .client import RateStart as RateStart
from .client import exclusive_by
from .contract import *  # noqa: F403  the errors
from .errors import HoldfastError as HoldfastError
from .once import OnceAnswer as OnceAnswer
from .once import OnceOptions as OnceOptions
from .rate import RateOptions as RateOptions
from .view import Run as Run

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def client() -> Holdfast:
    """Returns the client that the functions of this module use, for example to call `read_lease` on it."""
    return default_client(Holdfast)


def lease(key: str, **options: Unpack[LeaseOptions]) -> AbstractContextManager[Lease]:
    """Holds a lease or a permit while a `with` block runs, and then releases it. See `Holdfast.lease`.

    Example:
        >>> with holdfast.lease("nightly", wait=600, on_lost=lambda error: stop()) as lease:
        ...     build_report(fence=lease.fence)
    """
    return client().lease(key, **options)


def exclusive(key: Key, *, on_held: OnHeld = "throw", **options: Unpack[LeaseOptions]) -> Callable[[F], F]:
    """Runs each call of the decorated function under a lease. See `Holdfast.exclusive`.

    Example:
        >>> @holdfast.exclusive("nightly", wait=600)
        ... def report(): ...
    """
    return exclusive_by(client, key, on_held, options)


def rate(key: str, **options: Unpack[RateOptions]) -> RateStart:
    """Waits until the rates of a key allow the work to start. See `Holdfast.rate`.

    Example:
        >>> holdfast.rate("vendor", limit=50, per="1m", wait=600)
    """
    return client().rate(key, **options)


def once(key: str, work: Callable[[Run], T], **options: Unpack[OnceOptions]) -> OnceAnswer[T]:
    """Runs work once for a slot, such as a day; other callers receive its result. See `Holdfast.once`.

    Example:
        >>> holdfast.once("backup", lambda run: back_up(run.slot), per="1d", zone="Europe/Berlin", ttl=600)
    """
    return client().once(key, work, **options)
