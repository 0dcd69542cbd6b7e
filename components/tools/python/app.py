"""A tool that runs Python: a whole interpreter in a sandbox, made new for each call.

What the code is given and what is told of it is in `nala_run`; here it is put into the
words of `wit/nala-tools/tools.wit`.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports.types import (
    Annotations,
    Answer,
    Content_Text,
    Error_InvalidArguments,
    Error_UnknownTool,
    Tool,
)

from nala_run import arguments, preload, run, tell

NAME = "run_python"

WHAT = (
    "Runs Python code and tells what it prints, and the value of the last line where that is an expression, "
    f"as a notebook does. Python {preload.VERSION} with most of the standard library (math, statistics, json, re, "
    "datetime, decimal, itertools, collections, random, csv, ...); no other packages, and none can be installed. "
    "There are no files, no network, no input() and no other programs; CPU time and memory are limited. "
    "Each call begins anew: variables and imports of earlier calls are gone. "
    "Data can be passed as `inputs`, which the code finds as the variable `inputs`."
)

# A snapshot is taken once this is loaded, so that calls begin with all of it done.
preload.warm()


class Provider(exports.Provider):
    """The tool."""

    def describe(self) -> list[Tool]:
        """See `provider` in the interface."""
        return [
            Tool(
                name=NAME,
                title="Python",
                description=WHAT,
                input_schema=json.dumps(arguments.SCHEMA),
                output_schema=json.dumps(tell.SCHEMA),
                # Nothing that it could change outlives the call.
                annotations=Annotations(read_only=True, destructive=None, idempotent=None, open_world=False),
            )
        ]

    def call(self, name: str, text: str) -> Answer:
        """See `provider` in the interface."""
        if name != NAME:
            raise Err(Error_UnknownTool(name))
        try:
            asked = arguments.read(text)
        except arguments.Invalid as error:
            raise Err(Error_InvalidArguments(str(error))) from None
        try:
            told = tell.tell(run.run(asked.code, asked.inputs))
        except BaseException as error:
            # The code shares its interpreter with the tool, and may have changed anything.
            why = f"The code changed what this tool itself works with, so nothing can be told of it ({type(error).__name__})."
            return Answer(content=[Content_Text(why)], structured=None, is_error=True)
        return Answer(content=[Content_Text(told.text)], structured=told.structured, is_error=told.is_error)
