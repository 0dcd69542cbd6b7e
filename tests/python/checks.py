"""What the scripts here share: the server under test, its model, and how checks are run.

Each script asks a running server, whose URL is in NALA_URL, by an official client. A
check is a function without arguments that asserts. All of a script's checks are run,
so that one run tells everything that is wrong.
"""

import os
import sys
import traceback

URL = os.environ["NALA_URL"]
FRANCE = "What is the capital of France? Answer with one word."
QUESTION = [{"role": "user", "content": FRANCE}]


def run(*checks):
    """Runs the checks; prints `ok` if all hold, else what failed, and ends with 1."""
    failed = 0
    for check in checks:
        try:
            check()
        except Exception:
            failed += 1
            print(f"{check.__name__} failed:\n{traceback.format_exc()}", file=sys.stderr)
    if failed:
        print(f"{failed} of {len(checks)} checks failed", file=sys.stderr)
        sys.exit(1)
    print("ok")


def refused(kind, ask, **fields):
    """Asserts that `ask()` raises exactly `kind`, whose attributes are `fields`; gives the error."""
    try:
        answer = ask()
    except Exception as error:
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}: {error}"
        for name, wanted in fields.items():
            found = getattr(error, name)
            assert found == wanted, f"{name} is {found!r} instead of {wanted!r}: {error}"
        return error
    raise AssertionError(f"no {kind.__name__}, but {answer!r}")
