//! Makes conversations fit for templates that do not know all that is in them.
//!
//! What a template knows is found out by trial: a small conversation with words
//! that no template has is rendered, and the words are looked for. Only what the
//! conversation at hand needs is tried, so a plain one costs nothing but a look at
//! whether the last question is in the prompt.
//!
//! | in the conversation | if the template does not know it |
//! |---|---|
//! | `developer` | becomes `system` ([`roles`]) |
//! | several leading `system` messages | become one |
//! | any other `system` message | is put before the next user's message |
//! | tools | are told of in words ([`tools`], [`words`]) |
//! | calls, their results | are written out ([`words`]) |
//! | arguments of calls as an object | are shown as JSON text |
//! | calls without content | have an empty one |
//! | several calls in a message | become messages of their own, each with its result |
//! | content in parts | is joined by line breaks ([`parts`]) |
//! | content as a string | becomes a list of one part |
//! | what makes it refuse or fail | see [`remedies`] |

mod parts;
mod remedies;
mod roles;
mod tools;
mod words;

use crate::conversation::{Conversation, Turn};
use crate::engine::{Program, Rendered};
use crate::source::Source;
use crate::{Content, Error};

/// A conversation in the form in which the template renders it, and the prompt.
pub(crate) fn fit(
    program: &Program<'_>,
    source: &Source<'_>,
    mut conversation: Conversation,
    now: u64,
) -> Result<(Conversation, Rendered), Error> {
    roles::developer(program, source, &mut conversation);
    tools::fit(program, &mut conversation, now);
    roles::system(program, &mut conversation);
    parts::joined(program, &mut conversation);

    let rendered = match render(program, &conversation) {
        Ok(rendered) => rendered,
        Err(error) => return remedies::find(program, conversation, error, now),
    };
    if says_last(&conversation, &rendered.text) {
        return Ok((conversation, rendered));
    }
    // A template that knows parts alone walks over the characters of a string.
    match parts::split(program, &conversation) {
        Some(split) => {
            let rendered = render(program, &split)?;
            Ok((split, rendered))
        }
        None => Ok((conversation, rendered)),
    }
}

fn render(program: &Program<'_>, conversation: &Conversation) -> Result<Rendered, Error> {
    program.render(&conversation.variables(&mut str::to_owned))
}

/// What a template prints, if it does not fail.
fn trial(program: &Program<'_>, conversation: &Conversation) -> Option<String> {
    render(program, conversation).ok().map(|rendered| rendered.text)
}

/// Whether the template prints all the words, which are in the messages.
fn shows(program: &Program<'_>, like: &Conversation, turns: Vec<Turn>, words: &[&str]) -> bool {
    let printed = trial(program, &like.instead(turns, Vec::new()));
    printed.is_some_and(|text| words.iter().all(|word| text.contains(word)))
}

/// Whether the user's last message is in the prompt, as far as can be told from its
/// first line.
fn says_last(conversation: &Conversation, prompt: &str) -> bool {
    let last = conversation.turns.iter().rev().find(|turn| turn.role == "user");
    match last.map(|turn| &turn.content) {
        Some(Content::Text(text)) => {
            let line = text.trim().lines().next().unwrap_or_default();
            prompt.contains(line.trim())
        }
        _ => true,
    }
}
