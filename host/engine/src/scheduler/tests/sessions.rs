//! Forks, rewinds, parking, saving, and the prefix cache.

use super::*;
use crate::Token;
use crate::backend::Abilities;
use crate::fake::Script;
use crate::scheduler::snapshot::Shelved;

/// Says letters that depend on everything that was said.
pub(super) fn chained() -> Script {
    Arc::new(|tokens| {
        let hash = tokens.iter().fold(17_u64, |h, &t| h.wrapping_mul(31).wrapping_add(u64::from(t)));
        u32::from(b'a') + u32::try_from(hash % 26).unwrap()
    })
}

/// Says letters that depend on the last two tokens, and so soon repeats itself.
pub(super) fn looping() -> Script {
    let chained = chained();
    Arc::new(move |tokens| chained(&tokens[tokens.len().saturating_sub(2)..]))
}

fn chained_bench(cells: u32, sequences: u32, abilities: Abilities) -> Bench {
    bench_of(chained(), cells, sequences, abilities)
}

/// Batches take time, and further tokens little of it: guesses are worth it.
fn bench_of(script: Script, cells: u32, sequences: u32, abilities: Abilities) -> Bench {
    let mut fake = Fake { script, abilities, ..Fake::default() };
    fake.limits.kv_cells = cells;
    fake.limits.sequences = sequences;
    Bench::timed(fake, EngineConfig { prefill_chunk: 8, ..EngineConfig::default() }, STEP, CHEAP)
}

const ALL: Abilities = Abilities { copy: true, shift: true, snapshot: true };

impl Bench {
    pub(super) fn ask<T>(&mut self, command: impl FnOnce(crate::command::Reply<T>) -> Command) -> Result<T, Error> {
        let (reply, mut answer) = oneshot::channel();
        self.scheduler.handle(command(reply));
        answer.try_recv().expect("answered at once")
    }

    pub(super) fn fork(&mut self, id: SessionId) -> Result<SessionId, Error> {
        self.next += 1;
        let new = new_session(SessionId(self.next), "");
        let child = new.id;
        self.ask(|reply| Command::Fork { id, new, reply }).map(|()| child)
    }

    pub(super) fn rewind(&mut self, id: SessionId, to: u32) -> Result<u32, Error> {
        self.ask(|reply| Command::Rewind { id, to, reply })
    }

    pub(super) fn evict(&mut self, id: SessionId, at: u32, count: u32) -> Result<(), Error> {
        self.ask(|reply| copying(id, CopyTo::Evict { at, count }, reply))
    }

    pub(super) fn park(&mut self, id: SessionId) -> Result<(), Error> {
        self.ask(|reply| copying(id, CopyTo::Park, reply))
    }

    pub(super) fn tokens(&self, id: SessionId) -> &[Token] {
        &self.scheduler.sequences[&id].tokens
    }

    /// Prefills with these tokens and waits for it.
    pub(super) fn feed(&mut self, id: SessionId, tokens: Vec<Token>) -> PrefillInfo {
        let (reply, mut result) = oneshot::channel();
        self.scheduler.handle(Command::Prefill { id, tokens, reply });
        let mut info = None;
        self.until(|_| {
            info = info.take().or_else(|| result.try_recv().ok());
            info.is_some()
        });
        info.unwrap().unwrap()
    }

    pub(super) fn say(&mut self, id: SessionId, n: u32) -> Vec<Token> {
        let run = self.generate(id, GenerateOptions::greedy(n));
        let mut said = Vec::new();
        self.until(|_| {
            let chunk = drain(&run);
            said.extend(chunk.tokens.iter().map(|t| t.token));
            chunk.finish.is_some()
        });
        said
    }
}

fn prompt(n: u32) -> Vec<Token> {
    (0..n).map(|i| u32::from(b'0') + i * i % 70).collect()
}

