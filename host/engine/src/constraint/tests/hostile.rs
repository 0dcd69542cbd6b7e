//! Grammars that are written to do harm.

use super::*;

/// Compiles, and walks if that worked: all of it must end soon, one way or the
/// other. Returns the error, if there was one.
fn ends(name: &str, source: GrammarSource) -> Option<String> {
    let began = Instant::now();
    let result = compile(source);
    let compiled = began.elapsed();
    let result = result.and_then(|grammar| walk(&grammar));
    // Fuel and the watchdog keep steps far below; a busy machine is slow.
    assert!(compiled < Duration::from_secs(20), "{name}: compiled in {compiled:?}");
    match result {
        Ok(()) => None,
        Err(Error::Constraint(text)) => {
            assert!(!text.is_empty() && text.len() < 1000 && !text.contains("backtrace"), "{name}: {text}");
            Some(text)
        }
        Err(other) => panic!("{name}: {other:?}"),
    }
}

fn walk(grammar: &Grammar) -> Result<(), Error> {
    let mut matcher = Matcher::new(grammar);
    let mut n = 1_usize;
    for _ in 0..200 {
        let began = Instant::now();
        let mask = matcher.mask()?;
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let Some(token) = mask.tokens().nth((n >> 33) % mask.allowed().max(1)) else { break };
        matcher.accept(&[token])?;
        matcher.forced();
        if let Some(error) = matcher.failure() {
            return Err(error.clone());
        }
        assert!(began.elapsed() < Duration::from_secs(5), "a step took {:?}", began.elapsed());
    }
    Ok(())
}

fn refused(name: &str, source: GrammarSource) -> String {
    ends(name, source).unwrap_or_else(|| panic!("{name} was taken"))
}

#[test]
fn nesting_is_bounded_in_every_kind() {
    let n = 100_000;
    let around = |open: &str, middle: &str, close: &str| [&open.repeat(n), middle, &close.repeat(n)].concat();
    let limits = ConstraintLimits { source_bytes: usize::MAX, regex_bytes: usize::MAX, ..ConstraintLimits::default() };
    let compiler = GrammarCompiler::new(tokenizer(), limits);
    for source in [
        schema(&around("[", "", "]")),
        schema(&around("{\"items\":", "{}", "}")),
        schema(&format!("{{\"const\":{}}}", around("[", "", "]"))),
        regex(&around("(", "a", ")")),
        regex(&around("[", "a", "]")),
        regex(&around("(?:a|", "a", ")*")),
        lark(&format!("start: {}", around("(", "\"a\"", ")"))),
        lark(&format!("start: {}", around("[", "\"a\"", "]"))),
        lark(&format!("start: {}", around("a{", "b", "}"))),
        lark(&format!("start: {}\"a\"", "~".repeat(n))),
        lark(&format!("start: %json {}", around("[", "", "]"))),
        lark(&format!("start: /{}/", around("(", "a", ")"))),
        gbnf(&format!("root ::= {}", around("(", "\"a\"", ")"))),
        gbnf(&format!("root ::= {}", around("[", "a", "]"))),
        gbnf(&format!("root ::= \"a\"{}", "*".repeat(n))),
    ] {
        let shown: String = source.text().chars().take(40).collect();
        match block_on(compiler.compile(source)) {
            Err(Error::Constraint(text)) => assert!(text.len() < 1000, "{shown}: {text}"),
            // 100,000 stars are one.
            other => assert!(shown.contains("**"), "{shown}: {other:?}"),
        }
    }
}

#[test]
fn long_chains_of_rules_do_not_overflow_a_stack() {
    let chain = |line: &dyn Fn(usize) -> String| (0..7000).map(line).collect::<String>();
    ends("rules", lark(&format!("start: r0\n{}r7000: \"x\"", chain(&|n| format!("r{n}: \"a\" r{}\n", n + 1)))));
    ends("terminals", lark(&format!("start: A0\n{}A7000: \"x\"", chain(&|n| format!("A{n}: A{}\n", n + 1)))));
    ends("gbnf", gbnf(&format!("root ::= r0\n{}r7000 ::= \"x\"", chain(&|n| format!("r{n} ::= [ab] r{}\n", n + 1)))));
    let defs = chain(&|n| format!("\"d{n}\":{{\"$ref\":\"#/$defs/d{}\"}},", n + 1));
    ends("refs", schema(&format!("{{\"$ref\":\"#/$defs/d0\",\"$defs\":{{{defs}\"d7000\":{{\"type\":\"null\"}}}}}}")));
}

