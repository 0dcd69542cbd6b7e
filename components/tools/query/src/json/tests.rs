//! What queries give, and what they may not do.

use serde_json::{Value, json};

use super::*;

fn ask(arguments: &Value) -> Answer {
    super::call(&arguments.to_string()).unwrap()
}

fn full(query: &str, data: &Value) -> Value {
    let answer = ask(&json!({"query": query, "data": data}));
    assert!(!answer.is_error, "{query}: {answer:?}");
    serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap()
}

fn given(query: &str, data: &Value) -> Value {
    full(query, data)["outputs"].clone()
}

fn error(arguments: &Value) -> String {
    let answer = ask(arguments);
    assert!(answer.is_error && answer.structured.is_none(), "{answer:?}");
    match answer.content.as_slice() {
        [nala_sdk::tools::Content::Text(text)] => text.clone(),
        other => panic!("{other:?}"),
    }
}

fn refused(query: &str) -> String {
    error(&json!({"query": query, "data": null}))
}

fn shop() -> Value {
    json!({"items": [
        {"name": "bread", "price": 3.5, "tags": ["food"]},
        {"name": "a \"good\" pen", "price": 1, "tags": []},
        {"name": "crème 🍮", "price": 12, "tags": ["food", "sweet"]},
    ]})
}

#[test]
fn queries_give_what_jq_gives() {
    let table = [
        (".items[] | select(.price > 3) | .name", json!(["bread", "crème 🍮"])),
        (".items | map(.price) | add", json!([16.5])),
        (".items | length", json!([3])),
        ("[.items[].tags[]] | group_by(.) | map({(.[0]): length}) | add", json!([{"food": 2, "sweet": 1}])),
        (".items | sort_by(-.price)[0].name", json!(["crème 🍮"])),
        (".items[0] | to_entries | map(.key)", json!([["name", "price", "tags"]])),
        (".items[0] | keys, has(\"name\")", json!([["name", "price", "tags"], true])),
        ("[.items[].name | test(\"^[a-c]\")]", json!([[true, true, true]])),
        ("[limit(3; repeat(1))]", json!([[1, 1, 1]])),
        ("first(.items[].name), last(.items[].name)", json!(["bread", "crème 🍮"])),
        (".items[1] | [.name, .price, null, true] | @csv", json!(["\"a \"\"good\"\" pen\",1,,true"])),
        ("[\"a\\tb\", \"c\\\\d\", 1] | @tsv", json!(["a\\tb\tc\\\\d\t1"])),
        ("\"<\\(1 + 1)>\" | @html, @uri, @base64", json!(["&lt;2&gt;", "%3C2%3E", "PDI+"])),
        ("INDEX(.items[]; .name) | keys | length", json!([3])),
        ("IN(.items[0].name, 1; \"bread\")", json!([true])),
        ("[paths(type == \"number\")] | length", json!([3])),
        ("del(.items[].tags) | .items[0]", json!([{"name": "bread", "price": 3.5}])),
        ("\"2026-03-01T00:00:00Z\" | fromdate | strftime(\"%A\")", json!(["Sunday"])),
        ("reduce .items[] as {price: $p} (0; . + $p)", json!([16.5])),
        ("try error(\"x\") catch .", json!(["x"])),
        (".nothing, .items[9], (.items[0].name | ascii_upcase)", json!([null, null, "BREAD"])),
        ("6 / 2, 7 / 2, 1e3, -0.5", json!([3, 3.5, 1e3, -0.5])),
        ("\" a \" | trim, ltrimstr(\" \"), trimstr(\" \")", json!(["a", "a ", "a"])),
        ("65 | ascii, toarray", json!(["A", [65]])),
        ("1, halt, 2", json!([1])),
        ("empty", json!([])),
    ];
    for (query, outputs) in table {
        assert_eq!(given(query, &shop()), outputs, "{query}");
    }
}

#[test]
fn json_comes_as_text_too() {
    let answer = ask(&json!({"query": ".[1]", "json": "\u{feff} [1, \"a\\u0000\\\"\"] "}));
    let outputs: Value = serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap();
    assert_eq!(outputs, json!({"outputs": ["a\0\""], "truncated": false}));
    assert_eq!(given(".", &Value::Null), json!([null]));
}

#[test]
fn numbers_keep_their_digits() {
    let digits = "[0.1000000000000000055511151231257827, 123456789012345678901234567890, 1.50]";
    let arguments = format!("{{\"query\": \".\", \"data\": {digits}}}");
    let answer = super::call(&arguments).unwrap().structured.unwrap();
    assert!(answer.contains(&digits.replace(' ', "")), "{answer}");
}

#[test]
fn what_json_cannot_hold_is_given_as_jq_gives_it() {
    let max = f64::MAX;
    let table = [
        ("nan, infinite, -infinite", json!([null, max, -max])),
        ("[range(400)] | reduce .[] as $_ (1; . * 10)", json!([max])),
        ("1e999", json!([max])),
        ("\"01.5\" | fromjson", json!([1.5])),
        ("{(1, null): 2}", json!([{"1": 2}, {"null": 2}])),
        ("[255] | tobytes", json!(["\u{fffd}"])),
    ];
    for (query, outputs) in table {
        assert_eq!(given(query, &Value::Null), outputs, "{query}");
    }
}

