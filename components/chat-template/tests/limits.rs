//! Templates that mean harm: they end in errors, on a stack as small as a
//! component's, and take little memory on the way.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test, its helpers included")]

use chat_template::{Content, Error, Message, Piece, Request, Template, render_at};

fn render(source: &str) -> Result<Vec<Piece>, Error> {
    let message = Message {
        role: "user".to_owned(),
        content: Content::Text("x".to_owned()),
        reasoning: None,
        name: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    };
    let request = Request {
        template: Template { source: source.to_owned(), bos_token: None, eos_token: None },
        messages: vec![message],
        tools: Vec::new(),
        add_generation_prompt: false,
        extra: None,
    };
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(move || render_at(&request, 0)).unwrap().join().unwrap()
}

/// Makes `ns.x` a list in a list and so on, `depth` times.
fn nested(depth: usize, rest: &str) -> String {
    format!(
        "{{% set ns = namespace(x=[]) %}}{{% for i in range({}) %}}{{% for j in range(100) %}}{{% set ns.x = [ns.x] %}}\
         {{% endfor %}}{{% endfor %}}{rest}",
        depth / 100
    )
}

/// Makes `ns.x` a list of two references to the list before, `times` over.
fn doubled(times: usize, rest: &str) -> String {
    format!(
        "{{% set ns = namespace(x=[1]) %}}{{% for i in range({times}) %}}{{% set ns.x = [ns.x, ns.x] %}}{{% endfor %}}{rest}"
    )
}

#[track_caller]
fn refused(source: &str) {
    let shown: String = source.chars().take(200).collect();
    match render(source) {
        Err(Error::Template(_)) => {}
        other => panic!("{shown}: {other:?}"),
    }
}

#[test]
fn loops_end() {
    for source in [
        "{% for a in range(100000) %}{% for b in range(100000) %}{{ a }}{% endfor %}{% endfor %}",
        "{% for a in range(1000000000) %}{% endfor %}",
        "{{ range(100000000) | list | length }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    ] {
        refused(source);
    }
}

#[test]
fn long_texts_are_not_made() {
    for source in [
        "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(64) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
        "{{ 'x' * 99999999 }}",
        "{{ 'x' * 999999999999 }}",
        "{{ [1] * 999999999999 }}",
        "{{ 'x'.ljust(1000000000) }}",
        "{{ 'x'.rjust(1000000000) }}",
        "{{ 'x'.center(1000000000, '-') }}",
        "{{ '1'.zfill(1000000000) }}",
        "{{ 'x' | center(1000000000) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%.1000000000f' % 1.5 }}",
        "{{ '%*d' % (1000000000, 1) }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:.1000000000f}'.format(1.5) }}",
        "{{ 'a\\nb' | indent(1000000000) }}",
        "{{ ('x' * 100000).replace('x', 'y' * 100000) }}",
        "{{ ('x' * 100000) | replace('x', 'y' * 100000) }}",
        "{{ ('y' * 1000000).join(range(100000)) }}",
        "{{ range(100000) | join('y' * 1000000) }}",
        "{{ [1, 2] | batch(1000000000, 'x') | list }}",
        "{{ [[1]] | tojson(indent=1000000000) }}{{ 'x' * 9000000 }}",
        "{% filter upper %}{% for a in range(90000) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }}{% endfor %}{% endfilter %}",
    ] {
        refused(source);
    }
}

#[test]
fn values_that_are_nested_deeply_are_not_walked_over() {
    for walk in ["{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x | string }}", "{{ '' ~ ns.x }}", "{{ [ns.x] | join }}"] {
        refused(&nested(1_000, walk));
    }
    for source in [
        doubled(60, "{{ ns.x }}"),
        doubled(60, "{{ ns.x | tojson }}"),
        doubled(60, "{{ '' ~ ns.x }}"),
        doubled(60, "{{ 'a' + ns.x | string }}"),
    ] {
        refused(&source);
    }
    refused(&nested(100_000, ""));
}

#[test]
fn sources_that_are_nested_deeply_are_refused() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{'a':", "}"), ("not ", ""), ("-", "")] {
        refused(&format!("{{{{ {}1{} }}}}", open.repeat(20_000), close.repeat(20_000)));
    }
    refused(&format!("{}x{}", "{% if true %}".repeat(20_000), "{% endif %}".repeat(20_000)));
    refused(&format!("{{{{ x{} }}}}", "|trim".repeat(200_000)));
    refused(&format!("{{{{ 1{} }}}}", " + 1".repeat(200_000)));
    refused(&format!("{{{{ x{} }}}}", ".a".repeat(200_000)));
}

#[test]
fn lists_that_change_cannot_hold_themselves() {
    let pieces = render("{% set x = [1] %}{% set _ = x.append(x) %}{% set _ = x.append({'a': x}) %}{{ x }}").unwrap();
    let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    assert_eq!(text, "[1, [1], {'a': [1, [1]]}]");
    refused(
        "{% set ns = namespace(x=[1]) %}{% set _ = ns.x.append(ns) %}{% set ns.y = ns %}{% set _ = ns.x.append(ns) %}",
    );
    refused("{% set x = [1] %}{% for i in range(60) %}{% set _ = x.append(x) %}{% endfor %}");
    refused("{% set x = [1] %}{% for i in range(60) %}{% set _ = x.extend(x) %}{% endfor %}");
    refused("{% set x = [1] %}{% set _ = x.pop(3) %}");
    refused(
        "{% set x = [] %}{% for i in range(99999) %}{% set _ = x.insert(0, 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyy') %}{% endfor %}",
    );
}

#[test]
fn namespaces_that_are_nested_deeply_are_refused() {
    let looped = |inner: &str| {
        format!(
            "{{% set ns = namespace(x=1) %}}{{% for i in range(300) %}}{{% for j in range(100) %}}{inner}{{% endfor %}}{{% endfor %}}"
        )
    };
    refused(&looped("{% set m = namespace(x=ns.x) %}{% set ns.x = m %}"));
    refused(&looped("{% set m = namespace() %}{% set m.x = ns.x %}{% set ns.x = m %}"));
    refused(&looped("{% set ns.x = dict(a=ns.x) %}"));
    refused(&looped("{% set ns.x = {'a': ns.x} %}"));
    refused(&looped("{% set ns.x = (ns.x, 1) %}"));
}

#[test]
fn a_namespace_that_holds_itself_is_not_walked_over() {
    for walk in
        ["{{ ns }}", "{{ ns | tojson }}", "{{ '' ~ ns }}", "{{ [ns] | string }}", "{{ ns == ns }}", "{{ [ns] | sort }}"]
    {
        let source = format!("{{% set ns = namespace() %}}{{% set ns.x = ns %}}{walk}");
        // No matter how it ends, it ends.
        let _ = render(&source);
    }
}
