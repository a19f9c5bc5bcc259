"""MiniStack 1.5.33 with what a deployment of Holdfast needs of AWS, and the emulator lacks. Each patch says why."""

import contextvars
import dataclasses
import os
import re

from ministack import app
from ministack.core import iam_actions, iam_evaluator, lambda_runtime
from ministack.core.responses import get_account_id, get_region
from ministack.services import apigateway, iam, lambda_svc
from ministack.services.cloudformation import changesets, custom_resource, engine, handlers, helpers, provisioners, stacks


def alarms_on_metric_math():
    """CloudFormation takes alarms on metric math. Nothing here waits for an alarm: the first metric stands for all."""
    record = provisioners._cw_metric_alarm_record

    def of_first_metric(name, props):
        metrics = props.get("Metrics")
        if not metrics:
            return record(name, props)
        stat = next(one["MetricStat"] for one in metrics if "MetricStat" in one)
        rest = {key: value for key, value in props.items() if key != "Metrics"}
        return record(name, {
            **rest,
            "Namespace": stat["Metric"]["Namespace"],
            "MetricName": stat["Metric"]["MetricName"],
            "Dimensions": stat["Metric"].get("Dimensions", []),
            "Period": stat["Period"],
            "Statistic": stat["Stat"],
        })

    provisioners._cw_metric_alarm_record = of_first_metric


def requests_count_as_encrypted():
    """The emulator speaks plain HTTP, and the policies of the buckets refuse what does not come over TLS."""
    resolve = iam_evaluator._resolve_condition_key

    def over_tls(key, ctx):
        return "true" if key.lower() == "aws:securetransport" else resolve(key, ctx)

    iam_evaluator._resolve_condition_key = over_tls


def resources_of_one_account():
    """IAM knows of which account the resource of a request is. Here all are of the account of the caller."""
    resolve = iam_evaluator._resolve_condition_key

    def with_account(key, ctx):
        return resolve("aws:PrincipalAccount" if key.lower() == "aws:resourceaccount" else key, ctx)

    iam_evaluator._resolve_condition_key = with_account


def policy_variables():
    """IAM puts what it knows of the caller into a policy's resources. The emulator knows it, and compares the variable as it is written."""
    first_match = iam_evaluator._first_match

    def valued(statement, ctx):
        """The statement for this caller. One with a variable that the caller lacks matches nothing."""
        def value(variable):
            return iam_evaluator._resolve_condition_key(variable[1], ctx) or "\0"

        fields = {name: [re.sub(r"\$\{([^}]+)\}", value, text) for text in getattr(statement, name)]
                  for name in ("resources", "not_resources")}
        return dataclasses.replace(statement, **fields)

    def with_values(ctx, statements, effect):
        return first_match(ctx, [valued(one, ctx) for one in statements], effect)

    iam_evaluator._first_match = with_values


def keys_of_the_issuer_of_tests():
    """An issuer must be https, and no certificate of this machine is trusted: its keys are asked for over HTTP."""
    resolve = apigateway._resolve_jwks_url

    async def over_http(authorizer):
        issuer = str((authorizer.get("jwtConfiguration") or {}).get("issuer") or "")
        if issuer == "https://issuer.test":
            return f"http://127.0.0.1:{os.environ['ISSUER_PORT']}/jwks.json"
        return await resolve(authorizer)

    apigateway._resolve_jwks_url = over_http


def time_limits_of_a_busy_machine():
    """Lambda has a processor for each call; here all calls, the emulator and the tests share a few. No test needs the real limits."""
    start = lambda_runtime.Worker.__init__

    def with_more_time(self, func_name, config, code_zip):
        start(self, func_name, {**config, "Timeout": 20 * int(config.get("Timeout", 3))}, code_zip)

    lambda_runtime.Worker.__init__ = with_more_time


