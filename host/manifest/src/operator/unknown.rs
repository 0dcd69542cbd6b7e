//! Keys and names that are not known, and what was probably meant.

use nala_tenant::{Roster, TenantName};
use toml::Spanned;

use super::error::{self, Error};
use super::source::Source;

/// How alike two names must be, from 0 to 1, for one to be suggested.
const ALIKE: f64 = 0.8;

/// The known name that is most like `name`, if any is.
pub(super) fn suggestion<'a>(name: &str, known: &'a [String]) -> Option<&'a String> {
    let likeness = |other: &String| strsim::jaro_winkler(&other.to_lowercase(), &name.to_lowercase());
    let alike = known.iter().map(|other| (likeness(other), other)).filter(|(likeness, _)| *likeness >= ALIKE);
    alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, other)| other)
}

/// What to write instead of `name`.
pub(super) fn help(name: &str, known: &[String]) -> String {
    match suggestion(name, known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("one of {}", known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}

/// The tenant that is named.
///
/// # Errors
/// There is none of that name.
pub(super) fn tenant(name: &Spanned<String>, roster: &Roster, source: Source<'_>) -> Result<TenantName, Error> {
    roster.tenant(name.get_ref()).map(|tenant| tenant.name.clone()).ok_or_else(|| {
        let known: Vec<String> = roster.tenants().map(|tenant| tenant.name.to_string()).collect();
        let message = format!("there is no tenant `{}`", name.get_ref());
        error::at(source, name.span(), message, help(name.get_ref(), &known))
    })
}

/// What serde says of a field that it does not know: the field, and those that
/// it knows. None for other messages.
pub(super) fn field(message: &str) -> Option<(String, Vec<String>)> {
    let rest = message.strip_prefix("unknown field ")?;
    // Every second part stands between backticks.
    let mut names = rest.split('`').skip(1).step_by(2).map(str::to_owned);
    Some((names.next()?, names.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serde_says_is_taken_apart() {
        let (field, known) = field("unknown field `hots`, expected one of `hosts`, `prefix`").unwrap();
        assert_eq!((field.as_str(), help(&field, &known)), ("hots", "did you mean `hosts`?".to_owned()));
        assert_eq!(help("zzz", &known), "one of `hosts`, `prefix`");
        assert_eq!(super::field("invalid type: integer"), None);
    }
}
