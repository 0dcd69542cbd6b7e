#!/usr/bin/env python3
"""Lists the control tokens that tests/injection.rs puts into conversations.

    python3 goldens/tokens.py MODEL.gguf…

reads the control tokens of the models' vocabularies and, from corpus/ and
templates/, whatever looks like one in a template, and writes tokens.json.
"""

import json
import pathlib
import re
import struct
import sys

HERE = pathlib.Path(__file__).parent
CONTROL = 3  # of ggml's kinds of tokens
SIMPLE = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# What stands between these is a token in one family or another.
LIKE_A_TOKEN = re.compile(r"<\|[^|<>\s'\"]+\|>|<｜[^｜<>\s'\"]+｜>|</?[a-z_]+>|\[/?[A-Z_]{3,}\]|<[a-z]+_of_[a-z]+>")


def metadata(path):
    """The metadata of a GGUF file, see ggml's docs/gguf.md."""
    with open(path, "rb") as file:

        def read(form):
            return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))[0]

        def string():
            return file.read(read("Q")).decode("utf-8", "replace")

        def value(kind):
            if kind == 8:
                return string()
            if kind == 9:
                of, count = read("I"), read("Q")
                return [value(of) for _ in range(count)]
            return read(SIMPLE[kind])

        assert file.read(4) == b"GGUF", f"{path} is no GGUF file"
        read("I"), read("Q")
        pairs = read("Q")
        return {string(): value(read("I")) for _ in range(pairs)}


def shortened(tokens):
    """Tokens that differ in a number alone, 0 and up, as a pattern and how many."""
    patterns = {}
    for token in tokens:
        patterns.setdefault(re.sub(r"\d+", "{}", token), []).append(token)
    numbered = {}
    for pattern, found in patterns.items():
        if len(found) > 100 and found == [pattern.format(number) for number in range(len(found))]:
            numbered[pattern] = len(found)
    plain = [token for token in tokens if re.sub(r"\d+", "{}", token) not in numbered]
    return {"tokens": plain, "numbered": numbered}


def main():
    models = {}
    for path in sys.argv[1:]:
        data = metadata(path)
        kinds = data["tokenizer.ggml.token_type"]
        tokens = [token for token, kind in zip(data["tokenizer.ggml.tokens"], kinds) if kind == CONTROL]
        models[pathlib.Path(path).stem] = shortened(tokens)
    found = set()
    for folder in ("corpus", "templates"):
        for path in (HERE / folder).glob("*.jinja"):
            found.update(LIKE_A_TOKEN.findall(path.read_bytes().decode()))
    text = json.dumps({"models": models, "templates": sorted(found)}, indent=1, ensure_ascii=False)
    (HERE / "tokens.json").write_text(text + "\n")
    print(f"{len(models)} models, {len(found)} tokens of templates")


if __name__ == "__main__":
    main()
