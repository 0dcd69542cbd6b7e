"""Sends requests made from the server's own OpenAPI document, good ones and bad ones.

    NALA_URL=http://127.0.0.1:3000 python openapi_fuzz.py [REQUESTS] [SEED]

Fails on a 5xx other than 503 and on answers that the document does not describe: their
status, content type, headers or schema. REQUESTS (20000 if not given) is about how many
are sent; SEED makes a run again. `pip install schemathesis` beforehand.

Bodies are changed in two ways before they are sent. Requests that would have a model
opened name one that is there, as a random name only ever gets a 404; and those that
would generate say that they want few tokens, so that they end soon.
"""

import atexit
import collections
import json
import math
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

URL = os.environ.get("NALA_URL", "http://127.0.0.1:3000")
FEW = 4
# The name of the longest answer, by route.
LENGTHS = {
    "/v1/chat/completions": "max_tokens",
    "/v1/completions": "max_tokens",
    "/v1/responses": "max_output_tokens",
    "/v1/messages": "max_tokens",
}
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
    # Mistakes that are made on purpose, once each, come first and are not counted.
    command = ["schemathesis", "run", URL + "/openapi.json", "--checks", ",".join(CHECKS)]
    command += ["--phases", "coverage,fuzzing", "--mode", "all", "--continue-on-failure", "--workers", "4"]
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

    @schemathesis.hook
    def before_call(context, case, kwargs):
        body = case.body
        if isinstance(body, dict) and case.method.upper() == "POST":
            if isinstance(body.get("model"), str):
                body["model"] = model
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


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 20000, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
else:
    install()
