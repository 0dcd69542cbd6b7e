//! Keys and names that are not known, and what was probably meant.

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