#[test]
fn expressions_that_explode_are_bounded() {
    let many = |text: &str, n: usize| text.repeat(n);
    ends("repetition", regex("(a|aa|aaa){1000}{1000}"));
    ends("bound", regex("(a{0,1000000}){0,1000000}"));
    ends("nested", regex("((((a?){100}){100}){100}){100}b"));
    ends("distance", regex("(.*a.{200}){50}"));
    ends("states", regex("(a|b)*a(a|b){500}"));
    ends("stars", regex(&many("a*", 4000)));
    ends("classes", regex(&many(r"(\p{L}|\p{N}){0,100}", 300)));
    ends("case", regex(&many("(?i:strasse)", 600)));
    assert!(refused("length", regex(&many("a*", 10_000))).contains("8192"));
    assert!(refused("look-around", regex(r"a\b")).contains("ook"));
    assert!(refused("backreference", regex(r"(a)\1")).contains("backreference"));
    assert!(refused("group", regex("(?P<stop>a)")).contains("stop"));
    assert!(refused("flag", regex("(?x) a # b\n c")).contains("flag x"));
    refused("nothing", regex("[a&&b]"));
}

#[test]
fn rules_that_explode_are_bounded() {
    let doubling = |name: &str| (0..30).map(|n| format!("{name}{}: {name}{n} {name}{n}\n", n + 1)).collect::<String>();
    refused("terminals", lark(&format!("start: A30\nA0: \"ab\"\n{}", doubling("A"))));
    ends("rules", lark(&format!("start: a30\na0: \"ab\"\n{}", doubling("a"))));
    ends("left recursion", lark("start: start \"a\" | start | \"a\""));
    ends("ambiguous", lark("start: start start | \"a\" | \"\""));
    ends("empty rules", lark("start: a*\na: b*\nb: c\nc: \"\" | a"));
    ends("empty repeated", lark("start: (\"\"*)* a{1000000}\na: \"\" | b*\nb: \"\""));
    ends("repeated", lark("start: (\"a\"{1000}){1000}"));
    ends("counted", lark("start: a{1000000}\na: \"b\" | \"c\" a"));
    ends("wide", lark(&format!("start: {}\"b\"", "\"a\" | ".repeat(30_000))));
    ends("optional", lark(&format!("start: {}\na: \"b\"", "[a]".repeat(20_000))));
    assert!(refused("itself", lark("start: start")).contains("matches nothing"));
    refused("nothing", lark("start: \"a\" /[^\\s\\S]/"));
    ends("gbnf left recursion", gbnf("root ::= root \"a\" | root | \"a\""));
    ends("gbnf empty rules", gbnf("root ::= a*\na ::= b*\nb ::= \"\" | a"));
    ends("gbnf counted", gbnf("root ::= ([a-z]{0,1000000}){0,1000000}"));
    ends("gbnf ambiguous", gbnf("root ::= root root | [a-z]* | \"\""));
    ends("gbnf wide", gbnf(&format!("root ::= {}\"b\"", "\"a\" | ".repeat(30_000))));
    refused("gbnf itself", gbnf("root ::= root"));
}

#[test]
fn schemas_that_explode_are_bounded() {
    let list = |n: usize, item: &dyn Fn(usize) -> String| (0..n).map(item).collect::<Vec<_>>().join(",");
    let branches =
        list(100, &|n| format!("{{\"type\":\"object\",\"properties\":{{\"p{n}\":{{\"type\":\"string\"}}}}}}"));
    let any = format!("{{\"anyOf\":[{branches}]}}");
    refused("allOf", schema(&format!("{{\"allOf\":[{any},{any},{any},{any}]}}")));
    ends("enum", schema(&format!("{{\"enum\":[{}]}}", list(20_000, &|n| format!("\"v{}\"", n * 7919)))));
    ends("items", schema(r#"{"type":"array","minItems":1000000000,"items":{"type":"array","minItems":100000}}"#));
    ends("length", schema(r#"{"type":"string","minLength":100000000,"maxLength":1000000000}"#));
    refused("circle", schema(r##"{"type":"object","properties":{"b":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}"##));
    refused("circle of refs", schema(r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}"##));
    let twice = |n: usize| {
        format!("\"d{n}\":{{\"allOf\":[{{\"$ref\":\"#/$defs/d{0}\"}},{{\"$ref\":\"#/$defs/d{0}\"}}]}}", n + 1)
    };
    let end = "\"d40\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}";
    ends("doubled", schema(&format!("{{\"$ref\":\"#/$defs/d0\",\"$defs\":{{{},{end}}}}}", list(40, &twice))));
    let patterns = list(300, &|n| format!("\"^x{n}[a-z]*$\":{{}}"));
    assert!(refused("patterns", schema(&format!("{{\"patternProperties\":{{{patterns}}}}}"))).contains("32"));
    ends("pattern", schema(r#"{"type":"string","pattern":"^(a|aa|aaa){1000}{1000}$"}"#));
    ends("multiple", schema(r#"{"type":"integer","multipleOf":99991}"#));
    let properties = list(3000, &|n| format!("\"p{n}\":{{\"type\":\"string\",\"maxLength\":{n}}}"));
    ends("properties", schema(&format!("{{\"properties\":{{{properties}}},\"additionalProperties\":false}}")));
    let multi = format!("{{\"type\":[\"é{}\"]}}", "日".repeat(100));
    refused("cut within a character", schema(&multi));
    refused("ref", schema(&format!("{{\"$ref\":[\"{}\"]}}", "日".repeat(100))));
}