def lists_within_conditions():
    """CloudFormation splits a text within a condition, and puts parameters into it. The emulator selects only from lists."""
    evaluate = engine._evaluate_conditions

    def resolved(value, params):
        if isinstance(value, list):
            return [resolved(one, params) for one in value]
        if not isinstance(value, dict):
            return value
        value = {key: resolved(one, params) for key, one in value.items()}
        match value:
            case {"Fn::Sub": str(text)}:
                return re.sub(r"\$\{(\w+)\}", lambda name: str(params[name[1]]["Value"]), text)
            case {"Fn::Split": [str(separator), str(text)]}:
                return text.split(separator)
            case {"Fn::Select": [index, list(items)]}:
                return items[int(index)]
        return value

    def with_lists(template, params):
        return evaluate({**template, "Conditions": resolved(template.get("Conditions", {}), params)}, params)

    for module in (changesets, engine, handlers, stacks):
        module._evaluate_conditions = with_lists


def aliases_in_the_arn_of_a_call():
    """Lambda shows a function the ARN by which it was invoked. The emulator leaves the alias out."""
    effective = lambda_svc._effective_func_record_for_qualifier

    def named(func, qualifier):
        record, config = effective(func, qualifier)
        if config and qualifier in (func or {}).get("aliases", {}):
            config = {**config, "FunctionArn": f"{func['config']['FunctionArn']}:{qualifier}"}
        return record, config

    lambda_svc._effective_func_record_for_qualifier = named


def reserved_concurrency_of_functions():
    """CloudFormation gives a function its reserved concurrency. The emulator's leaves it out."""
    handlers_of = provisioners._RESOURCE_HANDLERS["AWS::Lambda::Function"]

    def completed(made, properties):
        name = properties["FunctionName"]
        if "ReservedConcurrentExecutions" in properties:
            count = int(properties["ReservedConcurrentExecutions"])
            lambda_svc._put_function_concurrency(name, {"ReservedConcurrentExecutions": count})
        else:
            lambda_svc._delete_function_concurrency(name)
        return made

    create, update = handlers_of["create"], handlers_of["update"]
    handlers_of["create"] = lambda logical_id, new, *rest: completed(create(logical_id, new, *rest), new)
    handlers_of["update"] = lambda physical_id, old, new, *rest, **more: completed(
        update(physical_id, old, new, *rest, **more), new)


def boundaries_of_roles():
    """CloudFormation gives a role its permissions boundary. The emulator's leaves it out, though its IAM decides by it."""
    handlers_of = provisioners._RESOURCE_HANDLERS["AWS::IAM::Role"]
    create = handlers_of["create"]

    def bounded(logical_id, properties, stack_name):
        name, attributes = create(logical_id, properties, stack_name)
        iam._roles[name]["PermissionsBoundary"] = properties.get("PermissionsBoundary")
        return name, attributes

    handlers_of["create"] = bounded


def boundaries_in_conditions():
    """IAM compares the boundary that a request gives a role, or that the role has. The emulator lacks the condition key."""
    of_request = iam_actions.request_tag_context

    def with_boundary(service, action, body, params):
        found = of_request(service, action, body, params)
        if service != "iam":
            return found
        role = iam._roles.get(iam_actions._query_param(params, "RoleName")) or {}
        given = iam_actions._query_param(params, "PermissionsBoundary") or role.get("PermissionsBoundary")
        return {**found, "iam:PermissionsBoundary": given}

    iam_actions.request_tag_context = with_boundary


