"""What a call is asked."""

import json
from dataclasses import dataclass
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {
        "code": {
            "type": "string",
            "description": "Python code, such as: import math\\nmath.comb(49, 6)",
        },
        "inputs": {
            "type": "object",
            "description": "Data for the code, which finds it as the variable `inputs`: a dict",
        },
    },
    "required": ["code"],
    "additionalProperties": False,
}


class Invalid(Exception):
    """Arguments that are not as they should be: why."""


@dataclass(frozen=True)
class Arguments:
    """What is to be run."""

    code: str
    inputs: dict[str, Any]


def read(text: str) -> Arguments:
    """Reads arguments, or raises `Invalid`."""
    try:
        given = json.loads(text)
    except RecursionError:
        raise Invalid("the arguments are too deeply nested") from None
    except ValueError as error:
        raise Invalid(f"the arguments are no JSON: {error}") from None
    if not isinstance(given, dict):
        raise Invalid("the arguments are no JSON object")
    unknown = sorted(given.keys() - SCHEMA["properties"].keys())
    if unknown:
        raise Invalid(f"there is no argument {unknown[0]!r}: write `code`, and data for it as `inputs`")
    if "code" not in given:
        raise Invalid('write the Python code to run as `code`, such as {"code": "print(6 * 7)"}')
    code, inputs = given["code"], given.get("inputs")
    if not isinstance(code, str):
        raise Invalid("`code` must be a string")
    if inputs is not None and not isinstance(inputs, dict):
        raise Invalid("`inputs` must be an object, whose keys name the data in it")
    return Arguments(code, inputs or {})
