"""What can be tested by any Python. Run with `python -m unittest`, which `cargo xtask test` does too."""

import contextlib
import io
import json
import os
import sys
import unittest

from nala_run import arguments, output, run, tell, value


def told(code, **inputs):
    """What is answered, with this process's own streams and functions as they were."""
    kept = sys.stdout, sys.stderr, sys.stdin, sys.argv, sys.modules["__main__"], os._exit, input
    try:
        return tell.tell(run.run(code, inputs))
    finally:
        sys.stdout, sys.stderr, sys.stdin, sys.argv = kept[:4]
        sys.modules["__main__"], os._exit, run.builtins.input = kept[4:]


def structured(code, **inputs):
    return json.loads(told(code, **inputs).structured)


class Running(unittest.TestCase):
    def test_a_cell_tells_what_it_prints_and_its_last_value(self):
        said = told("print('a')\nimport sys\nsys.stderr.write('b\\n')\nx = 37\nx * 43")
        self.assertEqual((said.text, said.is_error), ("a\nb\n1591", False))
        self.assertEqual(
            json.loads(said.structured),
            {"output": "a\nb\n", "result": "1591", "value": 1591, "error": None, "shortened": False},
        )

    def test_nothing_to_be_seen_is_said(self):
        for code in ("", "x = 1", "None", "# nothing"):
            self.assertIn("printed nothing", told(code).text, code)

    def test_code_is_the_main_program_and_finds_its_inputs(self):
        self.assertEqual(structured("__name__")["value"], "__main__")
        self.assertEqual(structured("sum(inputs['rows'])", rows=[1, 2])["value"], 3)
        code = "import dataclasses, pickle\n@dataclasses.dataclass\nclass A:\n  x: int\npickle.loads(pickle.dumps(A(1)))"
        self.assertEqual(structured(code)["result"], "A(x=1)")

    def test_a_traceback_has_the_lines_of_the_code_and_no_others(self):
        said = told("import json\ndef f():\n    return json.loads('{')\nprint('so far')\nf()")
        self.assertTrue(said.is_error)
        self.assertRegex(said.text, r"(?s)^so far\n.*line 5, in <module>\n    f\(\).*line 3, in f\n.*JSONDecodeError")
        self.assertEqual(said.text.count("File "), 2, said.text)
        chained = told("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e").text
        self.assertIn("ZeroDivisionError", chained)
        self.assertNotIn(".py", chained)
        group = told("raise ExceptionGroup('g', [ValueError(1), KeyError('k')])").text
        self.assertIn("ValueError: 1", group)

    def test_code_that_is_none_is_told_with_its_place(self):
        said = told("print(1)\nprint(")
        self.assertTrue(said.is_error and "line 2" in said.text and "never closed" in said.text, said.text)
        self.assertNotIn("Traceback", said.text)
        for code in ("\0", "'\ud800'", "x = = 1"):
            self.assertTrue(told(code).is_error, ascii(code))

    def test_what_there_is_not_is_told_with_a_hint(self):
        for code, name, hint in [
            ("input('?')", "EOFError", "nobody"),
            ("open('/nowhere')", "FileNotFoundError", "no files"),
            ("import nowhere", "ModuleNotFoundError", "statistics"),
            ("raise MemoryError", "MemoryError", "limited"),
        ]:
            said = told(code)
            self.assertTrue(said.is_error and name in said.text and hint in said.text, said.text)

    def test_an_end_by_exit_is_an_end(self):
        for code in ("import sys\nprint(1)\nsys.exit()", "print(1)\nraise SystemExit(0)", "import os\nprint(1)\nos._exit(0)"):
            self.assertEqual((told(code).text, told(code).is_error), ("1", False), code)
        self.assertEqual((told("exit('no')").text, told("exit('no')").is_error), ("SystemExit: no", True))

    def test_values_that_cannot_be_written_are_failures(self):
        said = told("class A:\n    def __repr__(self):\n        raise ValueError('mine')\nA()")
        self.assertTrue(said.is_error and "ValueError: mine" in said.text, said.text)

    def test_streams_may_be_changed(self):
        for code in (
            "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('é')",
            "import sys\nold = sys.stdout\nsys.stdout = None\nold.write('é\\n')\nNone",
            "import sys\nprint('é')\nsys.stdout.close()",
        ):
            self.assertEqual(told(code).text, "é", code)
        self.assertEqual(told("import sys\nsys.stdout = 5").is_error, False)

    def test_what_is_no_text_is_escaped(self):
        self.assertEqual(told(r"print('\x1b[2J\0\t\ud800|\r\n|\r|')").text, "\\x1b[2J\\x00\t\\ud800|\n|\\r|")
        self.assertEqual(told(r"import sys" "\n" r"_ = sys.stdout.buffer.write(b'\xff\xc3\xa9')").text, "\\xffé")

    def test_each_run_has_its_own_random_numbers(self):
        import random

        random.seed(1)
        first = structured("import random\nrandom.random()")["value"]
        random.seed(1)
        self.assertNotEqual(structured("import random\nrandom.random()")["value"], first)

    def test_long_answers_are_shortened_and_say_so(self):
        said = structured("for n in range(100_000): print(n)")
        self.assertTrue(said["shortened"] and said["output"].startswith("0\n1\n") and said["output"].endswith("\n99999\n"))
        self.assertRegex(said["output"], r"\n\[\.\.\. \d+ bytes left out \.\.\.\]\n")
        said = structured("'a' * 100_000")
        self.assertTrue(said["shortened"] and len(said["result"]) < 20_000, said["result"][:100])
        self.assertFalse(structured("'a' * 15_000")["shortened"])
        self.assertLess(len(told("raise ValueError('a' * 100_000)").text), 10_000)


