"""Calls the API over HTTP by urllib, which every Python has, and which supports proxies, certificates and timeouts."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from .contract import ROUTES
from .errors import problem_of, refusal, unreachable
from .surroundings import LONGEST_WAIT

Signer = Callable[[str, str, "dict[str, str]", bytes], "dict[str, str]"]
"""Returns the headers of a signed request: method, URL, headers, body."""

NAMESPACE = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


def url_of(endpoint: str) -> SplitResult:
    """Parses an endpoint. Raises ValueError if it is not a URL of http or https, or if it contains a user name."""
    text = str(endpoint)
    shown = re.sub("//.*@", "//***@", text)
    with suppress(ValueError):
        url = urlsplit(text)
        if url.scheme in ("http", "https") and url.hostname and shown == text and url.port != 0:
            return url
    raise ValueError(f"endpoint must be a URL such as http://127.0.0.1:3000, not {shown}")


def is_loopback(url: SplitResult) -> bool:
    """True if a URL is on this machine, so that no other machine can read the request."""
    return re.fullmatch(r"127(\.\d+){3}|::1|localhost", url.hostname or "") is not None


def is_local(endpoint: str) -> bool:
    """True if the service is on this machine, as with `npm start`, so that requests need not be signed.

    An AWS emulator whose name ends with `.localhost` counts too.
    """
    url = url_of(endpoint)
    return is_loopback(url) or (url.hostname or "").endswith(".localhost")


def assert_namespace(namespace: str | None) -> None:
    """Raises ValueError if a text is not a valid namespace.

    In the path of a URL, it could lead to another namespace.
    """
    if namespace is not None and not NAMESPACE.fullmatch(str(namespace)):
        raise ValueError(f"the namespace must match {NAMESPACE.pattern}, not {namespace!r}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would send the token to another server, and turn a POST into a GET."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        """Does not follow the redirect, so that the caller gets the 3xx as an error."""


class Http:
    """Sends one try of a call over HTTP, and blocks until it is answered or its time has run out."""

    def __init__(self, endpoint: str, token: str | Callable[[], str] | None, signer: Signer | None) -> None:
        """Raises ValueError if the endpoint is not a URL, or if http would show a token or signature to others."""
        url = url_of(endpoint)
        if isinstance(token, str):
            bearer(token)
        if (token or signer) and url.scheme == "http" and not is_loopback(url) and (token or not is_local(endpoint)):
            raise ValueError("endpoint must be https with a token or credentials")
        self._token = token
        self._signer = signer
        self._origin = f"{url.scheme}://{url.netloc}"
        self._base = f"{self._origin}{url.path.rstrip('/')}"
        # A proxy cannot reach a service on this machine.
        direct = [urllib.request.ProxyHandler({})] if is_loopback(url) else []
        self._opener = urllib.request.build_opener(_NoRedirect, *direct)

    def __call__(self, operation: str, request: Mapping[str, Any], seconds: float, namespace: str | None) -> Any:
        """Returns the answer. Raises HoldfastError, and ValueError for a field that is not JSON."""
        method, path = ROUTES[operation]
        # The path is relative to /v1/. With a namespace, even a call outside of /v1/ goes below the namespace.
        path = f"ns/{namespace}/{path.removeprefix('../')}" if namespace else path
        path = path[2:] if path.startswith("../") else f"/v1/{path}"
        url, body, headers = self._base + path, b"", {}
        if method == "POST":
            headers["content-type"] = "application/json"
            body = json.dumps(request, allow_nan=False).encode()
        elif request:
            url += "?" + query_of(request)
        if self._token:
            headers["authorization"] = bearer(self._token if isinstance(self._token, str) else self._token())
        elif self._signer:
            headers = self._signer(method, url, headers, body)
        prepared = urllib.request.Request(url, body or None, headers, method=method)
        try:
            with self._opener.open(prepared, timeout=min(max(0.001, seconds), LONGEST_WAIT)) as response:
                return self._answer(response.status, response.read(), path)
        except urllib.error.HTTPError as error:
            with error:
                return self._answer(error.code, self._read(error), path)
        except (OSError, HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            message = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise unreachable(f"the connection to {self._origin} failed: {message}") from error

    def _read(self, error: urllib.error.HTTPError) -> bytes:
        try:
            return error.read()
        except (OSError, HTTPException) as cut:
            raise unreachable(f"the answer of {self._origin} was cut") from cut

    def _answer(self, status: int, text: bytes, path: str) -> Any:
        try:
            body = json.loads(text)
        except ValueError:
            body = None  # the page of a proxy, or an answer that was cut off
        problem = problem_of(body)
        if problem:
            raise problem
        if 200 <= status < 300 and isinstance(body, dict):
            return body
        message = body.get("message") if isinstance(body, dict) else None
        said = message or text[:200].decode(errors="replace") or "nothing"
        if status == 404 and urlsplit(self._base).path:
            said += ": endpoint must have no path"
        if status in (401, 403) and not self._token and not self._signer:
            said += ": the request was not signed: set HOLDFAST_TOKEN, or pip install 'holdfast-client[aws]'"
        raise refusal(None if 200 <= status < 300 else status, f"{said} ({self._base}{path})")


def bearer(token: str) -> str:
    """The header for a token. Its ValueError does not show the token, because errors end up in logs."""
    if not re.fullmatch("[!-~]+", token):
        raise ValueError("token must have no blanks, and no line breaks")
    return f"Bearer {token}"


def query_of(fields: Mapping[str, Any]) -> str:
    """Writes a query in the canonical form that signatures need: a blank is %20, and the names are sorted."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in fields.items()}
    parts = [(quote(name, safe="-_.~"), quote(text, safe="-_.~", errors="replace")) for name, text in texts.items()]
    return "&".join(f"{name}={text}" for name, text in sorted(parts))
