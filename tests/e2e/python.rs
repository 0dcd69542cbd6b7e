//! The tool that runs Python, asked by the Model Context Protocol as models ask it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nala_e2e::guests;
use nala_e2e::host::Host;
use nala_e2e::keys::key;
use nala_e2e::paths;
use serde_json::{Value, json};

const MANIFEST: &str = r#"
spin_manifest_version = 2
[application]
name = "lab"
[[trigger.http]]
route = "/mcp"
component = "mcp"

[component.mcp]
source = "nala:mcp"
[component.mcp.tool.nala]
tools = ["python", "calculator"]

[component.python]
source = "tool_python.wasm"
[component.python.tool.nala.limits]
cpu = "2s"
memory = "128MiB"

[component.calculator]
source = "tool_calculator.wasm"
"#;

fn write(folder: &Path) {
    fs::copy(guests::python(), folder.join("tool_python.wasm")).unwrap();
    fs::copy(guests::guest("components", "tool_calculator"), folder.join("tool_calculator.wasm")).unwrap();
    fs::write(folder.join("spin.toml"), MANIFEST).unwrap();
}

/// Calls a tool for whose key it is, and gives the result.
fn call(host: &Host, key: &str, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let request = ureq::post(host.url("/mcp")).config().http_status_as_error(false).build();
    let response = request
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("x-api-key", key)
        .send(message)
        .unwrap();
    let text = response.into_body().read_to_string().unwrap();
    let answer = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
    let mut answer: Value = serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].take()
}

fn run(host: &Host, code: &str) -> Value {
    call(host, "", "run_python", json!({ "code": code }))
}

/// What a model reads, and whether it was a failure.
fn told(result: &Value) -> (&str, bool) {
    (result["content"][0]["text"].as_str().unwrap(), result["isError"] == true)
}

#[test]
fn its_python_holds_by_itself() {
    let output = Command::new(paths::python())
        .args(["-m", "unittest"])
        .current_dir(paths::root().join("components/tools/python"))
        // Nothing is written into the checkout.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("Ran ") && !said.contains("Ran 0 "), "{said}");
}

/// Code, what it answers, in parts of it, and whether that is a failure.
const CASES: &[(&str, &[&str], bool)] = &[
    ("37 * 43", &["1591"], false),
    ("print('a')\nx = [n ** 2 for n in range(4)]\nx", &["a\n[0, 1, 4, 9]"], false),
    ("1 / 0", &["<code>", "line 1", "ZeroDivisionError"], true),
    ("print('so far')\nimport json\njson.loads('{')", &["so far\n", "line 3", "JSONDecodeError"], true),
    ("def f(:", &["SyntaxError"], true),
    ("import sys\nprint(1)\nsys.exit()", &["1"], false),
    ("import os\nprint(2)\nos._exit(3)", &["2\nSystemExit: 3"], true),
    ("input('name? ')", &["EOFError", "nobody"], true),
    ("def f(): return f()\nf()", &["RecursionError"], true),
    ("'a' * 10 ** 10", &["Error"], true),
    ("x = []\nwhile True: x.append('a' * 10 ** 6)", &["MemoryError", "limited"], true),
    ("import numpy", &["No module named 'numpy'", "statistics"], true),
    // Nothing of the machine is there.
    ("open('/etc/passwd').read()", &["Error", "no files"], true),
    ("open('x', 'w')", &["Error", "no files"], true),
    ("import os\nos.listdir('/')", &["Error", "no files"], true),
    ("import os\ndict(os.environ)", &["{}"], false),
    ("import os\nos.system('ls')", &["has no attribute 'system'"], true),
    ("import subprocess\nsubprocess.run(['ls'])", &["Error", "no other programs"], true),
    ("import socket\nsocket.create_connection(('127.0.0.1', 80))", &["socket.", "no network"], true),
    ("import urllib.request\nurllib.request.urlopen('http://127.0.0.1/')", &["Error", "no network"], true),
    ("import ctypes", &["No module named"], true),
    ("import threading\nthreading.Thread(target=print).start()", &["one thread"], true),
    // What has to be there, though nothing can be loaded any more.
    (
        "from datetime import datetime\ndatetime.strptime('2024-02-29', '%Y-%m-%d').strftime('%A')",
        &["'Thursday'"],
        false,
    ),
    ("from decimal import Decimal\nDecimal('0.1') + Decimal('0.2')", &["Decimal('0.3')"], false),
    ("import hashlib\nhashlib.sha256(b'').hexdigest()[:8]", &["'e3b0c442'"], false),
    ("import sqlite3\nsqlite3.connect(':memory:').execute('select 6 * 7').fetchone()", &["(42,)"], false),
    ("import statistics, collections, re, csv, io, zlib, xml.etree.ElementTree, tomllib, uuid\n'ok'", &["'ok'"], false),
    ("import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 7\nasyncio.run(f())", &["7"], false),
    (
        "import functools\n@functools.cache\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nf(300) % 1000",
        &["600"],
        false,
    ),
    ("import time\n(2026 <= time.gmtime().tm_year < 2100, time.perf_counter() >= 0)", &["(True, True)"], false),
    ("import math\nlen(str(math.factorial(3000)))", &["9131"], false),
    // What tries to be no answer.
    ("print('\\x1b[2J\\ud800')", &["\\x1b[2J\\ud800"], false),
    ("import sys\nsys.stdout.buffer.write(b'\\xff')\nNone", &["\\xff"], false),
    ("import sys\nsys.stdout = sys.stderr = None\n5", &["5"], false),
    ("import builtins\nbuiltins.len = builtins.isinstance = builtins.type = None", &["printed nothing"], false),
    ("import json\njson.dumps = None", &["changed"], true),
    ("for n in range(10 ** 5): print(n)", &["0\n1\n", "left out", "99999"], false),
];