class Printing(unittest.TestCase):
    def test_the_beginning_and_the_end_are_kept_however_it_is_written(self):
        data = bytes(range(97, 123)) * 40
        for step in (1, 7, 100, len(data)):
            kept = output.Output(30, 20)
            for at in range(0, len(data), step):
                self.assertEqual(kept.write(data[at : at + step]), len(data[at : at + step]))
            gone = f"\n[... {len(data) - 50} bytes left out ...]\n"
            self.assertEqual(kept.text(), (data[:30].decode() + gone + data[-20:].decode(), True))

    def test_what_fits_is_whole(self):
        kept = output.Output(3, 2)
        kept.write(b"abcd")
        self.assertEqual(kept.text(), ("abcd", False))
        kept.write(b"e")
        self.assertEqual(kept.text(), ("abcde", False))

    def test_characters_are_not_cut_in_two(self):
        kept = output.Output(3, 3)
        kept.write("ééééé".encode())
        self.assertEqual(kept.text()[0], "é\n[... 4 bytes left out ...]\né")


class Values(unittest.TestCase):
    def test_what_json_says_exactly_is_said(self):
        for it in (None, True, 5, -(2**53), 1.5, "é", [1, [2]], {"a": {"b": []}}):
            self.assertEqual(value.as_json(it), it)
        self.assertEqual(value.as_json((1, 2)), [1, 2])

    def test_the_rest_is_left_out(self):
        class Own(int):
            pass

        endless = []
        endless.append(endless)
        for it in (2**53 + 1, float("nan"), {1: 2}, {1}, b"a", "\ud800", Own(1), [Own(1)], endless, [0] * 20_000, "a" * 200_000):
            self.assertIs(value.as_json(it), value.ABSENT)


class Asking(unittest.TestCase):
    def test_arguments_are_read(self):
        asked = arguments.read('{"code": "1", "inputs": {"a": [1]}}')
        self.assertEqual((asked.code, asked.inputs), ("1", {"a": [1]}))
        self.assertEqual(arguments.read('{"code": "1", "inputs": null}').inputs, {})

    def test_mistakes_are_told(self):
        for text, why in [
            ("{", "no JSON"),
            ("[]", "no JSON object"),
            ("{}", "`code`"),
            ('{"code": 1}', "string"),
            ('{"code": "1", "inputs": []}', "object"),
            ('{"code": "1", "input": {}}', "'input'"),
            ('{"code": "1", "inputs": ' + "[" * 200_000, "nested"),
        ]:
            with contextlib.redirect_stdout(io.StringIO()), self.assertRaisesRegex(arguments.Invalid, why):
                arguments.read(text)


if __name__ == "__main__":
    unittest.main()
