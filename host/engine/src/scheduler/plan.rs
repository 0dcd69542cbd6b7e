//! What goes into the next batch.
//!
//! Running generations come first, so that nobody's stream waits for somebody
//! else's prompt; prompts fill the rest, in the order of service, and beside running
//! generations only in chunks. Those of a tenant that has held others up for long enough
//! come last, and have what the step can spare (see [`super::company`]).

use crate::command::SessionId;
use crate::config::EngineConfig;

/// A sequence that has tokens to decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) id: SessionId,
    /// Tokens to decode, at least 1.
    pub(super) todo: u32,
    /// Cells it needs before it is done with them: those, and the ones of the
    /// state that it begins with.
    pub(super) cells: u32,
    /// Whether it has a sequence in the backend.
    pub(super) placed: bool,
    /// Whether it holds cells of what it is computing.
    pub(super) begun: bool,
    /// Whether it is a prompt whose tenant has held others up enough.
    pub(super) yields: bool,
    /// Whether somebody who has not may come at any moment, and would wait for it.
    pub(super) is_watched: bool,
    /// Whether much of its state is to be copied before it goes on. All wait for that.
    pub(super) copies: bool,
    /// Whether it is one whose tenant holds more than its share, and is to leave some room
    /// to others before it begins.
    pub(super) leaves_room: bool,
    /// The adapter it is computed with.
    pub(super) adapter: Option<usize>,
}

/// What the backend has to give.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) batch_tokens: u32,
    /// Tokens of prompts, so that the step does not last too long.
    pub(super) prompt_tokens: u32,
    /// Those of them for candidates that yield.
    pub(super) spare_tokens: u32,
    /// The same for those that are watched, where nobody waits for the step.
    pub(super) watched_tokens: u32,
    /// Whether somebody waits for the end of the step who is not in it.
    pub(super) is_awaited: bool,
    pub(super) cells: u32,
    pub(super) sequences: u32,
    /// Cells that are left by who leaves room, see [`super::reserve`].
    pub(super) reserve: u32,
}

/// A share of the next batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) id: SessionId,
    pub(super) tokens: u32,
    pub(super) of: Of,
}

/// What the tokens of a share are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Those that a running generation has chosen.
    Run,
    /// Those of a prompt.
    Prompt,
    /// Those of a prompt that has what the batch can spare.
    Spare,
}

/// The next batch, and who had to be left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) shares: Vec<Share>,
    /// Those that lack cells or a sequence.
    pub(super) blocked: Vec<SessionId>,
    /// Those that could begin, but would leave others no room.
    pub(super) tight: Vec<SessionId>,
    /// Those whose tenants have held others up enough.
    pub(super) held: Vec<SessionId>,
}

/// Cells kept free for each running generation when a prompt is admitted, so
/// that the prompt does not force one of them out at once.
pub(super) const HEADROOM: u32 = 16;

/// Plans the next batch. All are of one adapter, and both lists are in the order of service.
pub(super) fn plan(decodes: &[Candidate], prompts: &[Candidate], mut room: Room, config: &EngineConfig) -> Plan {
    let mut plan = Plan::default();
    let mut tokens_left = room.batch_tokens;
    for candidate in decodes {
        if tokens_left == 0 {
            break;
        }
        let tokens = candidate.todo.min(tokens_left);
        if !take(&mut room, candidate, tokens, tokens) {
            plan.blocked.push(candidate.id);
            continue;
        }
        tokens_left -= tokens;
        plan.shares.push(Share { id: candidate.id, tokens, of: Of::Run });
    }
    let running = u32::try_from(decodes.len()).unwrap_or(u32::MAX);
    tokens_left = tokens_left.min(room.prompt_tokens);
    if running > 0 {
        tokens_left = tokens_left.min(config.prefill_chunk.max(1));
    }
    let headroom = HEADROOM.saturating_mul(running);
    // Nobody overtakes a prompt that waits for cells, or it would never find
    // enough of them, nor one that waits for a sequence, unless it has its own. Who
    // has begun goes on: it would keep the cells that it holds.
    let mut closed = false;
    // Those that yield come last.
    let (first, last): (Vec<&Candidate>, Vec<&Candidate>) = prompts.iter().partition(|candidate| !candidate.yields);
    let mut is_shared = room.is_awaited || !plan.shares.is_empty();
    for candidate in first.into_iter().chain(last) {
        if (closed && !candidate.begun) || (!candidate.placed && room.sequences == 0) {
            plan.blocked.push(candidate.id);
            continue;
        }
        if tokens_left == 0 {
            break;
        }
        // Whoever waits for what it holds is helped if it is done soon.
        let is_watched = candidate.is_watched && plan.blocked.is_empty();
        let (left, of) = match candidate.yields {
            // That would hold up others for longer than its tokens.
            true if is_shared && candidate.copies => (0, Of::Spare),
            true if is_shared => (room.spare_tokens.min(tokens_left), Of::Spare),
            // The step is theirs, and short.
            true if is_watched => (room.watched_tokens.min(tokens_left), Of::Prompt),
            // Nobody else waits for the step.
            true | false => (tokens_left, Of::Prompt),
        };
        let tokens = candidate.todo.min(left);
        if tokens == 0 {
            plan.held.push(candidate.id);
            continue;
        }
        if candidate.leaves_room && room.cells.saturating_sub(candidate.cells) < room.reserve {
            // What is left is for others, who may well go before it.
            plan.tight.push(candidate.id);
            continue;
        }
        // The whole prompt must fit, or it would sit on half of its cells.
        let needs = candidate.cells.saturating_add(headroom);
        if !take(&mut room, candidate, candidate.cells, needs) {
            plan.blocked.push(candidate.id);
            closed = true;
            continue;
        }
        tokens_left -= tokens;
        if of == Of::Spare {
            room.spare_tokens -= tokens;
        }
        if is_watched {
            room.watched_tokens = room.watched_tokens.saturating_sub(tokens);
        }
        is_shared |= !candidate.yields;
        plan.shares.push(Share { id: candidate.id, tokens, of });
    }
    plan
}