#[test]
fn a_beginning_that_is_known_is_not_computed_again() {
    let mut bench = chained_bench(4096, 8, ALL);
    let first = bench.open();
    assert_eq!(bench.feed(first, prompt(100)).cached, 0);
    // Beside the first, which still has it.
    let second = bench.open();
    let mut longer = prompt(100);
    longer.extend([1, 2, 3]);
    let info = bench.feed(second, longer);
    assert_eq!((info.cached, info.computed), (96, 7), "whole blocks of 16");
    bench.close(first);
    bench.close(second);
    assert_eq!(bench.cells_used(), 0);
    assert_eq!(bench.metrics.kv_cells_cached.get(), 96);
    // The last token is computed in any case, for its logits.
    let third = bench.open();
    assert_eq!(bench.feed(third, prompt(96)).computed, 1);
    // What is said is kept as well.
    let said = bench.say(third, 20);
    bench.close(third);
    let fourth = bench.open();
    let info = bench.feed(fourth, [prompt(96), said].concat());
    assert_eq!((info.cached, info.computed), (112, 4));
}

#[test]
fn other_scopes_find_nothing() {
    let mut bench = chained_bench(4096, 8, ALL);
    for (scope, cached) in [("a", 0), ("b", 0), ("a", 32)] {
        bench.next += 1;
        let id = SessionId(bench.next);
        bench.scheduler.handle(Command::Open(new_session(id, scope)));
        assert_eq!(bench.feed(id, prompt(40)).cached, cached, "{scope}");
        bench.close(id);
    }
}

#[test]
fn the_cache_gives_way_to_sessions() {
    let mut bench = chained_bench(200, 3, ALL);
    for n in 0..20 {
        let id = bench.open();
        let mut tokens = prompt(60);
        tokens[0] = n;
        assert_eq!(bench.feed(id, tokens).cached, 0);
        bench.close(id);
        assert_eq!(bench.cells_used(), 0);
    }
    assert!(bench.metrics.kv_cells_cached.get() >= 96, "it keeps what there is room for");
    let id = bench.open();
    assert_eq!(bench.feed(id, prompt(200)).computed, 200);
    assert_eq!(bench.cells_used(), 200);
}

#[test]
fn forks_share_their_cells_and_go_their_own_ways() {
    let mut bench = chained_bench(4096, 8, ALL);
    let trunk = bench.open();
    bench.feed(trunk, prompt(100));
    let branches: Vec<_> = (0..4).map(|_| bench.fork(trunk).unwrap()).collect();
    assert_eq!(bench.cells_used(), 100);
    for (n, &branch) in (0..).zip(&branches) {
        bench.feed(branch, vec![n]);
    }
    assert_eq!(bench.cells_used(), 104);
    let mut alone = chained_bench(4096, 8, ALL);
    for (n, &branch) in (0..).zip(&branches) {
        let id = alone.open();
        alone.feed(id, [prompt(100), vec![n]].concat());
        assert_eq!(bench.say(branch, 5), alone.say(id, 5), "branch {n}");
    }
    bench.close(trunk);
    for branch in branches {
        bench.close(branch);
    }
    assert_eq!(bench.cells_used(), 0);
}

#[test]
fn idle_sessions_are_parked_for_those_at_work_and_come_back() {
    let mut bench = chained_bench(150, 8, ALL);
    let mut alone = chained_bench(4096, 8, ALL);
    let ids: Vec<_> = (0..4).map(|_| bench.open()).collect();
    let mirror: Vec<_> = (0..4).map(|_| alone.open()).collect();
    for round in 0..3 {
        for (n, (&id, &mirrored)) in ids.iter().zip(&mirror).enumerate() {
            let text = vec![u32::try_from(n + 7 * round).unwrap(); 20];
            bench.feed(id, text.clone());
            alone.feed(mirrored, text);
            assert_eq!(bench.say(id, 6), alone.say(mirrored, 6), "session {n}, round {round}");
        }
    }
    assert!(bench.metrics.parked.get() >= 4);
    assert_eq!(bench.metrics.preempted.get(), 0);
    for id in ids {
        bench.close(id);
    }
    while let Some(beginning) = bench.scheduler.prefixes.oldest_in_ram() {
        bench.scheduler.forget(beginning);
    }
    assert_eq!((bench.cells_used(), bench.metrics.snapshot_bytes.get()), (0, 0));
}