def service_role_of_cloudformation():
    """CloudFormation works with the role that a change set names, which its caller must be able to pass. The emulator leaves the role out.
    Decided here for what CloudFormation does to roles, by which alone rights could grow."""
    create_change_set = handlers._ACTION_HANDLERS["CreateChangeSet"]
    roles_of_stacks = {}

    def refused(arn, action, resource, **conditions):
        gather = iam_evaluator._gather_user_policies if ":user/" in arn else iam_evaluator._gather_role_policies
        context = iam_evaluator.EvalContext(
            principal_arn=arn, principal_type="User", principal_account=get_account_id(), action=action,
            resource_arn=resource, region=get_region(), service_context=conditions)
        policies = gather(arn.split("/")[-1], get_account_id())
        return None if iam_evaluator.evaluate(context, policies).decision == "Allow" else \
            f"{arn} is not authorized to perform: {action} on resource: {resource}"

    def with_role(params):
        role, caller = helpers._p(params, "RoleARN"), iam_evaluator.caller_arn()
        passed = {"iam:passedtoservice": "cloudformation.amazonaws.com"}
        if role and not caller.endswith(":root") and (reason := refused(caller, "iam:PassRole", role, **passed)):
            return helpers._error("AccessDenied", reason, 403)
        if role:
            roles_of_stacks[helpers._p(params, "StackName")] = role
        return create_change_set(params)

    def check(stack_name, properties, *actions):
        role = roles_of_stacks.get(stack_name)
        arn = f"arn:aws:iam::{get_account_id()}:role/{properties.get('RoleName', stack_name)}"
        bounded = {"iam:permissionsboundary": properties.get("PermissionsBoundary")}
        for action in actions if role else ():
            if reason := refused(role, f"iam:{action}", arn, **bounded):
                raise ValueError(reason)

    handlers_of = provisioners._RESOURCE_HANDLERS["AWS::IAM::Role"]
    create, update = handlers_of["create"], handlers_of["update"]

    def checked_create(logical_id, properties, stack_name):
        check(stack_name, properties, "CreateRole", "PutRolePolicy")
        return create(logical_id, properties, stack_name)

    def checked_update(physical_id, old, new, stack_name, *rest, **more):
        kinds = {"PermissionsBoundary": "PutRolePermissionsBoundary", "Policies": "PutRolePolicy",
                 "AssumeRolePolicyDocument": "UpdateAssumeRolePolicy"}
        check(stack_name, new, *(action for kind, action in kinds.items() if old.get(kind) != new.get(kind)))
        return update(physical_id, old, new, stack_name, *rest, **more)

    handlers._ACTION_HANDLERS["CreateChangeSet"] = with_role
    handlers_of["create"], handlers_of["update"] = checked_create, checked_update


def settings_of_stages():
    """CloudFormation's names of the settings begin with capitals, and the API's do not. The emulator keeps the former."""
    made = provisioners._apigw_v2_stage_props

    def as_the_api(properties):
        props = made(properties)
        def named(settings):
            return {
                f"{key[0].lower()}{key[1:]}": value if isinstance(value, bool) or not key.endswith("Limit") else float(value)
                for key, value in settings.items()
            }

        routes = {route: named(settings) for route, settings in props.get("routeSettings", {}).items()}
        return {**props, "defaultRouteSettings": named(props["defaultRouteSettings"]), "routeSettings": routes}

    provisioners._apigw_v2_stage_props = as_the_api


def responses_where_aws_is():
    """The response of a custom resource goes where a function finds AWS. The emulator names this address differently in both."""
    custom_resource._HOST = "127.0.0.1"


def paths_of_an_http_api():
    """AWS cuts a path at a decoded `?` before it looks for a route. Whether IAM compares the path before the cut, after it, or before it is decoded
    is not documented: the header `x-iam-path` chooses (`whole`, `cut` or `encoded`)."""
    dispatched, enforced, handled = app._handle_execute_api_request, app._enforce_execute_api, apigateway.handle_execute
    encoded = contextvars.ContextVar("encoded")

    async def remembering(*given, **named):
        encoded.set(named.get("raw_path"))
        return await dispatched(*given, **named)

    def compared(api_id, stage, method, path, headers, *rest, **named):
        form = headers.get("x-iam-path", "whole")
        path = {"whole": path, "cut": path.split("?")[0], "encoded": encoded.get() or path}[form]
        return enforced(api_id, stage, method, path, headers, *rest, **named)

    async def cut(api_id, stage, path, *rest, **named):
        return await handled(api_id, stage, path.split("?")[0], *rest, **named)

    app._handle_execute_api_request, app._enforce_execute_api = remembering, compared
    apigateway.handle_execute = cut


reserved_concurrency_of_functions()
boundaries_of_roles()
boundaries_in_conditions()
service_role_of_cloudformation()
settings_of_stages()
paths_of_an_http_api()
responses_where_aws_is()
aliases_in_the_arn_of_a_call()
alarms_on_metric_math()
lists_within_conditions()
policy_variables()
time_limits_of_a_busy_machine()
requests_count_as_encrypted()
resources_of_one_account()
keys_of_the_issuer_of_tests()

if __name__ == "__main__":
    app.main()
