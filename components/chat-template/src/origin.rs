//! Who wrote which part of a prompt.
//!
//! Control tokens (`<|im_end|>`, `</s>`, …) are ordinary text in a template. If a
//! user's text were tokenised in the same way, whoever writes `<|im_end|>` into a
//! message could end the turn and speak as the system. So text from outside has
//! to be told apart from the template's, through whatever the template does to
//! it, and without a list of the control tokens of all models.
//!
//! It does not help to see which *part of the template* printed a text: many
//! templates, ChatML's among them, print control token, role and content in one
//! expression, `{{ '<|im_start|>' + role + '\n' + content + '<|im_end|>' }}`.
//! What is followed are the characters themselves:
//!
//! 1. The template is rendered with the conversation as it is. That text is the
//!    prompt; nothing below can change a byte of it.
//! 2. It is rendered again, with a mark behind **every character from outside**
//!    that is not white space. The mark is a private-use code point that occurs
//!    nowhere in the template or the conversation. Concatenation, trimming,
//!    splitting at white space, `tojson`, upper case and loops carry the marks
//!    along. If the text without its marks is the prompt, then what is marked is
//!    from outside, and the rest is the template's.
//! 3. The texts differ where the template looks *into* a message and found
//!    something: `'</think>' in content`, `content.startswith('<tool_response>')`.
//!    Then it is rendered with marks that spare those string constants of the
//!    template's statements, then those of all its expressions. Wherever a spared
//!    constant is printed by an expression, it counts as from outside, even if it
//!    is the template's own: that costs a template which prints the same text
//!    from a constant, but nobody gains a control token.
//! 4. If that fails too (the template counts characters, say), everything that
//!    expressions print counts as from outside, except for constants that no
//!    cutting and joining of the conversation can have made: it has none of their
//!    words, and lacks one of their punctuation characters.
//!
//! Every way errs to the same side: text may lose its right to name control
//! tokens, and then the model sees a strange prompt; text from outside never
//! gains it. White space is free of all this: between characters from outside it
//! goes with them, and so do blanks before them, because tokenisers join a blank
//! with the word behind it.

use minijinja::OutputSpanKind;

use crate::conversation::Conversation;
use crate::engine::{Program, Rendered};
use crate::scan::Place;
use crate::source::Source;
use crate::{Error, Origin, Piece};

/// Cuts a prompt into pieces that say who wrote them. `plain` is what `program`
/// made of the conversation; `mark` comes from [`unused`], and `program` knows it.
pub(crate) fn of(
    program: &Program<'_>,
    source: &Source<'_>,
    mark: char,
    conversation: &Conversation,
    plain: &Rendered,
) -> Vec<Piece> {
    let render_marked = |spared: &[String]| {
        let variables = conversation.variables(&mut |text| marked(text, mark, spared));
        let rendered = program.render(&variables).ok()?;
        let (text, from_outside) = resolve(&rendered, mark, spared);
        (text == plain.text).then(|| pieces(&text, from_outside))
    };
    if let Some(pieces) = render_marked(&[]) {
        return pieces;
    }

    let outside = outside(conversation);
    let constants = source.constants();
    // Only what the conversation contains can have been found in it.
    let found =
        |constant: &String| !constant.trim().is_empty() && outside.iter().any(|text| text.contains(constant.as_str()));
    let spared = |places: &[Place]| -> Vec<String> {
        let in_place = constants.iter().filter(|(place, _)| places.contains(place));
        in_place.map(|(_, constant)| constant).filter(|text| found(text)).cloned().collect()
    };
    let in_statements = spared(&[Place::Statement]);
    let everywhere = spared(&[Place::Statement, Place::Expression]);
    if let Some(pieces) = render_marked(&in_statements).or_else(|| render_marked(&everywhere)) {
        return pieces;
    }

    let special = [&conversation.others.bos, &conversation.others.eos].into_iter().flatten().cloned();
    let trusted: Vec<String> = constants
        .into_iter()
        .map(|(_, constant)| constant)
        .chain(special)
        .filter(|constant| out_of_reach(constant, &outside))
        .collect();
    let from_outside = distrust(plain, &trusted);
    pieces(&plain.text, from_outside)
}

/// The texts of a conversation that are from outside.
fn outside(conversation: &Conversation) -> Vec<String> {
    let mut outside = Vec::new();
    conversation.variables(&mut |text| {
        outside.push(text.to_owned());
        text.to_owned()
    });
    outside
}

/// A code point that occurs neither in a template nor in a conversation.
///
/// # Errors
/// [`Error::Invalid`] for a conversation that uses up all private-use code points.
pub(crate) fn unused(source: &Source<'_>, conversation: &Conversation) -> Result<char, Error> {
    let outside = outside(conversation);
    let texts = || outside.iter().map(String::as_str).chain([source.text()]);
    // The private-use area of the basic plane. The usual conversation has none
    // of it, so the first one will do.
    ('\u{e000}'..='\u{f8ff}').find(|candidate| !texts().any(|text| text.contains(*candidate))).ok_or_else(|| {
        Error::Invalid("the conversation contains every private-use character (U+E000 to U+F8FF)".to_owned())
    })
}