#[test]
fn beginnings_that_nobody_uses_leave_their_cells_beside_runs_and_are_found_again() {
    let mut bench = chained_bench(4096, 32, ALL);
    let prompts: Vec<Vec<Token>> = (0..8).map(|n| [vec![n], prompt(400)].concat()).collect();
    for tokens in &prompts {
        let id = bench.open();
        bench.feed(id, tokens.clone());
        bench.close(id);
    }
    let cached = bench.metrics.kv_cells_cached.get();
    assert!(cached <= 512 + 400, "{cached} cells that every token would have to look at");
    assert!(bench.metrics.snapshot_bytes.get() >= 5 * 4 * 400);
    for tokens in &prompts {
        let id = bench.open();
        let info = bench.feed(id, [tokens.clone(), vec![7]].concat());
        assert_eq!((info.cached, info.computed), (400, 2), "also those in RAM");
        let mut alone = tokens.clone();
        alone.push(7);
        assert_eq!(bench.say(id, 3)[0], chained()(&alone));
        bench.close(id);
    }
}

#[test]
fn beginnings_in_ram_give_way_to_sessions_that_are_saved() {
    let mut bench = chained_bench(1024, 32, ALL);
    // Two saved sessions fit, states and tokens with the logits of each, and nothing
    // beside them.
    bench.scheduler.budget = super::super::snapshot::Budget::new(4 * (4 * 300 + 4 * 259) + 500);
    for n in 0..4 {
        let id = bench.open();
        bench.feed(id, [vec![n], prompt(300)].concat());
        bench.close(id);
    }
    assert!(bench.metrics.snapshot_bytes.get() > 0, "there are some");
    let ids: Vec<_> = (10..12)
        .map(|n| {
            let id = bench.open();
            bench.feed(id, [vec![n], prompt(299)].concat());
            id
        })
        .collect();
    for (n, id) in ids.into_iter().enumerate() {
        bench.ask(|reply| copying(id, CopyTo::Save { name: n.to_string() }, reply)).unwrap();
    }
}

#[test]
fn the_youngest_of_runs_that_cannot_move_is_parked_and_ends_well() {
    let mut bench = chained_bench(100, 8, ALL);
    let (old, young) = (bench.open(), bench.open());
    bench.feed(old, vec![1; 40]);
    bench.feed(young, vec![2; 40]);
    let old_run = bench.generate(old, GenerateOptions::greedy(50));
    bench.clock.advance(Duration::from_millis(1));
    let young_run = bench.generate(young, GenerateOptions::greedy(50));
    bench.settle();
    assert_eq!(drain(&old_run).finish, Some(Finish::Length));
    assert_eq!(drain(&young_run).finish, Some(Finish::Length));
    assert_eq!(bench.metrics.preempted.get(), 0);
    assert!(bench.metrics.parked.get() > 0);
}

#[test]
fn what_cannot_be_done_says_why() {
    let mut bench = chained_bench(4096, 8, Abilities::default());
    let id = bench.open();
    bench.feed(id, prompt(40));
    assert!(matches!(bench.rewind(id, 41), Err(Error::InvalidArgument(text)) if text.contains("40")));
    assert!(matches!(bench.evict(id, 30, 11), Err(Error::InvalidArgument(_))));
    assert!(matches!(bench.evict(id, 3, 1), Err(Error::Unsupported(_))));
    let run = bench.generate(id, GenerateOptions::greedy(9));
    assert!(matches!(bench.fork(id), Err(Error::InvalidArgument(_))), "at work");
    bench.settle();
    drop(run);
}

#[derive(Debug, Clone)]
enum Act {
    Open,
    Prefill(usize, Vec<Token>),
    Say(usize, u32),
    Fork(usize),
    Rewind(usize, u32),
    Evict(usize, u32, u32),
    Park(usize),
    Save(usize, u8),
    Restore(u8),
    Close(usize),
}

mod programs {
    use super::*;
    use proptest::prelude::*;

