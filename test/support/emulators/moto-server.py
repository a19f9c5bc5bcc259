"""Moto's server, whose Step Functions interprets definitions, with the functions of another endpoint as its Lambda.

Usage: moto-server.py <port> <endpoint of Lambda>
"""

import json
import os
import subprocess
import sys

PORT, LAMBDA = sys.argv[1:]
os.environ["MOTO_PORT"] = PORT

import boto3  # noqa: E402
from botocore.config import Config  # noqa: E402
from moto.core.config import default_user_config  # noqa: E402
from moto.server import main  # noqa: E402
from moto.stepfunctions.parser.asl.component.state.exec.state_task import (  # noqa: E402
    lambda_eval_utils,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (  # noqa: E402
    state_task_service_aws_sdk as aws_sdk,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (  # noqa: E402
    state_task_service_sfn as nested,
)
from moto.stepfunctions.parser.asl.eval.states import States  # noqa: E402
from moto.stepfunctions.parser.asl.jsonata import jsonata  # noqa: E402

default_user_config["stepfunctions"]["execute_state_machine"] = True


def lambda_client(**_):
    return boto3.client(
        "lambda",
        endpoint_url=LAMBDA,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}, parameter_validation=False),
    )


lambda_eval_utils.boto_client_for = lambda_client


# Moto parses JSONata states, but cannot evaluate their expressions.
EVALUATE = """
const expression = require("fs").readFileSync(0, "utf8");
require("jsonata")(expression).evaluate().then((value) => console.log(JSON.stringify(value)));
"""


def evaluate(expression):
    node = ["node", "--input-type=commonjs", "-e", EVALUATE]
    done = subprocess.run(
        node, input=expression, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


jsonata._eval_jsonata = evaluate


# Moto cannot redrive executions, and its context lacks the number of redrives.
states_of = States.__init__


def with_redrives(self, context):
    context["Execution"]["RedriveCount"] = 0
    states_of(self, context)


States.__init__ = with_redrives


# Moto leaves the names of fields as they are: a state machine writes StateMachineArn, and the SDK stateMachineArn.
normalise_parameters = nested.StateTaskServiceSfn._normalise_parameters


def rename(parameters):
    for name in list(parameters):
        parameters[name[0].lower() + name[1:]] = parameters.pop(name)


def as_the_sdk(self, parameters, *args, **names):
    normalise_parameters(self, parameters, *args, **names)
    rename(parameters)


def as_states(self, response, *args, **names):
    for name in list(response):
        response[name[0].upper() + name[1:]] = response.pop(name)


nested.StateTaskServiceSfn._normalise_parameters = as_the_sdk
aws_sdk.StateTaskServiceAwsSdk._normalise_parameters = lambda _, parameters: rename(
    parameters
)
nested.StateTaskServiceSfn._normalise_response = as_states
main(["--host", "127.0.0.1", "--port", PORT])
