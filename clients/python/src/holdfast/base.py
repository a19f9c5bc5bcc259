"""The parts that the clients for threads and for asyncio share: options, events, and the default client."""

from __future__ import annotations

import difflib
import inspect
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar

from .acquire import LeaseOptions
from .aws import default_signer, region_of, signer_of
from .environment import options_in, own_name
from .errors import HoldfastError, is_held
from .http import Http, assert_namespace, is_local
from .once import OnceOptions
from .rate import RateOptions
from .steps import Core, Transport
from .surroundings import Surroundings

log = logging.getLogger("holdfast")

OnHeld = Literal["throw", "skip"]
Key: TypeAlias = "str | Callable[..., str]"
"""The key of a decorated function: a text, or a function that returns it for the arguments of a call."""


class Base:
    """One deployment, seen by one caller.

    Threads may share a client. It does not keep a connection or a thread of its own, so there is nothing to close.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        holder: str | None = None,
        namespace: str | None = None,
        token: str | Callable[[], str] | None = None,
        credentials: Any = None,
        region: str | None = None,
        transport: Transport | None = None,
        on_event: Callable[[Mapping[str, Any]], object] | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        """Makes a client. Nothing is sent yet.

        Args:
            endpoint: the URL of the API, as the deployment prints it. With a token or credentials it must be https,
                unless it is on this machine.
            holder: the name that other callers see while you hold a key. The default is `user@host/process`.
            namespace: the namespace of your team, if teams share the deployment.
            token: a JWT, or a function that returns one, called for each request, so that it can renew the token.
            credentials: AWS credentials of botocore or boto3, or a function that returns them, called for each request.
                The default is what botocore finds, unless the endpoint is on this machine.
            region: the AWS region. Needed only if the API has a custom domain.
            transport: sends the calls in place of HTTP, such as `holdfast.testing.MemoryService`.
            on_event: called with each event in the life of a lease, for logs and metrics. The `type` of an event is
                `acquired`, `waiting`, `beat`, `lost` or `released`.
            surroundings: the clocks. Tests pass a `ManualClock`.

        Raises:
            ValueError: the endpoint is not a URL, the namespace is not valid, or credentials come without a region.
        """
        assert_namespace(namespace)
        if transport is None:
            if endpoint is None:
                raise ValueError("endpoint is missing; Holdfast.from_env() reads HOLDFAST_ENDPOINT")
            signer = None
            if credentials is not None:
                found = region_of(endpoint, os.environ, region)
                if not found:
                    raise ValueError("credentials need a region")
                signer = signer_of(credentials, found)
            elif token is None and not is_local(endpoint):
                signer = default_signer(endpoint, os.environ, region)
            transport = Http(endpoint, token, signer)
        self._own_holder = holder
        self._on_event = on_event
        self.core = Core(transport, namespace, surroundings or Surroundings(), self._emit)

    @classmethod
    def options_from_env(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the given options, and those that only the environment has."""
        return options_in(os.environ, given)

    def __reduce__(self) -> NoReturn:
        """Refuses to be pickled: a pickle would contain the token, and another process is another holder."""
        raise TypeError("a client cannot be pickled: make one in each process")

    @property
    def holder(self) -> str:
        """The name that other callers see, unless a call names another one."""
        return self._own_holder or own_name()

    def _emit(self, event: dict[str, Any]) -> None:
        kind, key, error = event["type"], event["key"], event.get("error")
        if kind == "lost":
            log.warning("the lease of %s is lost: %s", key, event["reason"])
        elif kind == "beat" and error is not None:
            log.warning("a heartbeat of %s failed: %s", key, error)
        elif kind == "released" and error is not None:
            log.warning("the service did not confirm that %s was released or withdrawn: %s", key, error)
        if self._on_event is None:
            return
        if isinstance(error, HoldfastError):
            # The hook gets a copy. The traceback of the error itself refers to the lease id, which tools that record
            # local variables would send.
            event = {**event, "error": type(error)(error.fields)}
        try:
            self._on_event(event)
        except Exception:  # an error of the hook must not end a lease
            log.exception("on_event raised an error")


C = TypeVar("C", bound="Base")
_clients: dict[tuple[int, type[Base]], Base] = {}


def default_client(kind: type[C]) -> C:
    """Returns the client of this process, made from the environment.

    A forked process is another holder, so it gets a client of its own.
    """
    made = _clients.get((os.getpid(), kind))
    if not isinstance(made, kind):
        made = kind(**kind.options_from_env({}))
        _clients[os.getpid(), kind] = made
    return made


_OPTIONS: dict[str, frozenset[str]] = {
    "lease": frozenset(LeaseOptions.__annotations__),
    "once": frozenset(OnceOptions.__annotations__),
    "rate": frozenset(RateOptions.__annotations__),
}


def assert_known(kind: Literal["lease", "once", "rate"], options: Mapping[str, Any], on_held: str = "throw") -> None:
    """Raises TypeError for an unknown option, and suggests the name that was meant."""
    for name in options:
        if name not in _OPTIONS[kind]:
            meant = difflib.get_close_matches(name, _OPTIONS[kind], 1)
            raise TypeError(f"there is no option {name!r}{f'; did you mean {meant[0]!r}?' if meant else ''}")
    if on_held not in ("throw", "skip"):
        raise ValueError(f"on_held must be throw or skip, not {on_held!r}")


def assert_has_run(result: object) -> None:
    """Raises TypeError if a function has returned a coroutine or a generator, whose work would run after the lease."""
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(f"the work returned a {type(result).__name__}, so it has not run under the lease")


def key_of(key: Key, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """The key of a call of a decorated function."""
    return key(*args, **kwargs) if callable(key) else key


def takes_lease(function: Callable[..., Any]) -> bool:
    """True if a function has a parameter `lease`, which then receives the lease."""
    return "lease" in inspect.signature(function).parameters


def is_skipped(on_held: OnHeld, error: HoldfastError) -> bool:
    """True if others hold the key, and the caller said to skip the work then."""
    return on_held == "skip" and is_held(error)
