"""What is answered: text for a model, and the same as JSON for programs."""

import json
from dataclasses import dataclass

from .run import Outcome
from .value import ABSENT

SCHEMA = {
    "type": "object",
    "properties": {
        "output": {"type": "string", "description": "What was printed, to sys.stderr as well"},
        "result": {
            "type": ["string", "null"],
            "description": "The value of the last line as Python writes it; null where it is None or no expression",
        },
        "value": {"description": "The same value, where JSON can say it exactly"},
        "error": {
            "type": ["string", "null"],
            "description": "The traceback of the exception that ended the code; null where it came to its end",
        },
        "shortened": {
            "type": "boolean",
            "description": "Whether something is left out of the output or the result, which tell how much and where",
        },
    },
    "required": ["output", "result", "error", "shortened"],
    "additionalProperties": False,
}

# Where nothing is to be seen, small models ask the same again.
_NOTHING = "The code ran to its end. It printed nothing, and its last line has no value: print() what is of interest."


@dataclass(frozen=True)
class Told:
    """An answer."""

    text: str
    structured: str
    is_error: bool


def tell(outcome: Outcome) -> Told:
    """Puts into words what came of the code."""
    parts = [part.removesuffix("\n") for part in (outcome.output, outcome.result, outcome.error) if part]
    structured = {"output": outcome.output, "result": outcome.result}
    if outcome.value is not ABSENT:
        structured["value"] = outcome.value
    structured |= {"error": outcome.error, "shortened": outcome.shortened}
    text = "\n".join(parts) or _NOTHING
    return Told(text, json.dumps(structured, ensure_ascii=False), outcome.error is not None)