/// Takes `cells` for a candidate if as many as `needs` are there.
fn take(room: &mut Room, candidate: &Candidate, cells: u32, needs: u32) -> bool {
    if needs > room.cells || (!candidate.placed && room.sequences == 0) {
        return false;
    }
    room.cells -= cells.min(room.cells);
    room.sequences -= u32::from(!candidate.placed);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: u64, todo: u32) -> Candidate {
        Candidate {
            id: SessionId(id),
            todo,
            cells: todo,
            placed: false,
            begun: false,
            yields: false,
            is_watched: false,
            copies: false,
            leaves_room: false,
            adapter: None,
        }
    }

    fn shares(plan: &Plan) -> Vec<(u64, u32)> {
        plan.shares.iter().map(|s| (s.id.0, s.tokens)).collect()
    }

    const ROOM: Room = Room {
        batch_tokens: 64,
        prompt_tokens: 64,
        spare_tokens: 3,
        watched_tokens: 7,
        is_awaited: false,
        cells: 1000,
        sequences: 8,
        reserve: 100,
    };

    fn config() -> EngineConfig {
        EngineConfig { prefill_chunk: 16, ..EngineConfig::default() }
    }

    #[test]
    fn decodes_come_first_and_prompts_in_chunks_beside_them() {
        let plan = plan(&[candidate(1, 1), candidate(2, 1)], &[candidate(3, 40)], ROOM, &config());
        assert_eq!(shares(&plan), [(1, 1), (2, 1), (3, 16)]);
    }

    #[test]
    fn prompts_that_yield_have_what_is_spare() {
        let yields = |id, todo| Candidate { yields: true, ..candidate(id, todo) };
        let prompts = [candidate(2, 5), yields(3, 2), yields(4, 40), yields(5, 40), candidate(6, 40)];
        let made = plan(&[candidate(1, 1)], &prompts, ROOM, &config());
        assert_eq!(shares(&made), [(1, 1), (2, 5), (6, 11)], "nothing is left of the chunk");
        let prompts = [candidate(2, 5), yields(3, 2), yields(4, 40), yields(5, 40), candidate(6, 4)];
        let made = plan(&[candidate(1, 1)], &prompts, ROOM, &config());
        assert_eq!(shares(&made), [(1, 1), (2, 5), (6, 4), (3, 2), (4, 1)]);
        let of: Vec<Of> = made.shares.iter().map(|share| share.of).collect();
        assert_eq!(of, [Of::Run, Of::Prompt, Of::Prompt, Of::Spare, Of::Spare]);
        let made = plan(&[], &[yields(2, 5), candidate(3, 4)], ROOM, &config());
        assert_eq!(shares(&made), [(3, 4), (2, 3)], "beside a prompt of another as well");
        let made = plan(&[], &[yields(2, 5), yields(3, 90)], ROOM, &config());
        assert_eq!(shares(&made), [(2, 5), (3, 59)]);
        assert!(made.blocked.is_empty(), "there are cells for it");
        let made = plan(&[], &[yields(2, 5), yields(3, 90)], Room { is_awaited: true, ..ROOM }, &config());
        assert_eq!(shares(&made), [(2, 3)], "beside those of another adapter as well");
        let watched = |candidate| Candidate { is_watched: true, ..candidate };
        let made = plan(&[], &[yields(2, 5), yields(3, 90), yields(4, 90)].map(watched), ROOM, &config());
        assert_eq!(shares(&made), [(2, 5), (3, 2)], "somebody may come at any moment");
        assert_eq!(made.held, [SessionId(4)]);
        let waits = Candidate { cells: 2000, ..candidate(2, 5) };
        let begun = Candidate { begun: true, ..watched(yields(3, 90)) };
        let made = plan(&[], &[waits, begun], ROOM, &config());
        assert_eq!(shares(&made), [(3, 64)], "somebody waits for what it holds");
        let copies = Candidate { copies: true, ..yields(2, 5) };
        let made = plan(&[], &[copies, yields(3, 5)].map(watched), ROOM, &config());
        assert_eq!(shares(&made), [(2, 5), (3, 2)], "nobody waits for the step");
        let made = plan(&[candidate(1, 1)], &[copies, yields(3, 5)], ROOM, &config());
        assert_eq!(shares(&made), [(1, 1), (3, 3)]);
        let made = plan(&[], &[copies, yields(3, 5)], ROOM, &config());
        assert_eq!(shares(&made), [(2, 5), (3, 5)]);
        let made = plan(&[candidate(1, 1)], &[yields(2, 40)], Room { prompt_tokens: 2, ..ROOM }, &config());
        assert_eq!(shares(&made), [(1, 1), (2, 2)]);
        let made = plan(&[candidate(1, 1)], &[yields(2, 40)], Room { cells: 0, ..ROOM }, &config());
        assert_eq!(shares(&made), []);
        let made = plan(&[Candidate { cells: 2000, ..candidate(1, 1) }], &[yields(2, 40)], ROOM, &config());
        assert_eq!(shares(&made), [(1, 1), (2, 3)]);
    }

    #[test]
    fn a_slow_machine_gets_less_of_a_prompt_at_once() {
        let plan = plan(&[candidate(1, 1)], &[candidate(2, 40)], Room { prompt_tokens: 5, ..ROOM }, &config());
        assert_eq!(shares(&plan), [(1, 1), (2, 5)]);
    }

    #[test]
    fn prompts_alone_fill_the_batch() {
        let plan = plan(&[], &[candidate(1, 40), candidate(2, 40)], ROOM, &config());
        assert_eq!(shares(&plan), [(1, 40), (2, 24)]);
    }

    #[test]
    fn a_prompt_that_does_not_fit_waits_and_is_not_overtaken() {
        let room = Room { cells: 50, ..ROOM };
        let plan = plan(&[], &[candidate(1, 60), candidate(2, 10)], room, &config());
        assert_eq!(shares(&plan), []);
        assert_eq!(plan.blocked, [SessionId(1), SessionId(2)], "both wait, and their time runs");
    }

    #[test]
    fn a_prompt_that_has_begun_goes_on_beside_one_that_waits_for_cells() {
        let room = Room { cells: 50, ..ROOM };
        let begun = Candidate { placed: true, begun: true, ..candidate(3, 40) };
        let prompts = [candidate(1, 60), Candidate { placed: true, ..candidate(2, 10) }, begun];
        let plan = plan(&[], &prompts, room, &config());
        assert_eq!(shares(&plan), [(3, 40)]);
        assert_eq!(plan.blocked, [SessionId(1), SessionId(2)]);
    }

    #[test]
    fn who_holds_more_than_its_share_leaves_room_and_others_take_it() {
        let leaves_room = Candidate { leaves_room: true, ..candidate(1, 20) };
        let of = |cells| {
            let made = plan(&[], &[leaves_room, candidate(2, 20)], Room { cells, ..ROOM }, &config());
            assert_eq!(made.blocked, []);
            (shares(&made), made.tight)
        };
        assert_eq!(of(120), (vec![(1, 20), (2, 20)], vec![]));
        assert_eq!(of(119), (vec![(2, 20)], vec![SessionId(1)]));
    }

    #[test]
    fn cells_of_later_chunks_are_spoken_for() {
        let room = Room { batch_tokens: 10, cells: 50, ..ROOM };
        let plan = plan(&[], &[candidate(1, 45), candidate(2, 10)], room, &config());
        assert_eq!(shares(&plan), [(1, 10)]);
        let room = Room { batch_tokens: 60, cells: 50, ..ROOM };
        let plan = super::plan(&[], &[candidate(1, 45), candidate(2, 10)], room, &config());
        assert_eq!(shares(&plan), [(1, 45)]);
        assert_eq!(plan.blocked, [SessionId(2)]);
    }

    #[test]
    fn running_generations_keep_headroom_and_are_blocked_one_by_one() {
        let room = Room { cells: 1, ..ROOM };
        let plan = plan(&[candidate(1, 1), candidate(2, 1)], &[candidate(3, 1)], room, &config());
        assert_eq!(shares(&plan), [(1, 1)]);
        assert_eq!(plan.blocked, [SessionId(2), SessionId(3)]);
    }

    #[test]
    fn without_a_free_sequence_only_the_placed_go_on() {
        let placed = Candidate { placed: true, ..candidate(2, 5) };
        let plan = plan(&[], &[candidate(1, 5), placed, candidate(3, 5)], Room { sequences: 0, ..ROOM }, &config());
        assert_eq!(shares(&plan), [(2, 5)]);
        assert_eq!(plan.blocked, [SessionId(1), SessionId(3)]);
    }
}
