//! How Spin spells names. A name is of words, which begin with a letter and go
//! on with letters of the same case and digits.
//!
//! Source: <https://spinframework.dev/manifest-reference>, and the identifiers
//! of the component model, which Spin's are taken from.

/// What stands between the words of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `my-component`
    Kebab,
    /// `my_store`
    Snake,
}

/// Checks a name.
///
/// # Errors
/// What is wrong with it, as the end of "… is no name: ".
pub(crate) fn check(text: &str, style: Style) -> Result<(), String> {
    let (between, other) = match style {
        Style::Kebab => ('-', '_'),
        Style::Snake => ('_', '-'),
    };
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.contains(other) {
        return Err(format!("words are separated by `{between}`, not by `{other}`"));
    }
    text.split(between).try_for_each(|word| check_word(word, between))
}

/// Checks a name that is written in lower case.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_lower(text: &str, style: Style) -> Result<(), String> {
    match text.chars().any(|c| c.is_ascii_uppercase()) {
        true => Err("it has upper-case letters".to_owned()),
        false => check(text, style),
    }
}

fn check_word(word: &str, between: char) -> Result<(), String> {
    let Some(first) = word.chars().next() else {
        return Err(format!("there must be a word on each side of `{between}`"));
    };
    if !first.is_ascii_alphabetic() {
        return Err(format!("a word begins with a letter, not with `{first}`"));
    }
    if let Some(strange) = word.chars().find(|c| !c.is_ascii_alphanumeric()) {
        return Err(format!("words have letters and digits only, not `{strange}`"));
    }
    let other_case = |c: char| c.is_ascii_alphabetic() && c.is_ascii_uppercase() != first.is_ascii_uppercase();
    if word.contains(other_case) {
        return Err(format!("`{word}` mixes upper and lower case"));
    }
    Ok(())
}

/// Checks the name of a package, `namespace:name`.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_package(text: &str) -> Result<(), String> {
    let Some((namespace, name)) = text.split_once(':') else {
        return Err("a package is named `namespace:name`".to_owned());
    };
    check_lower(namespace, Style::Kebab).and_then(|()| check_lower(name, Style::Kebab))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_spin_does() {
        for name in ["a", "my-component", "HTTP-server2", "x1"] {
            assert_eq!(check(name, Style::Kebab), Ok(()), "{name}");
        }
        for name in ["", "-a", "a-", "a--b", "a_b", "1a", "a-1", "aB", "é", "a b", "a.b"] {
            assert!(check(name, Style::Kebab).is_err(), "{name}");
        }
        assert_eq!(check_lower("api_key2", Style::Snake), Ok(()));
        for name in ["API_KEY", "a__b", "_a", "a_", "a-b", "a_1"] {
            assert!(check_lower(name, Style::Snake).is_err(), "{name}");
        }
        assert_eq!(check_package("my-ns:pkg"), Ok(()));
        for name in ["pkg", "a:", ":b", "a:b:c", "A:b", "a:b/c"] {
            assert!(check_package(name).is_err(), "{name}");
        }
    }
}
