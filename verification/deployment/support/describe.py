"""Calls AWS APIs: a list of [service, operation, parameters] as JSON on stdin, and their answers, or the codes of their errors, on stdout."""

import json
import sys

import botocore.session
from botocore.exceptions import ClientError, ParamValidationError

session = botocore.session.get_session()
clients = {}


def answer(service, operation, parameters):
    client = clients.setdefault(service, session.create_client(service))
    try:
        return {**getattr(client, operation)(**parameters), "ResponseMetadata": None}
    except ClientError as error:
        return {"error": error.response["Error"]["Code"]}
    except ParamValidationError as error:
        return {"error": "ParamValidation", "report": error.kwargs["report"]}


json.dump([answer(*call) for call in json.load(sys.stdin)], sys.stdout, default=str)
