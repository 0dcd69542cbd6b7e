//! What a model is told of what was found.

use nala_sdk::tools::{Answer, Content, Media};
use serde::Serialize;

use crate::Format;
use crate::charset::{self, Extent};
use crate::follow::{self, Found};
use crate::html::{self, Page, Style};
use crate::kind::{self, ContentType, Kind};
use crate::web::{Fault, Reply, Web};

/// The most bytes of a text, unless something else is asked for.
pub(crate) const TEXT_DEFAULT: usize = 64 << 10;

/// The most bytes of a text that can be asked for.
pub(crate) const TEXT_MOST: usize = 1 << 20;

/// The most bytes of a page that are read: little of them is text.
const PAGE_MOST: usize = 4 << 20;

/// The most bytes of a picture.
const IMAGE_MOST: usize = 1 << 20;

/// How much of the text of an error is told.
const ERROR_MOST: usize = 4 << 10;

#[derive(Serialize)]
struct Told {
    url: String,
    redirects: Vec<String>,
    status: u16,
    content_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    text: String,
    cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// What was read of a body.
struct Taken {
    bytes: Vec<u8>,
    /// Why it is not all.
    cut: Option<String>,
}

impl Taken {
    fn extent(&self) -> Extent {
        if self.cut.is_some() { Extent::Cut } else { Extent::Whole }
    }
}

/// Reads a URL, and tells at most so many bytes of its text.
pub(crate) fn fetch(web: &dyn Web, url: &str, format: Format, most: usize) -> Result<Answer, String> {
    let Found { url, redirects, mut reply } = follow::find(web, url)?;
    let status = reply.status;
    let content_type = reply.header("content-type").unwrap_or_default().to_owned();
    let read = ContentType::read(&content_type);
    let length = reply.length();
    let most = if status >= 400 { most.min(ERROR_MOST) } else { most };
    let what = |kind: &str| {
        let kind = if kind.is_empty() { "of an unknown type" } else { kind };
        let length = length.map_or("unknown".to_owned(), |length| format!("{length} bytes"));
        format!("{url} (status {status}) is {kind}, length {length}")
    };

    if let Some(coding) = reply.header("content-encoding").filter(|coding| !coding.eq_ignore_ascii_case("identity")) {
        return Err(format!("{}, and compressed by {coding:?}, which was not asked for", what(&read.essence)));
    }
    let mut kind = read.kind();
    let limit = match kind {
        Kind::Binary => {
            return Err(format!("{}; only text and pictures (PNG, JPEG, GIF, WebP) are read", what(&read.essence)));
        }
        Kind::Image(_) => IMAGE_MOST,
        Kind::Html | Kind::Unsaid => PAGE_MOST,
        // Nothing is taken out of it, so that more could not be told anyway.
        Kind::Text | Kind::Xml => most,
    };
    if matches!(kind, Kind::Image(_)) && length.is_some_and(|length| length > IMAGE_MOST as u64) {
        return Err(format!("{}; pictures are read up to {IMAGE_MOST} bytes", what(&read.essence)));
    }
    let taken = take(web, &mut reply, limit).map_err(|fault| fault.explain(&url))?;
    if kind == Kind::Unsaid {
        kind = kind::sniffed(&taken.bytes);
    }
    let mut told = Told {
        url: url.to_string(),
        redirects: redirects.iter().map(ToString::to_string).collect(),
        status,
        content_type,
        title: None,
        text: String::new(),
        cut: false,
        note: None,
    };
    if let Kind::Image(_) = kind {
        if status >= 400 {
            return Err(what(&read.essence));
        }
        if let Some(why) = taken.cut {
            return Err(format!("{} and more than can be read: {why}", what(&read.essence)));
        }
        let Some(mime_type) = kind::picture(&taken.bytes) else {
            return Err(format!("{}, but holds no such picture", what(&read.essence)));
        };
        told.text = format!("a picture ({mime_type}) of {} bytes", taken.bytes.len());
        let picture = Content::Image(Media { data: taken.bytes, mime_type: mime_type.to_owned() });
        return answer(&told, vec![picture]);
    }
    if kind == Kind::Binary {
        return Err(format!("{}, and no text by what is in it", what(&read.essence)));
    }

    let text = charset::decode(&taken.bytes, read.charset.as_deref(), kind, taken.extent());
    if kind != Kind::Html && text.contains('\0') {
        return Err(format!("{}, but there are zeros in it, which no text has", what(&read.essence)));
    }
    let page = match (kind, format) {
        (Kind::Html, Format::Text) => html::read(&text, &url, Style::Plain),
        (Kind::Html, Format::Markdown) => html::read(&text, &url, Style::Markdown),
        _ => Page { title: None, text },
    };
    (told.title, told.text) = (page.title, page.text);
    told.note = taken.cut;
    if told.text.len() > most {
        let whole = told.text.len();
        told.text.truncate(told.text.floor_char_boundary(most));
        let cut = format!("these are {} of {whole} bytes of text", told.text.len());
        told.note = Some(told.note.map_or_else(|| cut.clone(), |note| format!("{cut}; {note}")));
    }
    told.cut = told.note.is_some();
    if status >= 400 {
        let Told { url, text, .. } = told;
        let begins = if text.is_empty() { String::new() } else { format!(":\n\n{text}") };
        return Err(format!("{url} was answered with status {status}{begins}"));
    }
    answer(&told, Vec::new())
}

/// Reads a body up to a limit. What came before a fault counts.
fn take(web: &dyn Web, reply: &mut Reply, limit: usize) -> Result<Taken, Fault> {
    let length = reply.length();
    let mut bytes = Vec::new();
    for part in reply.body.by_ref() {
        match part {
            Ok(part) => bytes.extend_from_slice(&part),
            Err(Fault::Failed(why)) if !bytes.is_empty() => return Ok(Taken { bytes, cut: Some(why) }),
            Err(fault) => return Err(fault),
        }
        web.report(bytes.len().min(limit), length);
        if bytes.len() > limit {
            bytes.truncate(limit);
            return Ok(Taken { bytes, cut: Some(format!("the first {limit} bytes were read")) });
        }
    }
    Ok(Taken { bytes, cut: None })
}

/// The text for people and models, with the rest as JSON.
fn answer(told: &Told, more: Vec<Content>) -> Result<Answer, String> {
    let mut head = String::new();
    for url in &told.redirects {
        head.push_str(&format!("{url} redirects to\n"));
    }
    head.push_str(&format!("{} (status {}", told.url, told.status));
    if !told.content_type.is_empty() {
        head.push_str(&format!(", {}", told.content_type));
    }
    head.push_str(")\n");
    if let Some(title) = &told.title {
        head.push_str(&format!("Title: {title}\n"));
    }
    if let Some(note) = &told.note {
        head.push_str(&format!("Cut: {note}\n"));
    }
    let mut content = vec![Content::Text(format!("{head}\n{}", told.text))];
    content.extend(more);
    let structured = Some(serde_json::to_string(told).map_err(|error| error.to_string())?);
    Ok(Answer { content, structured, is_error: false })
}

#[cfg(test)]
mod tests;
