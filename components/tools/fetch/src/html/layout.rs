//! Lines of text: white space, paragraphs, indentation, and what stands around words.

mod marks;

pub(super) use marks::Mark;

use super::Style;

/// How many quotes or lists in each other show.
const DEEPEST: usize = 8;

/// The text so far.
#[derive(Debug)]
pub(super) struct Layout {
    style: Style,
    out: String,
    /// Line breaks that come before the next text.
    breaks: usize,
    /// Whether a space does.
    space: bool,
    /// What a line begins with, such as a bullet, and whether it stands in the indentation.
    beginning: Option<(String, bool)>,
    /// Whether breaks are spaces.
    inline: bool,
    quotes: usize,
    /// The next numbers of the lists that are open; None for bullets.
    lists: Vec<Option<u32>>,
    /// Lists deeper than those.
    deeper: usize,
    /// At most one of each kind. None: no text has come yet.
    marks: Vec<(Mark, Option<usize>)>,
    main: Option<(usize, usize)>,
}

impl Layout {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            out: String::new(),
            breaks: 0,
            space: false,
            beginning: None,
            inline: false,
            quotes: 0,
            lists: Vec::new(),
            deeper: 0,
            marks: Vec::new(),
            main: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// The text, and where its main part is.
    pub(super) fn finish(mut self) -> (String, Option<(usize, usize)>) {
        if self.has(Mark::Main) {
            self.end_main();
        }
        (self.out, self.main)
    }

    pub(super) fn text(&mut self, text: &str) {
        if self.is_pre() {
            return self.text_as_it_is(text);
        }
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                ' ' | '\t' | '\n' | '\r' | '\x0C' | '\u{A0}' => self.space = true,
                // Soft hyphens and such, which only show where a line is broken.
                '\u{AD}' | '\u{200B}' | '\u{FEFF}' => {}
                char if char.is_control() => {}
                char => {
                    self.flush();
                    if self.style == Style::Markdown
                        && !self.has(Mark::Code)
                        && self.is_special(char, chars.peek().copied())
                    {
                        self.out.push('\\');
                    }
                    self.out.push(char);
                }
            }
        }
    }

    fn text_as_it_is(&mut self, text: &str) {
        for char in text.chars() {
            match char {
                // The first one belongs to the tag.
                '\n' if self.starts_at(Mark::Pre).is_none() => {}
                '\n' => {
                    self.out.push('\n');
                    self.indent(self.depth());
                }
                char if char.is_control() && char != '\t' => {}
                char => {
                    self.flush();
                    self.out.push(char);
                }
            }
        }
    }

    /// Whether Markdown would take a character for more than itself.
    fn is_special(&self, char: char, next: Option<char>) -> bool {
        let last = self.out.chars().next_back();
        match char {
            '\\' | '`' | '*' | '[' | ']' | '<' => true,
            '_' => !(last.is_some_and(char::is_alphanumeric) && next.is_some_and(char::is_alphanumeric)),
            '#' | '>' | '+' | '-' => last.is_none_or(|last| last == '\n'),
            '|' => self.inline,
            _ => false,
        }
    }

    /// Begins a line.
    pub(super) fn lines(&mut self) {
        self.part(1);
    }

    /// Begins a paragraph.
    pub(super) fn paragraph(&mut self) {
        self.part(2);
    }

    /// Ends a line, however many have been ended before.
    pub(super) fn line(&mut self) {
        if self.is_pre() {
            return self.text_as_it_is("\n");
        }
        self.part((self.breaks + 1).min(2));
    }

    fn part(&mut self, breaks: usize) {
        if self.inline {
            self.space = true;
        } else if self.beginning.is_none() {
            self.breaks = self.breaks.max(breaks);
            self.space = false;
        }
    }

    /// What the next text begins with.
    pub(super) fn begin_with(&mut self, text: &str) {
        let (before, _) = self.beginning.get_or_insert_with(|| (String::new(), false));
        // Many without text between them are one.
        if before.len() < 32 {
            before.push_str(text);
        }
    }

    /// The text did not come.
    pub(super) fn forget_beginning(&mut self) {
        self.beginning = None;
    }

    /// Writes what comes before text.
    pub(super) fn flush(&mut self) {
        let (beginning, hanging) = self.beginning.take().unwrap_or_default();
        if self.breaks > 0 || self.out.is_empty() {
            let breaks = if self.out.is_empty() { 0 } else { self.breaks };
            self.out.extend(std::iter::repeat_n('\n', breaks));
            self.indent(if hanging { self.depth().saturating_sub(1) } else { self.depth() });
        } else if self.space && beginning.is_empty() && !self.out.ends_with(['\n', ' ']) {
            self.out.push(' ');
        }
        self.out.push_str(&beginning);
        (self.breaks, self.space) = (0, false);
        let here = self.out.len();
        for (_, at) in &mut self.marks {
            at.get_or_insert(here);
        }
    }

    /// Puts a text at the end of the line, whatever was to come there.
    pub(super) fn put(&mut self, text: &str) {
        (self.breaks, self.space, self.beginning) = (0, false, None);
        self.out.push_str(text);
    }

    fn depth(&self) -> usize {
        self.lists.len()
    }

    fn indent(&mut self, depth: usize) {
        let indentation = self.indentation(depth);
        self.out.push_str(&indentation);
    }

    /// What lines begin with in the quotes and lists that are open.
    fn indentation(&self, depth: usize) -> String {
        "> ".repeat(self.quotes.min(DEEPEST)) + &"  ".repeat(depth)
    }

    pub(super) fn begin_quote(&mut self) {
        self.paragraph();
        self.quotes += 1;
    }

    pub(super) fn end_quote(&mut self) {
        self.quotes = self.quotes.saturating_sub(1);
        self.paragraph();
    }

    pub(super) fn begin_list(&mut self, number: Option<u32>) {
        if self.lists.is_empty() {
            self.paragraph()
        } else {
            self.lines()
        }
        if self.lists.len() < DEEPEST { self.lists.push(number) } else { self.deeper += 1 }
    }

    pub(super) fn end_list(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else {
            self.lists.pop();
        }
        self.forget_beginning();
        if self.lists.is_empty() { self.paragraph() } else { self.lines() }
    }

    pub(super) fn item(&mut self) {
        self.lines();
        let bullet = match self.lists.last_mut() {
            Some(Some(number)) => {
                let bullet = format!("{number}. ");
                *number = number.saturating_add(1);
                bullet
            }
            _ => "- ".to_owned(),
        };
        self.begin_with(&bullet);
        if let Some((_, hanging)) = &mut self.beginning {
            *hanging = true;
        }
    }

    pub(super) fn rule(&mut self) {
        self.paragraph();
        if self.style == Style::Markdown && !self.inline {
            self.flush();
            self.out.push_str("---");
        }
        self.paragraph();
    }

    /// Whether breaks are spaces from now on.
    pub(super) fn set_inline(&mut self, inline: bool) {
        self.inline = inline;
    }
}