    fn act() -> impl Strategy<Value = Act> {
        let some = 0..6usize;
        prop_oneof![
            Just(Act::Open),
            (some.clone(), proptest::collection::vec(0..3u32, 1..50)).prop_map(|(i, t)| Act::Prefill(i, t)),
            (some.clone(), 1..20u32).prop_map(|(i, n)| Act::Say(i, n)),
            some.clone().prop_map(Act::Fork),
            (some.clone(), 0..100u32).prop_map(|(i, to)| Act::Rewind(i, to)),
            (some.clone(), 0..60u32, 0..20u32).prop_map(|(i, at, n)| Act::Evict(i, at, n)),
            some.clone().prop_map(Act::Park),
            (some.clone(), 0..2u8).prop_map(|(i, name)| Act::Save(i, name)),
            (0..2u8).prop_map(Act::Restore),
            some.prop_map(Act::Close),
        ]
    }

    /// What a token list says next: the fake's script, run by hand.
    fn reference(script: &Script, tokens: &mut Vec<Token>, n: u32) -> Vec<Token> {
        (0..n)
            .map(|_| {
                let next = script(tokens);
                tokens.push(next);
                next
            })
            .collect()
    }

    /// Saves a session that holds `n` tokens for a tenant, in a scope of it.
    fn save_for(bench: &mut Bench, tenant: &Tenant, scope: &str, name: &str, n: usize) -> Result<(), Error> {
        bench.next += 1;
        let id = SessionId(bench.next);
        bench.scheduler.handle(Command::Open(NewSession { tenant: tenant.clone(), ..new_session(id, scope) }));
        bench.feed(id, prompt(u32::try_from(n).unwrap()));
        let name = name.to_owned();
        let saved = bench.ask(|reply| copying(id, CopyTo::Save { name }, reply));
        bench.close(id);
        saved
    }

