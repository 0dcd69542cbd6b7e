//! What components have for reading: what they say of it, checked once when they are
//! loaded, and which of them has what.

use std::collections::BTreeSet;

use super::bindings::nala::tools::types::{Asset, Catalogue, Pattern, Prompt};

/// Of each kind, what a component may have.
const MOST: usize = 1024;
/// The parameters of a prompt.
const MOST_PARAMETERS: usize = 64;
/// The longest name or URI, in bytes,
const LONGEST_NAME: usize = 2048;
/// and the longest description.
const LONGEST_TEXT: usize = 64 << 10;

/// That of a component that has nothing for reading.
pub(super) const fn nothing() -> Catalogue {
    Catalogue { assets: Vec::new(), patterns: Vec::new(), prompts: Vec::new() }
}

/// Finds what is wrong with what a component says of its resources and prompts.
pub(super) fn check(catalogue: &Catalogue) -> Result<(), String> {
    let Catalogue { assets, patterns, prompts } = catalogue;
    let uris = assets.iter().map(|Asset { uri, .. }| uri);
    let uris = uris.chain(patterns.iter().map(|Pattern { uri_template, .. }| uri_template));
    distinct("resources", uris)?;
    distinct("prompts", prompts.iter().map(|prompt| &prompt.name))?;
    for prompt in prompts {
        distinct(&format!("parameters of `{}`", prompt.name), prompt.parameters.iter().map(|one| &one.name))?;
        if prompt.parameters.len() > MOST_PARAMETERS {
            let length = prompt.parameters.len();
            return Err(format!("`{}` has {length} parameters; at most {MOST_PARAMETERS} are allowed", prompt.name));
        }
    }
    let names = assets.iter().map(|asset| &asset.name).chain(patterns.iter().map(|pattern| &pattern.name));
    let titles = assets.iter().filter_map(|asset| asset.title.as_ref());
    let titles = titles.chain(patterns.iter().filter_map(|pattern| pattern.title.as_ref()));
    let kinds = assets.iter().filter_map(|asset| asset.mime_type.as_ref());
    let kinds = kinds.chain(patterns.iter().filter_map(|pattern| pattern.mime_type.as_ref()));
    bounded(names.chain(titles).chain(kinds), LONGEST_NAME)?;
    let texts = assets.iter().filter_map(|asset| asset.description.as_ref());
    let texts = texts.chain(patterns.iter().filter_map(|pattern| pattern.description.as_ref()));
    let of_prompt = |Prompt { title, description, parameters, .. }: &'_ Prompt| -> usize {
        let parameters = parameters.iter().filter_map(|one| one.description.as_ref());
        title.iter().chain(description).chain(parameters).map(String::len).fold(0, usize::saturating_add)
    };
    if let Some(long) = prompts.iter().map(of_prompt).find(|length| *length > LONGEST_TEXT) {
        return Err(format!("it has a prompt that is described in {long} bytes; at most {LONGEST_TEXT} are allowed"));
    }
    bounded(texts, LONGEST_TEXT)
}

fn distinct<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for name in names {
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(format!("it has {what} with a name of {} bytes; 1 to {LONGEST_NAME} are allowed", name.len()));
        }
        if !known.insert(name) {
            return Err(format!("it has two {what} named {name:?}"));
        }
        if known.len() > MOST {
            return Err(format!("it has more than {MOST} {what}"));
        }
    }
    Ok(())
}

fn bounded<'a>(mut texts: impl Iterator<Item = &'a String>, most: usize) -> Result<(), String> {
    match texts.find(|text| text.len() > most) {
        Some(long) => Err(format!("it has a text of {} bytes; at most {most} are allowed", long.len())),
        None => Ok(()),
    }
}

/// Whether a URI is one of a pattern: variables in braces stand for anything but a slash.
///
/// Each part of the pattern is taken where it comes first, which takes time in proportion
/// to the URI: what a variable could have beyond that would have a slash in it where this
/// has one behind.
pub(super) fn fits(template: &str, uri: &str) -> bool {
    let Some((before, mut pattern)) = template.split_once('{') else { return template == uri };
    let Some(mut rest) = uri.strip_prefix(before).filter(|_| uri.len() <= LONGEST_NAME) else { return false };
    loop {
        // Behind a brace: a variable, and a part that is as it is.
        let Some((_, after)) = pattern.split_once('}') else { return false };
        let (part, next) = match after.split_once('{') {
            Some((part, next)) => (part, Some(next)),
            None => (after, None),
        };
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let end = match next {
            // The last part is the end.
            None => rest.strip_suffix(part).map(str::len),
            Some(_) => rest.get(first..).and_then(|rest| rest.find(part)).map(|at| at + first),
        };
        let Some((variable, behind)) = end.and_then(|end| rest.split_at_checked(end)) else { return false };
        if variable.is_empty() || variable.contains('/') {
            return false;
        }
        match next {
            None => return true,
            Some(next) => (pattern, rest) = (next, behind.strip_prefix(part).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bindings::nala::tools::types::Parameter;
    use super::*;

    fn asset(uri: &str) -> Asset {
        Asset { uri: uri.into(), name: "a".into(), title: None, description: None, mime_type: None }
    }

    #[test]
    fn uris_are_found_by_their_patterns() {
        for (template, uri, expected) in [
            ("a://b", "a://b", true),
            ("a://b", "a://bc", false),
            ("a://{x}/data", "a://1/data", true),
            ("a://{x}/data", "a:///data", false),
            ("a://{x}/data", "a://1/2/data", false),
            ("a://{x}.{y}", "a://1.2.3", true),
            ("a://{x}.{y}", "a://1", false),
            ("a://{x}", "a://ß", true),
            ("a://{x", "a://1", false),
            ("a://{x}-{y}/z", "a://1-2-3/z", true),
            ("a://{x}{y}", "a://12", true),
            ("a://{x}{y}", "a://1", false),
            ("a://{x}b{y}", "a://bbb", true),
            ("a://{x}ab", "a://aab", true),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
        // What would take for ever by trying.
        let uri = format!("x:{}", "a".repeat(LONGEST_NAME - 2));
        assert!(!fits(&format!("x:{}!", "{v}".repeat(1000)), &uri) && fits(&format!("x:{}", "{v}".repeat(1000)), &uri));
        assert!(!fits("x:{v}", &format!("{uri}a")), "it is too long");
    }

    #[test]
    fn names_are_distinct_and_texts_bounded() {
        let all = |assets| Catalogue { assets, ..nothing() };
        assert_eq!(check(&all(vec![asset("a://1"), asset("a://2")])), Ok(()));
        let long = Asset { description: Some("x".repeat(LONGEST_TEXT + 1)), ..asset("a://1") };
        let parameter = Parameter { name: "p".into(), description: None, required: false };
        let prompt = |parameters| Prompt { name: "n".into(), title: None, description: None, parameters };
        let prompts = |prompts| Catalogue { prompts, ..nothing() };
        for (wrong, said) in [
            (all(vec![asset("a://1"), asset("a://1")]), "two resources named \"a://1\""),
            (all(vec![asset("")]), "a name of 0 bytes"),
            (all((0..1025).map(|n| asset(&n.to_string())).collect()), "more than 1024 resources"),
            (all(vec![long]), "at most 65536"),
            (prompts(vec![prompt(vec![parameter.clone(), parameter.clone()])]), "two parameters of `n`"),
            (prompts(vec![prompt(vec![]), prompt(vec![])]), "two prompts"),
        ] {
            let why = check(&wrong).unwrap_err();
            assert!(why.contains(said), "{why}");
        }
    }
}
