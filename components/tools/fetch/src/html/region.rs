//! Which parts of a page are shown.

use super::Attributes;
use super::layout::{Layout, Mark};

/// What a main part has at least, in bytes, to be all that is shown.
const ENOUGH: usize = 200;

/// The parts that are left out and the one that is the main one.
///
/// A part ends with the tag that closes it. One that nothing closes is taken for what it
/// does not look like, so that no page loses all that follows.
#[derive(Debug, Default)]
pub(super) struct Regions {
    keeps: bool,
    dropped: Option<Open>,
    main: Option<Open>,
    had_main: bool,
}

/// An element, and how many of its name are open in it.
#[derive(Debug)]
struct Open {
    name: Vec<u8>,
    depth: usize,
}

impl Open {
    /// Counts a tag of the element's name. True: it has ended.
    fn closes(&mut self, name: &[u8]) -> bool {
        self.depth -= usize::from(self.name == name);
        self.depth == 0
    }
}

impl Regions {
    /// Those of a page that shows all that it has.
    pub(super) fn keeping() -> Self {
        Self { keeps: true, ..Self::default() }
    }

    /// Whether a drawing is open, whose tags follow the rules of XML.
    pub(super) fn is_drawing(&self) -> bool {
        self.dropped.as_ref().is_some_and(|open| matches!(open.name.as_slice(), b"svg" | b"math"))
    }

    pub(super) fn starts(&mut self, name: &[u8], attributes: &Attributes, layout: &mut Layout) {
        for open in [&mut self.dropped, &mut self.main].into_iter().flatten() {
            open.depth += usize::from(open.name == name);
        }
        if matches!(name, b"img" | b"hr" | b"base" | b"link") || layout.is_pre() {
            return;
        }
        let open = || Some(Open { name: name.to_vec(), depth: 1 });
        let is = |attribute: &[u8], value: &[u8]| attributes.get(attribute).is_some_and(|said| **said == value);
        if self.dropped.is_none() && (is_foreign(name) || (!self.keeps && (name == b"nav" || is_hidden(attributes)))) {
            self.dropped = open();
            layout.open_region(Mark::Dropped);
        }
        if !self.had_main && (name == b"main" || is(b"role", b"main")) {
            (self.main, self.had_main) = (open(), true);
            layout.open_region(Mark::Main);
        }
    }

    pub(super) fn ends(&mut self, name: &[u8], layout: &mut Layout) {
        if self.main.as_mut().is_some_and(|open| open.closes(name)) {
            self.main = None;
            layout.end_main();
        }
        if self.dropped.as_mut().is_some_and(|open| open.closes(name)) {
            self.dropped = None;
            layout.drop_region();
        }
    }

    /// The text that is shown, of all and of where its main part is.
    pub(super) fn chosen(&self, (text, main): (String, Option<(usize, usize)>)) -> String {
        let main = main.and_then(|(from, to)| text.get(from..to)).map(str::trim);
        main.filter(|main| main.len() >= ENOUGH && !self.keeps).unwrap_or_else(|| text.trim()).to_owned()
    }
}

/// What holds no text of the page, or text for those who cannot see it.
fn is_foreign(name: &[u8]) -> bool {
    matches!(name, b"svg" | b"template" | b"select" | b"datalist" | b"canvas" | b"audio" | b"video" | b"object")
}

fn is_hidden(attributes: &Attributes) -> bool {
    let value = |name: &[u8]| attributes.get(name).map(|value| value.to_ascii_lowercase());
    let style: Vec<u8> = value(b"style").unwrap_or_default().into_iter().filter(|byte| *byte != b' ').collect();
    attributes.contains_key(b"hidden".as_slice())
        || value(b"aria-hidden").is_some_and(|value| value == b"true")
        || style.windows(b"display:none".len()).any(|part| part == b"display:none")
}
