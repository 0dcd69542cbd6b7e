//! Content in parts, and templates that know nothing else.

use super::trial;
use crate::Content;
use crate::conversation::{Conversation, Turn};
use crate::engine::Program;
use crate::manner::Prose;

/// Joins the parts of messages whose role has no parts in the template.
pub(super) fn joined(program: &Program<'_>, conversation: &mut Conversation) {
    let in_parts = |turn: &Turn| matches!(turn.content, Content::Parts(_));
    let mut known: Vec<(String, bool)> = Vec::new();
    for index in 0..conversation.turns.len() {
        let Some(turn) = conversation.turns.get(index).filter(|turn| in_parts(turn)) else { continue };
        let role = turn.role.clone();
        let knows = match known.iter().find(|(other, _)| *other == role) {
            Some((_, knows)) => *knows,
            None => {
                let knows = knows_parts(program, conversation, &role);
                known.push((role, knows));
                knows
            }
        };
        if let Some(turn) = conversation.turns.get_mut(index).filter(|_| !knows) {
            turn.content = Content::Text(turn.text());
        }
    }
}

/// The conversation with all texts as lists of one part, if that is all that the
/// template knows.
pub(super) fn split(program: &Program<'_>, conversation: &Conversation) -> Option<Conversation> {
    let mut trial_of = conversation.instead(vec![Turn::new("user", "partqa")], Vec::new());
    if trial(program, &trial_of).is_none_or(|text| text.contains("partqa")) {
        return None;
    }
    trial_of.manner.prose = Prose::Parts;
    if !trial(program, &trial_of).is_some_and(|text| text.contains("partqa")) {
        return None;
    }
    let mut split = conversation.clone();
    split.manner.prose = Prose::Parts;
    Some(split)
}

/// Whether the template prints the parts of a message, and not the list as such.
fn knows_parts(program: &Program<'_>, like: &Conversation, role: &str) -> bool {
    let with = |content: Content| {
        let turn = Turn { content, ..Turn::new(role, "") };
        let turns = match role {
            "user" => vec![turn],
            "system" | "developer" => vec![turn, Turn::new("user", "partqc")],
            "assistant" => vec![Turn::new("user", "partqc"), turn, Turn::new("user", "partqd")],
            _ => return None,
        };
        trial(program, &like.instead(turns, Vec::new()))
    };
    let parts = with(Content::Parts(vec!["partqa".to_owned(), "partqb".to_owned()]));
    let Some(parts) = parts.filter(|text| text.contains("partqa") && text.contains("partqb")) else { return false };
    let keys = |text: &str| text.matches("text").count();
    with(Content::Text("partqa".to_owned())).is_none_or(|text| keys(&text) == keys(&parts))
}