/// The text with a mark behind every character that is not white space, except
/// in the spared constants.
fn marked(text: &str, mark: char, spared: &[String]) -> String {
    let mut out = String::with_capacity(text.len() * 4);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let longest = spared.iter().filter(|constant| rest.starts_with(*constant)).map(String::len).max();
        let (whole, after) = rest.split_at(longest.unwrap_or(c.len_utf8()));
        out.push_str(whole);
        if longest.is_none() && !c.is_whitespace() {
            out.push(mark);
        }
        rest = after;
    }
    out
}

/// Takes the marks out of a text, and says for each of its bytes whether it is
/// from outside.
fn resolve(rendered: &Rendered, mark: char, spared: &[String]) -> (String, Vec<bool>) {
    let mut spared_here = vec![false; if spared.is_empty() { 0 } else { rendered.text.len() }];
    for span in &rendered.spans {
        if spared.is_empty() || span.kind() != OutputSpanKind::Expression {
            continue;
        }
        let range = span.output_range();
        let printed = rendered.text.get(range.clone()).unwrap_or_default();
        for constant in spared {
            flag_all(printed, constant, range.start, &mut spared_here);
        }
    }

    let mut text = String::with_capacity(rendered.text.len());
    let mut from_outside = Vec::with_capacity(rendered.text.len());
    let mut chars = rendered.text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == mark {
            continue;
        }
        let is_marked = chars.peek().is_some_and(|(_, next)| *next == mark);
        let is_spared = spared_here.get(at).copied().unwrap_or(false);
        text.push(c);
        from_outside.resize(text.len(), is_marked || is_spared);
    }
    (text, from_outside)
}

/// Flags every occurrence of a constant, overlapping ones too.
fn flag_all(text: &str, constant: &str, offset: usize, flags: &mut [bool]) {
    for (at, _) in text.char_indices() {
        if text.get(at..).is_some_and(|rest| rest.starts_with(constant)) {
            let range = offset + at..offset + at + constant.len();
            if let Some(flags) = flags.get_mut(range) {
                flags.fill(true);
            }
        }
    }
}

/// All that expressions print is from outside, except for trusted constants.
fn distrust(rendered: &Rendered, trusted: &[String]) -> Vec<bool> {
    let mut from_outside = vec![false; rendered.text.len()];
    for span in &rendered.spans {
        if span.kind() != OutputSpanKind::Expression {
            continue;
        }
        let range = span.output_range();
        let printed = rendered.text.get(range.clone()).unwrap_or_default();
        let mut own = vec![false; printed.len()];
        for constant in trusted {
            flag_all(printed, constant, 0, &mut own);
        }
        for (flag, own) in from_outside.iter_mut().skip(range.start).zip(own) {
            *flag = !own;
        }
    }
    from_outside
}

/// Whether no cutting and joining of the conversation can have made a constant:
/// it has a punctuation character and words, none of which the conversation has.
fn out_of_reach(constant: &str, outside: &[String]) -> bool {
    let occurs = |part: &str| outside.iter().any(|text| text.contains(part));
    let is_word = |c: char| c.is_alphanumeric();
    let punctuation = constant.chars().filter(|c| !is_word(*c) && !c.is_whitespace()).map(String::from);
    let mut words = constant.split(|c| !is_word(c)).filter(|word| !word.is_empty());
    punctuation.into_iter().any(|c| !occurs(&c)) && !words.any(occurs)
}

/// Cuts a text where its origin changes.
fn pieces(text: &str, mut from_outside: Vec<bool>) -> Vec<Piece> {
    adopt_white_space(text, &mut from_outside);
    let mut pieces: Vec<Piece> = Vec::new();
    for (at, c) in text.char_indices() {
        let origin = match from_outside.get(at) {
            Some(false) => Origin::Template,
            _ => Origin::User,
        };
        match pieces.last_mut() {
            Some(piece) if piece.origin == origin => piece.text.push(c),
            _ => pieces.push(Piece { origin, text: c.to_string() }),
        }
    }
    pieces
}

/// White space between characters from outside goes with them, and so do the
/// blanks before them.
fn adopt_white_space(text: &str, from_outside: &mut [bool]) {
    // Where the white space before the current character begins, and whether
    // what is before that is from outside; and where its last blanks begin.
    let (mut gap, mut blanks, mut inside) = (0, 0, false);
    for (at, c) in text.char_indices() {
        let flag = from_outside.get(at).copied().unwrap_or(true);
        if c.is_whitespace() && !flag {
            if c != ' ' {
                blanks = at + c.len_utf8();
            }
            continue;
        }
        if flag && let Some(flags) = from_outside.get_mut(if inside { gap } else { blanks }..at) {
            flags.fill(true);
        }
        inside = flag;
        gap = at + c.len_utf8();
        blanks = gap;
    }
}
