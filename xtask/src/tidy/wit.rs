//! Every item of our interfaces is documented: they are what others program
//! against.

use super::{File, Problem};

/// Whether it is an interface of others, which stays as they wrote it.
pub(super) fn is_copied(file: &File) -> bool {
    file.ending() == "wit" && ["/wasi-", "/fermyon-", "/deps/"].iter().any(|copied| file.path.contains(copied))
}

/// Checks an interface file of ours; those of WASI are as their authors wrote
/// them.
pub(super) fn check(file: &File) -> Vec<Problem> {
    if file.ending() != "wit" || is_copied(file) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut blocks: Vec<Block> = Vec::new();
    let mut documented = false;
    // Inside a statement that goes over several lines.
    let mut open = false;
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("///") {
            documented = true;
            continue;
        }
        // Comments and attributes may stand between an item and its words.
        if line.is_empty() || line.starts_with("//") || line.starts_with('@') {
            documented &= !line.is_empty();
            continue;
        }
        if line.starts_with('}') && !open {
            blocks.pop();
            documented = false;
            continue;
        }
        if !open && !documented && needs_words(line, blocks.last().copied()) {
            problems.push(Problem::line(file, index, format!("`{line}` has no `///`: say what it is")));
        }
        documented = false;
        if !open && line.ends_with('{') && !line.starts_with("use ") {
            blocks.push(Block::of(line));
            continue;
        }
        open = !ends(line, blocks.last().copied(), open);
    }
    problems
}

/// What an open brace belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// `record`, `enum`, `variant`, `flags`: a list of members.
    Members,
    /// `interface`, `world`, `resource`: items.
    Items,
}

impl Block {
    fn of(line: &str) -> Self {
        let members = ["record ", "enum ", "variant ", "flags "];
        if members.iter().any(|word| line.starts_with(word)) { Self::Members } else { Self::Items }
    }
}

/// Whether the line begins an item that has to be explained.
fn needs_words(line: &str, inside: Option<Block>) -> bool {
    if inside == Some(Block::Members) {
        return true;
    }
    let plain = ["package ", "use ", "import ", "export ", "include "];
    !plain.iter().any(|word| line.starts_with(word))
}

/// Whether the line ends its statement.
fn ends(line: &str, inside: Option<Block>, open: bool) -> bool {
    match inside {
        // A member ends with a comma, which the last one may leave out.
        Some(Block::Members) if !open => !line.ends_with(['(', '<']),
        _ => line.ends_with([';', ',']) && (line.ends_with(';') || inside == Some(Block::Members)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    const GOOD: &str = "\
package a:b@0.1.0;

/// Words.
interface one {
    use types.{
        message,
        other,
    };

    /// Words.
    record point {
        /// Words.
        x: u32,
        /// Words.
        y: option<string>
    }

    /// Words.
    enum colour {
        /// Words.
        red,
    }

    /// Words.
    @since(version = 0.1.0)
    resource thing {
        /// Words.
        constructor(a: u32);
        /// Words.
        method: func(
            a: u32,
            b: string,
        ) -> result<u32>;
    }

    /// Words.
    type number = u64;
}

/// Words.
world w {
    import one;
    export two;
}
";

    fn lines(text: &str) -> Vec<usize> {
        check(&file("wit/x/x.wit", text)).iter().filter_map(|problem| problem.line).collect()
    }

    #[test]
    fn documented_interfaces_pass() {
        assert_eq!(check(&file("wit/x/x.wit", GOOD)), []);
    }

    #[test]
    fn each_item_that_loses_its_words_is_told() {
        let words: Vec<usize> =
            GOOD.lines().enumerate().filter(|(_, line)| line.trim() == "/// Words.").map(|(index, _)| index).collect();
        assert_eq!(words.len(), 11);
        for gone in words {
            let text: String = GOOD
                .lines()
                .enumerate()
                .filter(|(index, _)| *index != gone)
                .map(|(_, line)| format!("{line}\n"))
                .collect();
            assert_eq!(lines(&text).len(), 1, "without line {}:\n{text}", gone + 1);
        }
    }

    #[test]
    fn an_empty_line_parts_words_from_their_item() {
        assert_eq!(lines("/// Words.\n\ninterface a {\n}\n"), [3]);
    }

    #[test]
    fn what_wasi_wrote_is_left_alone() {
        assert_eq!(check(&file("wit/wasi-io/poll.wit", "interface a {\n}\n")), []);
    }
}
