//! What templates expect of Python: the second text is what CPython 3.11 and Jinja2
//! 3.1.6 print.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test, its helpers included")]

use chat_template::engine::Program;
use chat_template::source::Source;

fn printed(expression: &str) -> Result<String, chat_template::Error> {
    let text = format!("{{{{ {expression} }}}}");
    let source = Source::of(&text)?;
    let variables =
        serde_json::json!({ "s": "a-b-c", "n": 7, "none": null, "d": { "k": 1.0, "l": "x" }, "l": [1, "2"] });
    Program::compile(&source, 1_764_403_200, None)?.render(&variables).map(|rendered| rendered.text)
}

#[track_caller]
fn all(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        assert_eq!(printed(expression).as_deref(), Ok(*expected), "{expression}");
    }
}

#[test]
fn strings_have_their_methods() {
    all(&[
        ("s.rsplit('-', 1)", "['a-b', 'c']"),
        ("s.rsplit('-')", "['a', 'b', 'c']"),
        ("' a  b '.rsplit()", "['a', 'b']"),
        ("' a  b c '.rsplit(none, 1)", "[' a  b', 'c']"),
        ("''.rsplit('-')", "['']"),
        ("''.rsplit()", "[]"),
        ("s.split('-', 1)", "['a', 'b-c']"),
        ("s.partition('-')", "('a', '-', 'b-c')"),
        ("s.partition('x')", "('a-b-c', '', '')"),
        ("s.partition('c')", "('a-b-', 'c', '')"),
        ("s.rpartition('-')", "('a-b', '-', 'c')"),
        ("s.rpartition('x')", "('', '', 'a-b-c')"),
        ("s.removeprefix('a-')", "b-c"),
        ("s.removeprefix('x')", "a-b-c"),
        ("s.removesuffix('-c')", "a-b"),
        ("'-7'.zfill(4)", "-007"),
        ("'7'.zfill(3)", "007"),
        ("'77'.zfill(1)", "77"),
        ("'é'.ljust(3, '.')", "é.."),
        ("'é'.rjust(3)", "  é"),
        ("'ab'.center(5, '*')", "**ab*"),
        ("'a'.center(4, '*')", "*a**"),
        ("'Ab'.swapcase()", "aB"),
        ("s.index('b')", "2"),
        ("s.rindex('-')", "3"),
        ("s.startswith(('x', 'a'))", "True"),
        ("'{:>4}|{}'.format(1, 'x')", "   1|x"),
        ("s.strip('ac').title()", "-B-"),
        ("s.upper().lower().count('-')", "2"),
    ]);
}

#[test]
fn the_operator_formats() {
    all(&[
        ("'%s' % n", "7"),
        ("'%s-%s' % (n, s)", "7-a-b-c"),
        ("'%05.1f|%x|%5s|%%' % (1.25, 255, 'a')", "001.2|ff|    a|%"),
        ("'%s' % none", "None"),
        ("'%s' % d.k ~ '!'", "1.0!"),
        ("n % 4", "3"),
        ("'<' ~ '%d' % n|abs ~ '>'", "<7>"),
    ]);
}

#[test]
fn values_are_what_python_says_they_are() {
    all(&[
        ("none is iterable", "False"),
        ("missing is iterable", "True"),
        ("s is iterable and d is iterable and l is iterable", "True"),
        ("s is sequence and d is sequence and l is sequence", "True"),
        ("n is sequence or none is sequence", "False"),
        ("(l + [3]) is sequence", "True"),
        ("d", "{'k': 1.0, 'l': 'x'}"),
        ("'' ~ d.k ~ none ~ true ~ missing", "1.0NoneTrue"),
        ("[1e20, 1e-7, 1.0, 100000.5]", "[1e+20, 1e-07, 1.0, 100000.5]"),
        ("'v: ' ~ l", "v: [1, '2']"),
        ("dict(a=1, b='x')", "{'a': 1, 'b': 'x'}"),
        ("namespace(a=1).a", "1"),
        ("'a' 'b'", "ab"),
    ]);
}

#[test]
fn json_is_that_of_python() {
    all(&[
        ("d | tojson", r#"{"k": 1.0, "l": "x"}"#),
        ("{'a': '<&\\'é\\u2028\"\\x7f'} | tojson", "{\"a\": \"<&'é\u{2028}\\\"\u{7f}\"}"),
        ("['é', '🌍'] | tojson(ensure_ascii=true)", r#"["\u00e9", "\ud83c\udf0d"]"#),
        ("d | tojson(indent=2)", "{\n  \"k\": 1.0,\n  \"l\": \"x\"\n}"),
        ("[] | tojson(indent=2)", "[]"),
        ("l | tojson(separators=(',', ':'))", r#"[1,"2"]"#),
        ("{'b': 1, 'a': none} | tojson(sort_keys=true)", r#"{"a": null, "b": 1}"#),
        ("'{\"a\": [1.0]}' | from_json", "{'a': [1.0]}"),
    ]);
}

#[test]
fn lists_change_where_a_template_changes_them() {
    let source = "{% set xs = [1] %}{% set ns = namespace(ids=[]) %}{% for x in [2, 3] %}{% set _ = xs.append(x) %}\
                  {{ ns.ids.append('i' ~ x) or '' }}{% endfor %}{% set _ = xs.extend([4, 5]) %}{% set _ = xs.insert(0, 'a') %}\
                  {{ xs }} {{ xs.pop() }} {{ xs.pop(0) }} {{ xs }} {{ ns.ids.pop(0) }} {{ ns.ids | length }} {{ xs + [9] }}\
                  {{ xs[-1] }}{{ xs[1:] }}{{ 2 in xs }}{{ xs | tojson }}{{ xs is sequence }}";
    let source = Source::of(source).unwrap();
    let rendered = Program::compile(&source, 0, None).unwrap().render(&serde_json::json!({})).unwrap();
    assert_eq!(
        rendered.text,
        "['a', 1, 2, 3, 4, 5] 5 a [1, 2, 3, 4] i2 1 [1, 2, 3, 4, 9]4[2, 3, 4]True[1, 2, 3, 4]True"
    );
}

#[test]
fn the_clock_is_the_one_given() {
    assert_eq!(printed("strftime_now('%d %b %Y')").unwrap(), "29 Nov 2025");
}