#[test]
fn code_is_run_and_what_comes_of_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let host = Host::application(folder.path(), &[]);
    let mut wrong = Vec::new();
    for (code, parts, fails) in CASES {
        let result = run(&host, code);
        let (text, failed) = told(&result);
        if failed != *fails || !parts.iter().all(|part| text.contains(part)) {
            wrong.push(format!("{code}\n  {text}\n  {failed}, and not {parts:?} {fails}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));

    let answer =
        call(&host, "", "run_python", json!({ "code": "print('x')\nsum(inputs['n'])", "inputs": { "n": [1, 2] } }));
    let structured = json!({ "output": "x\n", "result": "3", "value": 3, "error": null, "shortened": false });
    assert_eq!(answer["structuredContent"], structured, "{answer}");
    for (arguments, why) in
        [(json!({}), "`code`"), (json!({ "code": 5 }), "string"), (json!({ "code": "1", "x": 1 }), "'x'")]
    {
        let answer = call(&host, "", "run_python", arguments);
        assert!(told(&answer).0.contains(why) && told(&answer).1, "{answer}");
    }

    // Nothing is left of a call in the next one, and no two have the same random numbers,
    // though all begin as copies of one interpreter.
    assert_eq!(told(&run(&host, "import math\nmath.kept = 1\nmath.kept")), ("1", false));
    assert!(told(&run(&host, "import math\nmath.kept")).1);
    let code = "import random, uuid, secrets\n(random.random(), str(uuid.uuid4()), secrets.token_hex(8))";
    let numbers = [(); 2].map(|()| run(&host, code)["structuredContent"]["value"].clone());
    for n in 0..3 {
        assert!(numbers[0][n] != numbers[1][n] && !numbers[0][n].is_null(), "{numbers:?}");
    }
}

/// Code that takes all that it can get, and how it ends.
const GREEDY: &[(&str, &[&str])] = &[
    ("while True: pass", &["CPU time"]),
    ("while True: print('x' * 1000)", &["CPU time"]),
    ("9 ** 9 ** 9 % 7", &["CPU time", "MemoryError"]),
    ("import re\nre.match('(a+)+$', 'a' * 40 + 'b')", &["CPU time"]),
    ("x = [0]\nwhile True: x += x", &["MemoryError"]),
    (
        "def f(n): return [f(n + 1), f(n + 1)]\nimport sys\nsys.setrecursionlimit(10 ** 9)\nf(0)",
        &["MemoryError", "memory"],
    ),
    // These would end the process of another Python.
    ("eval('-' * 10 ** 5 + '1')", &["Error", "trapped"]),
    (
        "import sys\nsys.setrecursionlimit(10 ** 9)\nx = []\nfor n in range(10 ** 6): x = [x]\nrepr(x)",
        &["Error", "trapped"],
    ),
    ("import os\nos.abort()", &["trapped"]),
    ("import types\nexec((lambda: 0).__code__.replace(co_code=b'\\xff' * 64))", &["Error", "trapped"]),
];

#[test]
fn code_that_takes_all_it_can_ends_by_its_limits_and_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let keys = [key(), key()];
    let tenant = |n: usize| format!("[tenant.{}]\nkeys = [\"{}\"]\n", ["greedy", "other"][n], keys[n].1);
    let config = folder.path().join("nala.toml");
    fs::write(&config, tenant(0) + &tenant(1)).unwrap();
    let host = Host::application(folder.path(), &["--config".as_ref(), config.as_os_str()]);
    for (code, ends) in GREEDY {
        std::thread::scope(|scope| {
            let began = Instant::now();
            let greedy = scope.spawn(|| call(&host, &keys[0].0, "run_python", json!({ "code": code })));
            let mut served = 0;
            while !greedy.is_finished() || served == 0 {
                let answer = call(&host, &keys[1].0, "calculate", json!({ "expression": "37 * 43" }));
                assert_eq!(answer["structuredContent"]["result"], "1591", "{code}: {answer}");
                served += 1;
                // Not as many as a tenant may make in a minute.
                std::thread::sleep(Duration::from_millis(20));
            }
            let result = greedy.join().unwrap();
            let (text, failed) = told(&result);
            assert!(failed && ends.iter().any(|end| text.contains(end)), "{code}: {result}");
            assert!(began.elapsed().as_secs() < 60, "{code}: {:?}", began.elapsed());
        });
    }
    let answer = call(&host, &keys[0].0, "run_python", json!({ "code": "37 * 43" }));
    assert_eq!(told(&answer), ("1591", false));
}

#[test]
fn an_instance_is_kept_by_its_key_where_the_manifest_says_so() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let limits = "[component.python.tool.nala.limits]";
    let keyed = "[component.python.tool.nala]\nkeyed = { by = \"session\", idle = \"2s\", most = 2 }\n";
    fs::write(folder.path().join("spin.toml"), MANIFEST.replace(limits, &format!("{keyed}{limits}"))).unwrap();
    let host = Host::application(folder.path(), &[]);
    let run = |session: &str, code: &str| {
        let result = call(&host, "", "run_python", json!({ "code": code, "session": session }));
        let (text, is_error) = told(&result);
        (text.to_owned(), is_error)
    };
    let keep = "import builtins\nbuiltins.kept = 41";
    assert!(!run("a", keep).1);
    assert_eq!(run("a", "kept + 1"), ("42".to_owned(), false));
    assert_eq!(run("a", "kept + 2"), ("43".to_owned(), false));
    assert!(run("b", "kept").0.contains("NameError"), "another key is another instance");
    let without = call(&host, "", "run_python", json!({ "code": "kept" }));
    assert!(told(&without).0.contains("NameError"), "without a key nothing is kept: {without}");
    // Each call has its own time, and one that uses it up ends the instance.
    for _ in 0..3 {
        assert!(!run("a", "n = 0\nfor i in range(2_000_000): n += i\nn").1, "time does not add up");
    }
    assert!(run("a", "while True: pass").1);
    assert!(run("a", "kept").0.contains("NameError"), "what ran into a limit begins anew");
    // A third one takes the place of the one that was not called for longest.
    for session in ["a", "b", "c"] {
        assert!(!run(session, keep).1);
    }
    assert_eq!(run("c", "kept"), ("41".to_owned(), false));
    assert_eq!(run("b", "kept"), ("41".to_owned(), false));
    assert!(run("a", "kept").0.contains("NameError"));
    // And nobody's is kept for ever.
    std::thread::sleep(Duration::from_secs(4));
    assert!(run("c", "kept").0.contains("NameError"));
    let wrong = call(&host, "", "run_python", json!({ "code": "1", "session": 1 }));
    assert!(told(&wrong).1 && told(&wrong).0.contains("session"), "{wrong}");
}
