"""What the snippets of a page say, by the parsers of others: the HCL for Terraform, and the commands of the AWS CLI, whose options botocore's
model of the API must know and find valid. JSON on stdout."""

import json
import re
import shlex
import sys

import botocore.session
import hcl2
import jmespath
from botocore import xform_name
from botocore.validate import ParamValidator

text = open(sys.argv[1]).read()


def plain(value):
    """Without the quotation marks and notes of the parser."""
    if isinstance(value, dict):
        return {plain(key): plain(part) for key, part in value.items() if key != "__is_block__"}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value.strip('"') if isinstance(value, str) else value


def option(shape, words):
    """The value of an option, as the CLI makes it of the words after it."""
    if words and words[0][:1] in ("[", "{"):
        return json.loads(words[0])
    if shape.type_name == "boolean":
        return words in ([], ["true"])
    if shape.type_name == "list":
        return [option(shape.member, [word]) for word in words]
    if shape.type_name == "structure":
        pairs = [pair.split("=", 1) for pair in words[0].split(",")]
        return {name: option(shape.members[name], [value]) for name, value in pairs}
    [word] = words
    return word


def command(words):
    _, service, verb, *rest = words
    model = session.get_service_model(service)
    operation = next(one for one in model.operation_names if xform_name(one, "-") == verb)
    shape = model.operation_model(operation).input_shape
    names = {xform_name(member, "-"): member for member in shape.members}
    parameters, given = {}, {}
    words = iter(rest)
    for word in words:
        if word == "--query":
            jmespath.compile(next(words))  # of the CLI itself, and not of the API
            continue
        if word.startswith("$"):
            continue  # what a command before it prints
        if word.startswith("--"):
            given = parameters.setdefault(names[word[2:]], [])
        else:
            given.append(word)
    values = {name: option(shape.members[name], said) for name, said in parameters.items()}
    report = ParamValidator().validate(values, shape)
    return {"service": service, "operation": operation, "method": xform_name(operation), "parameters": values, "errors": report.generate_report()}


session = botocore.session.get_session()
terraform = "".join(re.findall(r"```hcl\n(.*?)```", text, re.S))
shell = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.S)).replace("\\\n", " ")
commands = [shlex.split(line) for line in map(str.strip, shell.splitlines()) if re.match("aws (cloudformation|dynamodb) (?!wait )", line)]
json.dump({"terraform": plain(hcl2.loads(terraform)), "commands": [command(one) for one in commands]}, sys.stdout)
