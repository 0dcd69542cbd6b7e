//! Pages as text.
//!
//! A page is read token by token, without a tree: what an element does to the text
//! begins with its tag and ends with the next one that closes it. That takes time and
//! memory by the bytes of a page only, whatever its tags are.

mod grid;
mod layout;
mod region;

use std::collections::BTreeMap;

use html5gum::{HtmlString, Spanned, Token, Tokenizer, naive_next_state};
use url::Url;

use grid::Grids;
use layout::{Layout, Mark};
use region::Regions;

/// The longest title in characters.
const TITLE: usize = 300;

/// The longest target of a link in bytes. What is longer holds data.
const TARGET: usize = 2048;

/// The most bytes that a page becomes.
const LONGEST: usize = 8 << 20;

/// What text is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Markdown,
}

/// A page as text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
}

/// Reads a page that was found at a URL.
pub(crate) fn read(html: &str, url: &Url, style: Style) -> Page {
    let page = Reader::new(url, style, Regions::default()).read(html);
    // Some pages are nothing but navigation, or say so of all that they have.
    if page.text.is_empty() { Reader::new(url, style, Regions::keeping()).read(html) } else { page }
}

type Attributes = BTreeMap<HtmlString, Spanned<HtmlString, ()>>;

struct Reader {
    style: Style,
    base: Url,
    layout: Layout,
    grids: Grids,
    regions: Regions,
    /// The element whose text is no text of the page, up to the tag that closes it.
    silent: Option<Vec<u8>>,
    /// The first title, when it has ended.
    title: Option<String>,
    title_so_far: String,
    link: Option<Url>,
}

impl Reader {
    fn new(url: &Url, style: Style, regions: Regions) -> Self {
        Self {
            style,
            base: url.clone(),
            layout: Layout::new(style),
            grids: Grids::default(),
            regions,
            silent: None,
            title: None,
            title_so_far: String::new(),
            link: None,
        }
    }

    fn read(mut self, html: &str) -> Page {
        let mut tokens = Tokenizer::new(html);
        while let Some(Ok(token)) = tokens.next() {
            match token {
                // In drawings, a tag may end itself.
                Token::StartTag(tag) if tag.self_closing && self.regions.is_drawing() => {}
                Token::StartTag(tag) => {
                    self.starts(&tag.name, &tag.attributes);
                    // Scripts and the like end with their own tags only.
                    if let Some(state) = naive_next_state(&tag.name) {
                        tokens.set_state(state);
                    }
                }
                Token::EndTag(tag) => self.ends(&tag.name),
                Token::String(text) => {
                    let text = String::from_utf8_lossy(&text);
                    match self.silent.as_deref() {
                        Some(b"title") if self.title.is_none() => self.title_so_far.push_str(&text),
                        Some(_) => {}
                        None => self.layout.text(&text),
                    }
                }
                Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
            }
            if self.layout.len() > LONGEST {
                break;
            }
        }
        self.grids.end_all(&mut self.layout);
        self.layout.end_pre();
        if self.title.is_none() {
            self.name();
        }
        Page { text: self.regions.chosen(self.layout.finish()), title: self.title.filter(|title| !title.is_empty()) }
    }

    fn name(&mut self) {
        let words: Vec<&str> = self.title_so_far.split_whitespace().collect();
        self.title = Some(words.join(" ").chars().take(TITLE).collect());
    }

