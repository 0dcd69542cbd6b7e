//! Stretches of text that something is done with when they end.

use url::Url;

use super::Layout;
use crate::html::Style;

/// A stretch of text whose beginning is kept until its end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::html) enum Mark {
    Strong,
    Emphasis,
    Code,
    Pre,
    Link,
    /// What may turn out not to be shown.
    Dropped,
    /// What may turn out to be all that is shown.
    Main,
}

impl Layout {
    pub(super) fn has(&self, mark: Mark) -> bool {
        self.marks.iter().any(|(known, _)| *known == mark)
    }

    pub(super) fn starts_at(&self, mark: Mark) -> Option<usize> {
        self.marks.iter().find(|(known, _)| *known == mark).and_then(|(_, at)| *at)
    }

    fn take(&mut self, mark: Mark) -> Option<usize> {
        let index = self.marks.iter().position(|(known, _)| *known == mark)?;
        self.marks.swap_remove(index).1
    }

    pub(in crate::html) fn open(&mut self, mark: Mark) {
        if !self.has(mark) {
            self.marks.push((mark, None));
        }
    }

    /// Puts signs around what stands since the mark, if it is in one line.
    pub(in crate::html) fn close(&mut self, mark: Mark) {
        let Some(start) = self.take(mark) else { return };
        let Some(inner) = self.out.get(start..) else { return };
        if self.style == Style::Plain || inner.is_empty() || inner.contains('\n') {
            return;
        }
        match mark {
            Mark::Strong => self.surround(start, "**", "**"),
            Mark::Emphasis => self.surround(start, "*", "*"),
            Mark::Code => {
                let ticks = "`".repeat(longest_run(inner) + 1);
                let room = if inner.starts_with('`') || inner.ends_with('`') { " " } else { "" };
                self.surround(start, &format!("{ticks}{room}"), &format!("{room}{ticks}"));
            }
            Mark::Pre | Mark::Link | Mark::Dropped | Mark::Main => {}
        }
    }

    pub(in crate::html) fn close_link(&mut self, target: Option<&Url>) {
        let (Some(start), Some(target)) = (self.take(Mark::Link), target) else { return };
        let Some(inner) = self.out.get(start..) else { return };
        if self.style == Style::Plain || inner.is_empty() || self.is_pre() || self.has(Mark::Code) {
            return;
        }
        let target = written(target);
        if inner.contains('\n') {
            self.out.push_str(&format!(" (<{target}>)"));
        } else {
            self.surround(start, "[", &format!("]({target})"));
        }
    }

    pub(in crate::html) fn is_pre(&self) -> bool {
        self.has(Mark::Pre)
    }

    pub(in crate::html) fn begin_pre(&mut self) {
        if !self.inline {
            self.paragraph();
            self.open(Mark::Pre);
        }
    }

    pub(in crate::html) fn end_pre(&mut self) {
        let Some(start) = self.take(Mark::Pre) else { return };
        let len = self.out.trim_end().len();
        self.truncate(len.max(start));
        if let (Style::Markdown, Some(inner)) = (self.style, self.out.get(start..)) {
            let ticks = "`".repeat((longest_run(inner) + 1).max(3));
            let line = format!("\n{}", self.indentation(self.depth()));
            self.surround(start, &format!("{ticks}{line}"), &format!("{line}{ticks}"));
        }
        self.paragraph();
    }

    fn surround(&mut self, start: usize, before: &str, behind: &str) {
        self.out.insert_str(start, before);
        self.out.push_str(behind);
        let shifted = |at: usize| if at > start { at + before.len() } else { at };
        for (_, at) in &mut self.marks {
            *at = at.map(shifted);
        }
        self.main = self.main.map(|(from, to)| (shifted(from), shifted(to)));
    }

    /// Begins what is dropped or chosen whole, so that what comes before its first word
    /// belongs to it.
    pub(in crate::html) fn open_region(&mut self, mark: Mark) {
        self.marks.push((mark, Some(self.out.len())));
    }

    /// Takes out what stands since the mark.
    pub(in crate::html) fn drop_region(&mut self) {
        if let Some(start) = self.take(Mark::Dropped) {
            self.truncate(start);
            self.beginning = None;
            self.part(2);
        }
    }

    pub(in crate::html) fn end_main(&mut self) {
        if let Some(start) = self.take(Mark::Main) {
            self.main = Some((start, self.out.len()));
        }
    }

    fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
        for (_, at) in &mut self.marks {
            *at = at.filter(|at| *at < len);
        }
        self.main = self.main.filter(|(_, to)| *to <= len);
    }

    /// A picture, which only has words if somebody gave it some.
    pub(in crate::html) fn image(&mut self, alt: &str, target: Option<&Url>) {
        if self.style == Style::Markdown
            && !alt.trim().is_empty()
            && !self.is_pre()
            && let Some(target) = target
        {
            self.flush();
            self.out.push('!');
            let start = self.out.len();
            self.text(alt.trim());
            self.out.insert(start, '[');
            self.out.push_str(&format!("]({})", written(target)));
        }
    }
}

/// A URL, as a link of Markdown has it.
fn written(url: &Url) -> String {
    url.as_str().replace('(', "%28").replace(')', "%29").replace('<', "%3C").replace('>', "%3E")
}

/// The length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|char| char != '`').map(str::len).max().unwrap_or_default()
}
