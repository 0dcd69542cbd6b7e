//! Rust source without its comments and literals, so that a word in a message
//! is not taken for code.

/// Replaces what stands in comments, strings and character literals by spaces;
/// lines stay where they are.
pub(super) fn code_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = raw_string(rest, &out) {
            length
        } else if first == '"' {
            quoted(rest, '"')
        } else if first == '\'' && is_char_literal(rest) {
            quoted(rest, '\'')
        } else {
            0
        };
        if skipped == 0 {
            out.push(first);
            rest = tail(rest, first.len_utf8());
        } else {
            let (gone, kept) = rest.split_at_checked(skipped).unwrap_or((rest, ""));
            out.extend(gone.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = kept;
        }
    }
    out
}

/// Whether the word stands in the text, not as a part of a longer one.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

fn tail(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

/// Bytes of a comment that may hold others.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        let rest = tail(text, at);
        let Some(first) = rest.chars().next() else { return text.len() };
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth = depth.saturating_sub(1);
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += first.len_utf8();
        }
    }
}

/// Bytes of a literal between quotes, in which a backslash hides the next sign.
fn quoted(text: &str, quote: char) -> usize {
    let mut signs = text.char_indices().skip(1);
    while let Some((at, sign)) = signs.next() {
        if sign == '\\' {
            signs.next();
        } else if sign == quote {
            return at + sign.len_utf8();
        }
    }
    text.len()
}

/// Bytes of a raw string, if one begins here; `before` is what was read.
fn raw_string(text: &str, before: &str) -> Option<usize> {
    let body = text.strip_prefix('r')?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let inner = tail(body, hashes).strip_prefix('"')?;
    // The end of a name such as `for"`, which is not a raw string; `b` is a prefix.
    let previous = before.strip_suffix('b').unwrap_or(before).chars().next_back();
    if previous.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inner.find(&end).map_or(inner.len(), |at| at + end.len());
    Some(2 + hashes + length)
}

/// Tells `'a'` from the lifetime `'a`.
fn is_char_literal(text: &str) -> bool {
    let mut signs = text.chars().skip(1);
    match signs.next() {
        Some('\\') => true,
        Some(_) => signs.next() == Some('\''),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        for hidden in
            ["// X", "/* a /* X */ X */", "\"X\"", "\"\\\"X\"", "r\"X\\\"", "r#\"a \" X\"#", "br#\"X\"#", "'X'"]
        {
            let code = code_only(&format!("before {hidden}\nafter"));
            assert!(!has_word(&code, "X"), "{hidden} gives {code}");
            assert!(has_word(&code, "before") && has_word(&code, "after"), "{hidden} gives {code}");
            assert_eq!(code.lines().count(), 2);
        }
    }

    #[test]
    fn code_stays() {
        for shown in ["X", "'a X", "'\\'' X", "\"a\" X", "'\"' X", "fn f<'a>(x: &'a str) { X }"] {
            assert!(has_word(&code_only(shown), "X"), "{shown}");
        }
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("unsafe { }", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe"));
        assert!(!has_word("not_unsafe", "unsafe"));
    }
}