    #[test]
    fn a_tenant_keeps_no_more_saved_than_it_may_in_all_its_scopes_together() {
        let mut bench = chained_bench(4096, 8, ALL);
        let named = |name: &str, max_saved, saved_bytes| Tenant {
            max_saved,
            saved_bytes,
            name: name.into(),
            ..Tenant::default()
        };
        let few = named("few", 2, u64::MAX);
        assert_eq!(save_for(&mut bench, &few, "few a", "1", 40), Ok(()));
        assert_eq!(save_for(&mut bench, &few, "few b", "1", 40), Ok(()));
        let refused = save_for(&mut bench, &few, "few c", "1", 40);
        assert!(matches!(&refused, Err(Error::Quota(text)) if text.contains("2 sessions are saved")), "{refused:?}");
        assert_eq!(save_for(&mut bench, &few, "few b", "1", 50), Ok(()), "in place of what was there");
        assert_eq!(save_for(&mut bench, &named("other", 2, u64::MAX), "other", "1", 40), Ok(()));
        // What one takes is known by now.
        let bytes = Shelved::of(&bench.scheduler.shelf, "other", &("".into(), String::new())).bytes;
        let small = named("small", 9, bytes + bytes / 2);
        assert_eq!(save_for(&mut bench, &small, "small", "1", 40), Ok(()));
        let refused = save_for(&mut bench, &small, "small", "2", 40);
        assert!(matches!(&refused, Err(Error::Quota(text)) if text.contains("bytes")), "{refused:?}");
        assert_eq!(save_for(&mut bench, &small, "small", "1", 40), Ok(()), "and again under the same name");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
        /// Whatever programs do, and however few cells there are, each session
        /// says what its tokens alone would say.
        #[test]
        fn say_what_each_session_says_alone(
            acts in proptest::collection::vec(act(), 1..60),
            cells in 150..400u32,
            sequences in 2..7u32,
            copy in any::<bool>(),
            shift in any::<bool>(),
            snapshot in any::<bool>(),
            repeats in any::<bool>(),
        ) {
            let script = if repeats { looping() } else { chained() };
            let mut bench = bench_of(Arc::clone(&script), cells, sequences, Abilities { copy, shift, snapshot });
            let mut open: Vec<(SessionId, Vec<Token>)> = Vec::new();
            let mut shelf: std::collections::BTreeMap<u8, Vec<Token>> = Default::default();
            for act in acts {
                let n = open.len().max(1);
                match act {
                    Act::Open if open.len() < 5 => open.push((bench.open(), Vec::new())),
                    Act::Open => {}
                    Act::Prefill(i, tokens) => if let Some((id, held)) = open.get_mut(i % n) {
                        let (reply, mut result) = oneshot::channel();
                        bench.scheduler.handle(Command::Prefill { id: *id, tokens: tokens.clone(), reply });
                        let mut info = None;
                        bench.until(|_| { info = info.take().or_else(|| result.try_recv().ok()); info.is_some() });
                        match info.unwrap() {
                            Ok(info) => {
                                prop_assert!(info.cached as usize + info.computed as usize == tokens.len());
                                held.extend(tokens);
                            }
                            // Idle sessions hold the cells, and cannot leave them.
                            Err(error) => prop_assert!(matches!(error, Error::Busy | Error::Evicted | Error::ContextFull { .. }), "{error}"),
                        }
                    },
                    Act::Say(i, n_new) => if let Some((id, held)) = open.get_mut(i % n) && !held.is_empty() {
                        let run = bench.generate(*id, GenerateOptions::greedy(n_new));
                        let mut said: Vec<Token> = Vec::new();
                        let mut end = None;
                        bench.until(|_| {
                            match run.try_take().item {
                                Some(Ok(Some(chunk))) => {
                                    said.extend(chunk.tokens.iter().map(|t| t.token));
                                    end = chunk.finish.map(Ok);
                                }
                                Some(Err(error)) => end = Some(Err(error)),
                                Some(Ok(None)) | None => {}
                            }
                            end.is_some()
                        });
                        let want = reference(&script, held, u32::try_from(said.len()).unwrap());
                        prop_assert_eq!(said, want);
                        match end.unwrap() {
                            Ok(Finish::Preempted) => held.clear(),
                            Ok(_) => {}
                            Err(error) => prop_assert!(matches!(error, Error::Busy | Error::Evicted | Error::ContextFull { .. }), "{error}"),
                        }
                    },
                    Act::Fork(i) => if open.len() < 5 && let Some((id, held)) = open.get(i % n).cloned() {
                        match bench.fork(id) {
                            Ok(child) => open.push((child, held)),
                            Err(error) => prop_assert_eq!(error, Error::Evicted),
                        }
                    },
                    Act::Rewind(i, to) => if let Some((id, held)) = open.get_mut(i % n) {
                        match bench.rewind(*id, to) {
                            Ok(to) => held.truncate(to as usize),
                            Err(error) => prop_assert!(matches!(error, Error::InvalidArgument(_) | Error::Evicted), "{error}"),
                        }
                    },
                    Act::Evict(i, at, count) => if let Some((id, held)) = open.get_mut(i % n) {
                        match bench.evict(*id, at, count) {
                            Ok(()) => { held.drain(at as usize..(at + count) as usize); }
                            Err(error) => prop_assert!(!matches!(error, Error::Cancelled | Error::Backend(_)), "{error}"),
                        }
                    },
                    Act::Park(i) => if let Some((id, _)) = open.get(i % n) {
                        let parked = bench.park(*id);
                        prop_assert!(matches!(parked, Ok(()) | Err(Error::Evicted)), "{parked:?}");
                    },
                    Act::Save(i, name) => if let Some((id, held)) = open.get(i % n) {
                        let id = *id;
                        match bench.ask(|reply| copying(id, CopyTo::Save { name: name.to_string() }, reply)) {
                            Ok(()) => { shelf.insert(name, held.clone()); }
                            Err(error) => prop_assert_eq!(error, Error::Evicted),
                        }
                    },
                    Act::Restore(name) => if open.len() < 5 {
                        bench.next += 1;
                        let new = new_session(SessionId(bench.next), "");
                        let id = new.id;
                        let found = bench.ask(|reply| Command::Restore { name: name.to_string(), new, reply }).unwrap();
                        prop_assert_eq!(found.is_some(), shelf.contains_key(&name));
                        if let Some(tokens) = shelf.get(&name) {
                            open.push((id, tokens.clone()));
                        }
                    },
                    Act::Close(i) => if !open.is_empty() {
                        let (id, _) = open.swap_remove(i % n);
                        bench.close(id);
                    },
                }
                for (id, held) in &open {
                    prop_assert_eq!(bench.tokens(*id), &held[..]);
                }
            }
            for (id, _) in open {
                bench.close(id);
            }
            prop_assert_eq!(bench.cells_used(), 0);
        }
    }
}
