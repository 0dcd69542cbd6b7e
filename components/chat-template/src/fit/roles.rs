//! Messages of `system` and `developer`.

use super::shows;
use crate::Content;
use crate::conversation::{Conversation, Turn};
use crate::engine::Program;
use crate::source::Source;

/// Between texts that become one.
const BREAK: &str = "\n\n";

/// Turns `developer` into `system` where the template does not know it. Templates
/// that print any role would print this one too, to a model that has never seen
/// it, so the template has to name it.
pub(super) fn developer(program: &Program<'_>, source: &Source<'_>, conversation: &mut Conversation) {
    if conversation.turns.iter().all(|turn| turn.role != "developer") {
        return;
    }
    let named = source.constants().iter().any(|(_, constant)| constant == "developer");
    let turns = || vec![Turn::new("developer", "wishqa"), Turn::new("user", "wishqb")];
    if named && shows(program, conversation, turns(), &["wishqa", "wishqb"]) {
        return;
    }
    for turn in conversation.turns.iter_mut().filter(|turn| turn.role == "developer") {
        turn.role = "system".to_owned();
    }
}

/// Moves the system messages to where the template knows them.
pub(super) fn system(program: &Program<'_>, conversation: &mut Conversation) {
    let is_system = |turn: &Turn| turn.role == "system";
    if !conversation.turns.iter().any(is_system) {
        return;
    }
    let user = |word| Turn::new("user", word);
    let one = vec![Turn::new("system", "wishqa"), user("wishqb")];
    if !shows(program, conversation, one, &["wishqa", "wishqb"]) {
        displace(&mut conversation.turns, 0);
        return;
    }
    let leading = conversation.turns.iter().take_while(|turn| is_system(turn)).count();
    if leading > 1 {
        let two = vec![Turn::new("system", "wishqa"), Turn::new("system", "wishqc"), user("wishqb")];
        if !shows(program, conversation, two, &["wishqa", "wishqb", "wishqc"]) {
            join(&mut conversation.turns, leading);
        }
    }
    let leading = conversation.turns.iter().take_while(|turn| is_system(turn)).count();
    if conversation.turns.iter().skip(leading).any(is_system) {
        let mut late: Vec<Turn> =
            conversation.turns.iter().take(leading.min(1)).map(|_| Turn::new("system", "wishqa")).collect();
        late.extend([user("wishqb"), Turn::new("assistant", "wishqd"), Turn::new("system", "wishqc"), user("wishqe")]);
        let all_words = ["wishqa", "wishqb", "wishqc", "wishqd", "wishqe"];
        let words = all_words.get(1 - leading.min(1)..).unwrap_or_default();
        if !shows(program, conversation, late, words) {
            displace(&mut conversation.turns, leading);
        }
    }
}

/// Makes the first messages one.
fn join(turns: &mut Vec<Turn>, count: usize) {
    let texts: Vec<String> = turns.drain(..count).map(|turn| turn.text()).collect();
    turns.insert(0, Turn::new("system", texts.join(BREAK)));
}

/// Puts the system messages from a place on before the next message of the user,
/// or behind the last where there is none.
fn displace(turns: &mut Vec<Turn>, from: usize) {
    let mut wishes: Vec<String> = Vec::new();
    let mut kept = Vec::with_capacity(turns.len());
    for (index, mut turn) in turns.drain(..).enumerate() {
        if index >= from && turn.role == "system" {
            wishes.push(turn.text());
            continue;
        }
        if turn.role == "user" && !wishes.is_empty() {
            put_before(&mut turn.content, &wishes.join(BREAK));
            wishes.clear();
        }
        kept.push(turn);
    }
    if !wishes.is_empty() {
        let wish = wishes.join(BREAK);
        match kept.last_mut().filter(|turn| turn.role == "user") {
            Some(last) => put_behind(&mut last.content, &wish),
            None => kept.push(Turn::new("user", wish)),
        }
    }
    *turns = kept;
}

fn put_before(content: &mut Content, text: &str) {
    match content {
        Content::None => *content = Content::Text(text.to_owned()),
        Content::Text(own) => *own = format!("{text}{BREAK}{own}"),
        Content::Parts(parts) => parts.insert(0, text.to_owned()),
    }
}

pub(super) fn put_behind(content: &mut Content, text: &str) {
    match content {
        Content::None => *content = Content::Text(text.to_owned()),
        Content::Text(own) => *own = format!("{own}{BREAK}{text}"),
        Content::Parts(parts) => parts.push(text.to_owned()),
    }
}
