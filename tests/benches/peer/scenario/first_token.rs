//! Time to the first token of a prompt of about 1,000 tokens.

use crate::client;
use crate::prompts;
use crate::report::{Side, Turn, Unit, compare, pause};
use crate::server::{Ours, Peer, Serve};
use crate::settings::Settings;

/// A list of so many items is a prompt of about a thousand tokens.
const ITEMS: u32 = 110;

pub(crate) fn run(settings: &Settings) {
    let ours = Ours::start(settings, Serve::Api);
    let peer = Peer::start(settings, &[]);
    let figures = [("new prompt", Unit::Time), ("known beginning", Unit::Time)];
    compare(settings, "First token of a long prompt", &figures, |side, seed| {
        let client = match side {
            Side::Ours => &ours.client,
            Side::Peer => &peer.client,
        };
        let list = prompts::price_list(seed, ITEMS);
        let ask = |question: &str| client.stream(&client::request(&prompts::about(&list, question), 2));
        let new = ask("What does item 3 cost?");
        pause();
        let known = ask("Which item costs most?");
        Turn { figures: vec![new.times[0] * 1e3, known.times[0] * 1e3], usage: new.usage.plus(known.usage) }
    });
}
