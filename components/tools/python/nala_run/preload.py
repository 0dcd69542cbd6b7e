"""What code can import.

There are no files once the component is made, so a module is there if it was loaded
before. Modules that load others only when they are used are used here.
"""

import gc
import importlib
import sys

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

# Some of them can do little here: they are there for their errors, which tell more than
# that a module is missing.
MODULES = """
    __future__ abc argparse array ast asyncio atexit base64 binascii bisect builtins calendar cmath code codecs
    codeop collections collections.abc colorsys concurrent.futures configparser contextlib contextvars copy copyreg csv
    dataclasses datetime decimal difflib dis doctest email email.message email.mime.text email.parser email.policy
    email.utils enum errno fileinput fnmatch fractions functools gc getopt gettext glob graphlib gzip hashlib heapq
    hmac html html.entities html.parser http http.client http.cookies importlib importlib.metadata
    importlib.resources importlib.util inspect io ipaddress itertools json keyword linecache locale logging marshal
    math mimetypes numbers opcode operator os os.path pathlib pickle pickletools pkgutil platform plistlib pprint queue quopri
    random re reprlib sched secrets select selectors shlex shutil signal socket sqlite3 stat statistics string
    string.templatelib stringprep struct subprocess symtable sys tarfile tempfile textwrap threading time timeit token
    tokenize tomllib traceback tracemalloc types typing unicodedata unittest unittest.mock urllib.error urllib.parse
    urllib.request uuid warnings weakref xml xml.dom.minidom xml.etree.ElementTree xml.sax xml.sax.saxutils zipfile
    zlib zoneinfo
""".split()

# Encodings that texts have, or had.
_ENCODINGS = """
    aliases ascii base64_codec charmap cp1250 cp1251 cp1252 cp437 cp850 hex_codec idna iso8859_1 iso8859_15 iso8859_2
    koi8_r latin_1 mac_roman punycode quopri_codec raw_unicode_escape rot_13 unicode_escape utf_16 utf_16_be
    utf_16_le utf_32 utf_32_be utf_32_le utf_7 utf_8 utf_8_sig zlib_codec
""".split()

# Modules that others load late, and that code does not name.
_INNER = "_compat_pickle _pylong _strptime annotationlib compression.zlib ntpath opcode posixpath".split()

# Code that has the interpreter load what else it loads late: for tracebacks of each kind,
# for warnings, and within modules. None may open a socket: handles of the host's would be
# kept that calls do not have.
_SAMPLES = (
    "import datetime; datetime.datetime.strptime('1', '%H').strftime('%c'); datetime.date.fromisoformat('2000-01-01')",
    "import time; time.strptime('1', '%H'); time.localtime()",
    "print(",
    "if 1:\nprint()",
    "prin(1)",
    "import maths",
    "import json; json.dump_s",
    "input()",
    "open('x')",
    "raise ExceptionGroup('x', [ValueError(1)]) from KeyError(2)",
    "try:\n    1 / 0\nexcept ZeroDivisionError:\n    [][1]",
    "import warnings; warnings.warn('x'); '\\d'",
    "def f(): f()\nf()",
    "import dataclasses, typing, enum\n"
    "@dataclasses.dataclass(frozen=True, order=True)\nclass A:\n    x: 'int' = 1\n"
    "typing.get_type_hints(A), enum.Flag('F', 'A B'), dataclasses.asdict(A())",
    "import inspect; inspect.signature(print), inspect.getsource(inspect)",
    "import pprint, decimal, fractions; pprint.pformat({1: [decimal.Decimal(1), fractions.Fraction(1, 3)]})",
    "import sqlite3; sqlite3.connect(':memory:').execute('select 1').fetchall()",
    "import uuid, secrets; uuid.uuid4(), secrets.token_hex()",
    "import logging; logging.warning('x'); logging.getLogger().handlers.clear()",
    "import csv, io; list(csv.DictReader(io.StringIO('a,b\\n1,2'))), csv.Sniffer().sniff('a;b\\n1;2')",
    "import xml.etree.ElementTree as E; E.tostring(E.fromstring('<a>1</a>'))",
    "import pickle; pickle.loads(pickle.dumps({1: 2}))",
    "import re; re.compile('(?P<a>x)|[a-z]+').findall('axb')",
    "import asyncio\nasync def f(): await asyncio.sleep(0)\nasyncio.run(f())",
    "import subprocess; subprocess.run(['ls'])",
    "import threading; threading.Thread(target=print).start()",
    "import statistics; statistics.NormalDist(0, 1).cdf(1), statistics.linear_regression([1, 2], [1, 2])",
    "10 ** 5000 // 3 ** 20, int('7' * 5000)",
    "import zoneinfo; zoneinfo.ZoneInfo('UTC')",
    "help(print)",
    "f'{1.5:,.2f}', 'x'.encode('idna'), '\\N{BULLET}'",
)


def warm() -> None:
    """Loads all that can be imported. Called once, while there are files."""
    for name in (*MODULES, *_INNER):
        importlib.import_module(name)
    for name in _ENCODINGS:
        importlib.import_module(f"encodings.{name}")
    # That needs what is here to tell of failures.
    from . import loop, run, tell

    loop.make_default()
    for sample in _SAMPLES:
        tell.tell(run.run(sample, {}))
    gc.collect()
    # None of it becomes garbage, and looking at it would copy its pages for each call.
    gc.freeze()