    fn starts(&mut self, name: &[u8], attributes: &Attributes) {
        let attribute = |name: &[u8]| Some(String::from_utf8_lossy(&attributes.get(name)?.value).into_owned());
        match name {
            b"script" | b"style" | b"title" | b"noscript" | b"iframe" | b"textarea" | b"noembed" => {
                self.silent = Some(name.to_vec());
                return;
            }
            b"br" => return self.layout.line(),
            b"wbr" | b"input" | b"meta" | b"source" | b"col" | b"area" | b"embed" | b"track" | b"param" => return,
            _ => {}
        }
        self.regions.starts(name, attributes, &mut self.layout);
        if self.layout.is_pre() {
            return;
        }
        if let Some(level) = heading(name) {
            self.layout.paragraph();
            if self.style == Style::Markdown {
                self.layout.begin_with(&format!("{} ", "#".repeat(level)));
            }
            return;
        }
        match name {
            b"base" => {
                if let Some(base) = attribute(b"href").and_then(|href| self.target(&href)) {
                    self.base = base;
                }
            }
            b"a" => {
                self.end_link();
                self.link = attribute(b"href").and_then(|href| self.target(&href));
                self.layout.open(Mark::Link);
            }
            b"img" => {
                let target = attribute(b"src").and_then(|src| self.target(&src));
                self.layout.image(attribute(b"alt").as_deref().unwrap_or_default(), target.as_ref());
            }
            b"strong" | b"b" => self.layout.open(Mark::Strong),
            b"em" | b"i" => self.layout.open(Mark::Emphasis),
            b"code" | b"kbd" | b"samp" | b"tt" => self.layout.open(Mark::Code),
            b"pre" => self.layout.begin_pre(),
            b"hr" => self.layout.rule(),
            b"blockquote" => self.layout.begin_quote(),
            b"ul" | b"menu" => self.layout.begin_list(None),
            b"ol" => self.layout.begin_list(Some(attribute(b"start").and_then(|n| n.parse().ok()).unwrap_or(1))),
            b"li" => self.layout.item(),
            b"table" => self.grids.begin(&mut self.layout),
            b"tr" => self.grids.row(&mut self.layout),
            b"td" | b"th" => self.grids.cell(name == b"th", self.style, &mut self.layout),
            _ => self.block(name),
        }
    }

    fn ends(&mut self, name: &[u8]) {
        if self.silent.as_deref() == Some(name) {
            self.silent = None;
            if name == b"title" && self.title.is_none() {
                self.name();
            }
            return;
        }
        if name == b"pre" {
            self.layout.end_pre();
        }
        self.regions.ends(name, &mut self.layout);
        if self.layout.is_pre() {
            return;
        }
        if heading(name).is_some() {
            self.layout.forget_beginning();
            return self.layout.paragraph();
        }
        match name {
            b"a" => self.end_link(),
            b"strong" | b"b" => self.layout.close(Mark::Strong),
            b"em" | b"i" => self.layout.close(Mark::Emphasis),
            b"code" | b"kbd" | b"samp" | b"tt" => self.layout.close(Mark::Code),
            b"blockquote" => self.layout.end_quote(),
            b"ul" | b"ol" | b"menu" => self.layout.end_list(),
            b"li" => {
                self.layout.forget_beginning();
                self.layout.lines();
            }
            b"table" => self.grids.end(&mut self.layout),
            b"tr" => self.grids.end_row(&mut self.layout),
            _ => self.block(name),
        }
    }

    /// What stands apart from what is before it.
    fn block(&mut self, name: &[u8]) {
        match name {
            b"p" | b"dl" | b"figure" | b"details" | b"main" | b"article" | b"section" | b"header" | b"footer"
            | b"form" | b"fieldset" | b"aside" | b"nav" => self.layout.paragraph(),
            b"div" | b"dt" | b"dd" | b"caption" | b"option" | b"address" | b"figcaption" | b"summary" | b"legend"
            | b"body" | b"html" | b"head" | b"center" => self.layout.lines(),
            _ => {}
        }
    }

    fn end_link(&mut self) {
        let target = self.link.take();
        self.layout.close_link(target.as_ref());
    }

    /// Where a link leads, if it is a place that can be named.
    fn target(&self, href: &str) -> Option<Url> {
        let href = href.trim();
        if href.len() > TARGET || href.starts_with('#') {
            return None;
        }
        self.base.join(href).ok().filter(|url| matches!(url.scheme(), "http" | "https" | "mailto"))
    }
}

/// The level of a heading.
fn heading(name: &[u8]) -> Option<usize> {
    match name {
        [b'h', level @ b'1'..=b'6'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
