//! What is done to the source of a template without parsing it in full.

use std::borrow::Cow;

/// Rewrites the tags `{% generation %}` and `{% endgeneration %}` of
/// transformers, which mark the assistant's text for training and print
/// nothing, into conditions that always hold.
pub(crate) fn without_generation_tags(source: &str) -> Cow<'_, str> {
    if !source.contains("generation") {
        return Cow::Borrowed(source);
    }
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, tag)) = rest.split_once("{%") {
        out.push_str(before);
        out.push_str("{%");
        rest = tag;
        let Some((inside, _)) = tag.split_once("%}") else { break };
        let name = inside.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim();
        let instead = match name {
            "generation" => "if true",
            "endgeneration" => "endif",
            _ => continue,
        };
        out.push_str(&inside.replacen(name, instead, 1));
        rest = tag.get(inside.len()..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Where a string constant of a template stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a statement, `{% … %}`: mostly compared with.
    Statement,
    /// In an expression, `{{ … }}`: mostly printed.
    Expression,
}

/// The string constants of a template, in order, each with its place.
pub(crate) fn constants(source: &str) -> Vec<(Place, String)> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find('{') {
        rest = rest.get(at + 1..).unwrap_or_default();
        let (place, close) = match rest.chars().next() {
            Some('%') => (Place::Statement, "%}"),
            Some('{') => (Place::Expression, "}}"),
            Some('#') => {
                rest = rest.split_once("#}").map_or("", |(_, after)| after);
                continue;
            }
            _ => continue,
        };
        rest = rest.get(1..).unwrap_or_default();
        while !rest.starts_with(close) {
            let mut chars = rest.chars();
            match chars.next() {
                None => break,
                Some(quote @ ('"' | '\'')) => {
                    let (text, after) = constant(chars.as_str(), quote);
                    found.push((place, text));
                    rest = after;
                }
                Some(_) => rest = chars.as_str(),
            }
        }
    }
    found
}

/// Reads a string constant behind its opening quote.
fn constant(source: &str, quote: char) -> (String, &str) {
    let mut text = String::new();
    let mut chars = source.chars();
    while let Some(c) = chars.next() {
        match c {
            _ if c == quote => break,
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => break,
            },
            _ => text.push(c),
        }
    }
    (text, chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_tags_become_conditions_and_keep_their_dashes() {
        assert_eq!(
            without_generation_tags("a{%- generation -%}b{% endgeneration %}{% if generation %}c"),
            "a{%- if true -%}b{% endif %}{% if generation %}c"
        );
        assert_eq!(without_generation_tags("add_generation {% open"), "add_generation {% open");
    }

    #[test]
    fn constants_are_found_with_their_place() {
        let source = r#"'no' {# '{% "x" %}' #}{% if a == "x\"%}\n" %}{{ 'y' + b['k'] }}{ '' }"#;
        assert_eq!(
            constants(source),
            [
                (Place::Statement, "x\"%}\n".to_owned()),
                (Place::Expression, "y".to_owned()),
                (Place::Expression, "k".to_owned()),
            ]
        );
        assert_eq!(constants("{{ 'open"), [(Place::Expression, "open".to_owned())]);
    }
}
