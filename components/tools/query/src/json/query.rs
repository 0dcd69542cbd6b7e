//! Queries: what is written is compiled and run.

use jaq_core::data::JustLut;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Filter, Vars, compile};
use jaq_json::Val;

use super::bounds::check;
use super::output::Outputs;
use crate::limits::Shown;

/// Filters that would tell of where the query runs.
const REFUSED: [&str; 3] = ["env", "localtime", "strflocaltime"];

const IMPORTS: &str = "a query cannot import or include anything";

/// What the query gives for the value, as the tool answers it.
pub(crate) fn run(query: &str, input: Val) -> Result<String, String> {
    let filter = filter(query)?;
    let context = Ctx::<JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut outputs = Outputs::default();
    for output in filter.id.run((context, input)) {
        let value = match output.map_err(|exception| exception.get_err()) {
            Ok(value) => value,
            Err(Ok(error)) => {
                let why = match error.into_val() {
                    Val::TStr(text) => String::from_utf8_lossy(&text).into_owned(),
                    other => other.to_string(),
                };
                return Err(failed(&outputs, &why));
            }
            Err(Err(exception)) => match exception.get_halt() {
                Ok(0) => break,
                Ok(code) => return Err(failed(&outputs, &format!("it halts with code {code}"))),
                Err(_) => return Err(failed(&outputs, "it breaks from what it is not in")),
            },
        };
        if !outputs.push(&value)? {
            break;
        }
    }
    outputs.finish()
}

fn failed(outputs: &Outputs, why: &str) -> String {
    const CHARS: usize = 400;
    let mut short: String = why.chars().take(CHARS).collect();
    if short.len() < why.len() {
        short.push('…');
    }
    match outputs.number() {
        0 => format!("the query fails: {short}"),
        n => format!("the query fails after {n} outputs: {short}"),
    }
}

fn filter(query: &str) -> Result<Filter<JustLut<Val>>, String> {
    check(query)?;
    let own = load::parse(include_str!("prelude.jq"), |parser| parser.defs()).unwrap_or_default();
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(own);
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let funs = funs.filter(|(name, ..)| !REFUSED.contains(name));

    let arena = Arena::default();
    let modules =
        Loader::new(defs).load(&arena, File { code: query, path: () }).map_err(|errors| unread(query, &errors))?;
    // What would be imported has no values here, and running on without them would panic.
    load::import(&modules, |_| Err(String::new())).map_err(|_| IMPORTS.to_owned())?;
    Compiler::default().with_funs(funs).compile(modules).map_err(|errors| undefined(&errors))
}

/// Why a query cannot be read.
fn unread(query: &str, errors: &load::Errors<&str, ()>) -> String {
    let found = match errors.first() {
        Some((_, load::Error::Lex(errors))) => errors.first().map(|(expected, at)| (expected.as_str(), *at)),
        Some((_, load::Error::Parse(errors))) => errors.first().map(|(expected, at)| (expected.as_str(), *at)),
        Some((_, load::Error::Io(_))) => return IMPORTS.to_owned(),
        None => None,
    };
    match found {
        Some((expected, "")) => format!("the query is no jq: it ends where there should be {expected}"),
        Some((expected, at)) => {
            let before = query.get(..load::span(query, at).start).unwrap_or_default().chars().count();
            format!("the query is no jq: at character {} there should be {expected}, not {}", before + 1, Shown(at))
        }
        None => "the query is no jq".to_owned(),
    }
}

/// What a query names that is not there.
fn undefined(errors: &compile::Errors<&str, ()>) -> String {
    match errors.iter().flat_map(|(_, errors)| errors).next() {
        Some((name, compile::Undefined::Filter(0))) => format!("there is no filter {}", Shown(name)),
        Some((name, compile::Undefined::Filter(n))) => {
            format!("there is no filter {} of {n} {}", Shown(name), if *n == 1 { "argument" } else { "arguments" })
        }
        Some((name, what)) => format!("there is no {} {}", what.as_str(), Shown(name)),
        None => "the query names what is not there".to_owned(),
    }
}
