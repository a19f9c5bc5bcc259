"""Signs requests with Signature Version 4, by botocore. `pip install 'holdfast-client[aws]'` installs it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .http import Signer, url_of


def region_of(endpoint: str, env: Mapping[str, str], region: str | None = None) -> str | None:
    """Returns the given region, or the one in the endpoint of API Gateway, or the one in the environment."""
    found = re.search(r"\.execute-api\.([\w-]+)\.", url_of(endpoint).hostname or "")
    return region or (found and found[1]) or env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION")


def signer_of(credentials: Any, region: str) -> Signer:
    """Returns a function that signs requests.

    Args:
        credentials: credentials of botocore or boto3 (`session.get_credentials()`), or a function that returns them,
            called for each request.
    """
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    def signed(method: str, url: str, headers: dict[str, str], body: bytes) -> dict[str, str]:
        signing_credentials: Any = credentials() if callable(credentials) else credentials
        request = AWSRequest(method, url, dict(headers), body)
        if hasattr(
            signing_credentials, "get_frozen_credentials"
        ):  # a refresh between two reads would mix old and new credentials
            signing_credentials = signing_credentials.get_frozen_credentials()
        SigV4Auth(signing_credentials, "execute-api", region).add_auth(request)
        return dict(request.headers.items())

    return signed


def default_signer(endpoint: str, env: Mapping[str, str], region: str | None = None) -> Signer | None:
    """Returns a signer with the credentials that botocore finds in variables, profiles and roles.

    Returns None if botocore, the credentials or the region are missing.
    """
    try:
        from botocore.session import get_session
    except ImportError:
        return None
    session = get_session()
    found = region_of(endpoint, env, region) or session.get_config_variable("region")
    credentials = session.get_credentials()
    return signer_of(credentials, found) if credentials and found else None
