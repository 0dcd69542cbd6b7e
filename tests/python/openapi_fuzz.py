"""Sends requests made from the server's own OpenAPI document, good ones and bad ones.

    NALA_URL=http://127.0.0.1:3000 python openapi_fuzz.py [REQUESTS] [SEED]

Fails on a 5xx other than 503 and on answers that the document does not describe: their
status, content type, headers or schema. REQUESTS (20000 if not given) is about how many
are sent; SEED makes a run again. `cargo xtask setup --tests` installs schemathesis.

Bodies are changed before they are sent. Requests that would have a model opened name one
that is there, as a random name only ever gets a 404. Those that would generate say that
they want few tokens, so that they end soon. And in every other one parameters are put
right that random values hardly ever are: those that contradict each other, and texts of
grammars. Else almost nothing would be generated.
"""

import atexit
import collections
import itertools
import json
import math
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

URL = os.environ.get("NALA_URL", "http://127.0.0.1:3000")
FEW = 4
# At once. More than the server serves at once only make it slower.
WORKERS = os.environ.get("NALA_FUZZ_WORKERS", "4")
# The name of the longest answer, by route.
LENGTHS = {
    "/v1/chat/completions": "max_tokens",
    "/v1/completions": "max_tokens",
    "/v1/responses": "max_output_tokens",
    "/v1/messages": "max_tokens",
}
# First each bound and each kind of mistake once, about 3000 that are not counted in
# REQUESTS; then random ones.
PHASES = os.environ.get("NALA_FUZZ_PHASES", "coverage,fuzzing")
CHECKS = [
    "no_failure_of_the_server",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
]


def fetch(path):
    with urllib.request.urlopen(URL + path, timeout=60) as answer:
        return json.load(answer)


def run(requests, seed):
    """Has schemathesis read this very file for its hooks."""
    operations = sum(len(item) for item in fetch("/openapi.json")["paths"].values())
    here = Path(__file__).resolve()
    environment = dict(os.environ, SCHEMATHESIS_HOOKS=here.stem, NALA_URL=URL)
    environment["PYTHONPATH"] = os.pathsep.join([str(here.parent), environment.get("PYTHONPATH", "")])
    command = ["schemathesis", "run", URL + "/openapi.json", "--checks", ",".join(CHECKS)]
    command += ["--phases", PHASES, "--mode", "all", "--continue-on-failure", "--workers", WORKERS]
    command += ["--max-examples", str(math.ceil(requests / operations)), "--request-timeout", "120"]
    command += ["--suppress-health-check", "all", "--warnings", "off", "--no-shrink", "--seed", str(seed)]
    beside = Path(sys.executable).parent / "schemathesis"
    if beside.exists():
        command[0] = str(beside)
    sys.exit(subprocess.run(command, env=environment, cwd=here.parent).returncode)


def install():
    """The hooks, where schemathesis has imported this file."""
    import schemathesis

    model = fetch("/v1/models")["data"][0]["id"]
    statuses = collections.Counter()
    turns = itertools.count()

    @schemathesis.hook
    def before_call(context, case, kwargs):
        body = case.body
        if isinstance(body, dict) and case.method.upper() == "POST":
            if isinstance(body.get("model"), str):
                body["model"] = model
            if next(turns) % 2:
                put_right(body)
            name = LENGTHS.get(case.path)
            # What is no number stays: it is refused before anything is generated.
            if name and (body.get(name) is None or is_count(body[name])):
                body[name] = FEW
            if name and is_count(body.get("max_completion_tokens")):
                body["max_completion_tokens"] = FEW

    @schemathesis.hook
    def after_call(context, case, response):
        statuses[response.status_code] += 1

    @schemathesis.check
    def no_failure_of_the_server(context, response, case):
        if response.status_code >= 500 and response.status_code != 503:
            raise AssertionError(f"the server failed with {response.status_code}: {response.text[:500]}")

    @atexit.register
    def say():
        by_status = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
        print(f"{sum(statuses.values())} requests: {by_status}")


def put_right(body):
    """Makes parameters agree that a schema cannot hold together."""
    forms = [name for name in ("response_format", "grammar", "json_schema") if body.get(name) is not None]
    for name in forms[1:]:
        del body[name]
    if isinstance(body.get("grammar"), str):
        body["grammar"] = 'root ::= [a-z]+ | "yes"'
    if forms and isinstance(body.get("tools"), list):
        body["tool_choice"] = "none"
    if not body.get("tools"):
        body.pop("tool_choice", None)
    if body.get("stream") is not True:
        body.pop("stream_options", None)
    if body.get("logprobs") is not True:
        body.pop("top_logprobs", None)
    if body.get("logprobs") is not None:
        body.pop("echo", None)
    if body.get("n") is None or body.get("best_of") != body.get("n"):
        body.pop("best_of", None)
    if isinstance(body.get("prompt"), list) and len(body["prompt"]) > 1:
        body.pop("n", None)
        body.pop("best_of", None)
    if isinstance(body.get("dry_sequence_breakers"), list):
        body["dry_sequence_breakers"] = ["\n"]
    for name in ("max_completion_tokens", "continue_final_message", "chat_template_kwargs"):
        body.pop(name, None)


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 20000, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
else:
    install()
