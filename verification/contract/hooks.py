"""What Schemathesis does not generate, because no function receives the request."""

from urllib.parse import unquote

import schemathesis


@schemathesis.hook
def filter_path_parameters(context, path_parameters):
    """An HTTP API decodes the path and cuts it at `?` before it looks for a route, and answers 404 by itself."""
    return not any("?" in unquote(value) for value in (path_parameters or {}).values() if isinstance(value, str))
