"""Reads the environment variables, which the command `holdfast` reads too."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from typing import Any

VARIABLES = {
    "endpoint": "HOLDFAST_ENDPOINT",
    "namespace": "HOLDFAST_NAMESPACE",
    "token": "HOLDFAST_TOKEN",
    "holder": "HOLDFAST_HOLDER",
}
"""The environment variable of each option."""


def options_in(env: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Adds options from the environment to the given ones. Raises ValueError if there is no endpoint."""
    options = {name: env[variable] for name, variable in VARIABLES.items() if env.get(variable)}
    options.update({name: value for name, value in given.items() if value is not None})
    if not options.get("endpoint") and not options.get("transport"):
        raise ValueError("HOLDFAST_ENDPOINT is not set, and there is no option endpoint")
    return options


def own_name() -> str:
    """The name of this process, such as `ada@build-7/4711`. It is the default holder."""
    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):
        user = "user"  # a container may run under an id without a name
    return f"{user}@{socket.gethostname()}/{os.getpid()}"
