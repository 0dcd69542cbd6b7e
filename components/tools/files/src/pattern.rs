//! Names that are looked for.

/// What a name has to be like.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// It has this in it, in upper or lower case.
    Part(String),
    /// It is like this, where `*` is any characters and `?` any one.
    Name(Vec<char>),
    /// The path is like this, where `**` is any folders.
    Path(Vec<Vec<char>>),
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        let chars = |text: &str| text.chars().collect();
        if text.contains('/') {
            Self::Path(text.split('/').filter(|name| !matches!(*name, "" | ".")).map(chars).collect())
        } else if text.contains(['*', '?']) {
            Self::Name(chars(text))
        } else {
            Self::Part(text.to_lowercase())
        }
    }

    /// Whether it fits what is found at the names of a path.
    pub(crate) fn fits(&self, path: &[&str]) -> bool {
        let name = path.last().copied().unwrap_or_default();
        match self {
            Self::Part(part) => name.to_lowercase().contains(part),
            Self::Name(pattern) => is_like(pattern, name),
            Self::Path(patterns) => {
                goes_with(patterns, path, |pattern| pattern == &['*', '*'], |pattern, name| is_like(pattern, name))
            }
        }
    }
}

fn is_like(pattern: &[char], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    goes_with(pattern, &name, |sign| *sign == '*', |sign, char| *sign == '?' || sign == char)
}

/// Whether signs fit things one by one, where some fit any number. Only the last of those
/// is ever tried again, so that it takes the product of both lengths at most.
fn goes_with<P, T>(signs: &[P], things: &[T], is_any: impl Fn(&P) -> bool, fits: impl Fn(&P, &T) -> bool) -> bool {
    let (mut sign, mut thing) = (0, 0);
    let mut last_any: Option<(usize, usize)> = None;
    while let Some(next) = things.get(thing) {
        match signs.get(sign) {
            Some(any) if is_any(any) => {
                last_any = Some((sign, thing));
                sign += 1;
            }
            Some(one) if fits(one, next) => {
                sign += 1;
                thing += 1;
            }
            _ => {
                let Some((any, from)) = last_any else { return false };
                last_any = Some((any, from + 1));
                (sign, thing) = (any + 1, from + 1);
            }
        }
    }
    signs.get(sign..).unwrap_or_default().iter().all(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names_and_paths() {
        let table = [
            ("", "any", true),
            ("READ", "a/readme.md", true),
            ("read", "read/a", false),
            ("[x]", "a[x]", true),
            ("*", "a", true),
            ("*.rs", "src/lib.rs", true),
            ("*.rs", "lib.RS", false),
            ("*.rs", "lib.rs.bak", false),
            ("a?c*", "äbc", false),
            ("?b*d", "äbcd", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xbxa", false),
            ("src/*.rs", "src/lib.rs", true),
            ("/src/*.rs", "src/lib.rs", true),
            ("src/*.rs", "src/a/lib.rs", false),
            ("src/**/*.rs", "src/lib.rs", true),
            ("src/**/*.rs", "src/a/b/lib.rs", true),
            ("**/b/**/c", "a/b/x/b/y/c", true),
            ("**/b/**/c", "a/x/c", false),
            ("a/**", "a/b/c", true),
        ];
        for (pattern, path, fits) in table {
            let names: Vec<_> = path.split('/').collect();
            assert_eq!(Pattern::new(pattern).fits(&names), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_takes_no_time_to_speak_of() {
        let name = "a".repeat(250);
        let begun = std::time::Instant::now();
        assert!(!Pattern::new(&("*a".repeat(120) + "b")).fits(&[&name]));
        let path = vec!["a"; 64];
        assert!(!Pattern::new(&("**/a/".repeat(60) + "b")).fits(&path));
        assert!(begun.elapsed().as_secs() < 2, "{:?}", begun.elapsed());
    }
}
