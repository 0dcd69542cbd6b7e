//! Has prompts rendered by templates that mean harm: each once, with what came of it
//! (`/each`), or the worst of them without end (`/forever`).

use hostile::wasi::http::types::ResponseOutparam;
use hostile::{Asked, answer};
use nala_sdk::chat::{Error, Message, Request, Template, render};

/// Nested loops over ranges.
const LOOPS: &str = "{% for a in range(100000) %}{% for b in range(100000) %}{{ a }}{% endfor %}{% endfor %}";
const BOMBS: [(&str, &str); 7] = [
    ("loops", LOOPS),
    (
        "doubling",
        "{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(200) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
    ),
    ("recursion", "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}"),
    ("include", "{% include '/etc/passwd' %}"),
    ("objects", "{{ ''.__class__.__mro__[1].__subclasses__() }}"),
    ("syntax", "{% for %}"),
    ("huge", "{{ '%1000000000s' % 'x' }}{{ 'x' * 100000000000 }}"),
];

fn handle(asked: Asked, out: ResponseOutparam) {
    if asked.way == "forever" {
        loop {
            std::hint::black_box(&try_render(LOOPS));
        }
    }
    let told: Vec<_> = BOMBS.iter().map(|(name, source)| format!("{name} {}", try_render(source))).collect();
    answer(out, &told.join(", "));
}

fn try_render(source: &str) -> &'static str {
    let template = Template { source: source.to_owned(), bos_token: None, eos_token: None };
    let messages = vec![Message::user("Hello.")];
    let request = Request { template, messages, tools: Vec::new(), add_generation_prompt: true, extra: None };
    match render(&request) {
        Ok(_) => "rendered",
        Err(Error::Template(_)) => "template",
        Err(Error::Refused(_)) => "refused",
        Err(Error::Invalid(_)) => "invalid",
        Err(Error::Failed(_)) => "failed",
    }
}

hostile::guest!(handle);