#[test]
fn what_is_no_json_is_told_with_its_place() {
    let table = [
        ("", "line 1 column 0"),
        ("{\"a\": 1,\n \"b\": }", "line 2 column 7"),
        ("[1] [2]", "trailing characters at line 1 column 5"),
        ("[NaN]", "line 1 column 2"),
        ("# note\n1", "line 1 column 1"),
        ("\"\0\"", "line 1 column 1"),
        ("\"open", "EOF"),
    ];
    for (text, why) in table {
        let error = error(&json!({"query": ".", "json": text}));
        assert!(error.starts_with("`json` is no JSON: ") && error.contains(why), "{text:?}: {error}");
    }
    assert!(error(&json!({"query": "."})).contains("give the JSON"));
    assert!(error(&json!({"query": ".", "json": "1", "data": null})).contains("not both"));
}

#[test]
fn what_is_no_query_is_told_with_its_place() {
    let table = [
        ("", "it ends where there should be term"),
        (".a | (", "should be"),
        ("\"é\" ]", "at character 5 there should be"),
        (".a b", "at character 4"),
        ("\"open", "closing quote"),
        (". | \0", "at character 5 there should be token, not `\\u{0}`"),
        ("nothing_like_it", "there is no filter `nothing_like_it`"),
        ("map(.; .)", "there is no filter `map` of 2 arguments"),
        ("$x", "there is no variable `$x`"),
        ("break $out", "there is no label `$out`"),
        ("a::b", "there is no module `a`"),
        ("import \"a\" as a; .", "cannot import"),
        ("import \"a\" as $a; $a", "cannot import"),
        ("include \"a\"; .", "cannot import"),
    ];
    for (query, why) in table {
        let error = refused(query);
        assert!(error.contains(why), "{query:?}: {error}");
    }
}

#[test]
fn a_query_is_told_nothing_of_where_it_runs() {
    for query in ["env", "$ENV", "localtime", "strflocaltime(\"%c\")", "input", "inputs", "input_filename"] {
        assert!(refused(query).starts_with("there is no "), "{query}");
    }
}

#[test]
fn a_query_that_fails_is_told() {
    assert_eq!(refused("error(\"why\")"), "the query fails: why");
    assert_eq!(refused("1, 2, error(\"why\")"), "the query fails after 2 outputs: why");
    assert_eq!(refused("halt_error"), "the query fails: it halts with code 5");
    assert!(error(&json!({"query": ".a", "data": [1]})).contains("cannot index [1] with \"a\""));
    assert!(refused("error(\"x\" * 100000)").len() < 500);
}

#[test]
fn outputs_without_end_are_cut() {
    for query in
        ["repeat(1)", "range(1e18)", "range(0; infinite)", "def f: 1, f; f", "recurse(. + 1)", "1 | while(true; .)"]
    {
        let answer = full(query, &json!(0));
        assert_eq!(answer["outputs"].as_array().unwrap().len(), 1000, "{query}");
        assert_eq!(answer["truncated"], true);
        assert!(answer["note"].as_str().unwrap().contains("1000 outputs"));
    }
    assert_eq!(full("range(1000)", &Value::Null)["truncated"], false);
}

#[test]
fn outputs_that_are_large_are_cut() {
    let answer = full("repeat(\"x\" * 100000)", &Value::Null);
    assert_eq!(answer["outputs"].as_array().unwrap().len(), 2);
    assert!(answer["note"].as_str().unwrap().contains("more than 2 outputs"));
    for query in ["\"x\" * 300000", "[range(100000)]", "{(\"x\" * 300000): 1}", "[range(90000) | \"\"]"] {
        assert!(refused(query).contains("larger than 256 KiB"), "{query}");
    }
}

#[test]
fn what_nests_too_deep_is_refused() {
    let nested = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    let read = |json: &str| super::call(&json!({"query": ".", "json": json}).to_string()).unwrap();
    assert!(!read(&nested(100)).is_error);
    for n in [101, 1_000_000] {
        let why = error(&json!({"query": ".", "json": nested(n)}));
        assert!(why.contains("deeper than 100"), "{why}");
        // Read without recursing, so the depth of it is no danger.
        let data = super::call(&format!("{{\"query\": \".\", \"data\": {}}}", nested(n))).unwrap();
        assert!(data.is_error);
    }
    assert!(error(&json!({"query": ".", "json": "[".repeat(1_000_000)})).contains("is no JSON"));
    let objects = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
    assert!(error(&json!({"query": ".", "json": objects})).contains("deeper than 100"));
    assert!(refused("reduce range(500) as $_ (0; [.])").contains("output 1 nests deeper than 100"));
    assert!(refused("reduce range(500) as $_ (0; {a: .})").contains("output 1"));
}
