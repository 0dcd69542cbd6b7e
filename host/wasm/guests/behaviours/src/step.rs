//! What the handler does with steps, and with runs and sessions while they go on.

use crate::model::bindings::nala::llm::constraint::{Grammar, Source};
use crate::model::bindings::nala::llm::meter;
use crate::model::bindings::nala::llm::model::{self, Model};
use crate::model::bindings::nala::llm::session::{
    Pending, Priority, Reading, Readout, Session, SessionOptions, Step, submit,
};
use crate::model::{GREEDY, open, options, say};

const SESSION: SessionOptions = SessionOptions { max_tokens: None, priority: Priority::Background };

fn sessions(model: &Model, n: usize) -> Vec<Session> {
    let tokens = model.encode("abc", false).unwrap();
    let open = |_| {
        let session = Session::open(model, SESSION).unwrap();
        session.prefill(&tokens).unwrap();
        session
    };
    (0..n).map(open).collect()
}

fn step<'a>(on: &'a Session, input: &[u32], readout: &[Readout]) -> Step<'a> {
    Step { on, input: input.to_vec(), readout: readout.to_vec() }
}

/// All readouts of several sessions, of which one follows a grammar.
pub(crate) fn steps() -> String {
    let model = open().0;
    let all = sessions(&model, 3);
    let digits = Grammar::compile(&model, &Source::Regex("[0-9]".into())).unwrap();
    all[2].constrain(Some(&digits)).unwrap();
    let [m, x] = [109, 120];
    let ask = [Readout::Sample(GREEDY), Readout::Top(2), Readout::LogprobsOf(vec![m + 1, x]), Readout::Entropy];
    let pending =
        submit(&[step(&all[1], &[m], &ask), step(&all[0], &[x], &ask[..1]), step(&all[2], &[], &ask[..1])]).unwrap();
    pending.subscribe().block();
    let held = meter::used().kv_cells;
    let mut readings = pending.take().unwrap();
    let again = pending.take().is_err();
    let grammar = match &readings.pop().unwrap().unwrap()[..] {
        [Reading::Token(token)] => char::from_u32(token.id).unwrap().is_ascii_digit(),
        other => panic!("{other:?}"),
    };
    let second = match &readings.pop().unwrap().unwrap()[..] {
        [Reading::Token(token)] => token.id,
        other => panic!("{other:?}"),
    };
    let first = readings.pop().unwrap().unwrap();
    let [Reading::Token(token), Reading::Top(top), Reading::Logprobs(logprobs), Reading::Entropy(entropy)] = &first[..]
    else {
        panic!("{first:?}");
    };
    let agrees = top[0].id == token.id && top[0].logprob == logprobs[0] && logprobs[1] < logprobs[0] && *entropy > 0.0;
    let lengths: Vec<_> = all.iter().map(Session::length).collect();
    // What was chosen is not added, and the sessions are free again.
    format!("{} {second} {agrees} {grammar} {again} {lengths:?} {held} {}", token.id, say(&all[1], 2))
}

/// Steps that cannot be.
pub(crate) fn refused() -> String {
    let model = open().0;
    let other = Model::open(&model::available()[1]).unwrap();
    let (ours, theirs) = (sessions(&model, 2), sessions(&other, 1));
    let before = meter::used().kv_cells;
    let mut told = Vec::new();
    let mut tell = |steps: &[Step<'_>]| told.push(format!("{:?}", submit(steps).map(drop)));
    tell(&[]);
    tell(&[step(&ours[0], &[97], &[]), step(&ours[1], &[97], &[]), step(&ours[0], &[98], &[])]);
    tell(&[step(&ours[0], &[97], &[]), step(&theirs[0], &[97], &[])]);
    tell(&[step(&ours[0], &[u32::MAX], &[])]);
    tell(&[step(&ours[0], &[97], &[Readout::Top(21)])]);
    tell(&[step(&ours[0], &[97], &vec![Readout::Entropy; 17])]);
    tell(&[step(&ours[0], &[97], &[]), step(&ours[1], &vec![97; 5_000], &[])]);
    let run = ours[1].generate(&options(9)).unwrap();
    tell(&[step(&ours[0], &[97], &[]), step(&ours[1], &[97], &[])]);
    while run.next().unwrap().is_some() {}
    let pending = submit(&[step(&ours[0], &[97], &[])]).unwrap();
    tell(&[step(&ours[0], &[97], &[])]);
    let calls = [
        ours[0].prefill(&[97]).is_err(),
        ours[0].fork().is_err(),
        ours[0].rewind(1).is_err(),
        ours[0].constrain(None).is_err(),
        ours[0].generate(&options(1)).is_err(),
        ours[0].save("x").is_err(),
        ours[0].park().is_err(),
    ];
    told.push(format!("{calls:?} {}", ours[0].set_priority(Priority::Interactive).is_ok()));
    let taken = pending.take().unwrap();
    told.push(format!("{taken:?} {} {}", before, meter::used().kv_cells));
    told.join("\n")
}

/// Cells while a step goes on, after it, and without a session.
pub(crate) fn counted() -> String {
    let model = open().0;
    let mut all = sessions(&model, 3);
    let cells = || meter::used().kv_cells;
    let mut told = vec![cells()];
    let pending = submit(&[step(&all[0], &[97; 10], &[]), step(&all[1], &[97; 20], &[])]).unwrap();
    told.push(cells());
    // Its session goes while the step is under way.
    drop(all.remove(1));
    told.push(cells());
    let results = pending.take().unwrap();
    told.push(cells());
    let used = meter::used().prompt_tokens;
    format!("{told:?} {} {} {used}", results[0].is_ok(), results[1].is_ok() || results[1].is_err())
}

/// Steps that are dropped at once, and again and again.
pub(crate) fn dropped(times: u32) -> String {
    let model = open().0;
    let all = sessions(&model, 2);
    let begin = || submit(&[step(&all[0], &[97; 50], &[]), step(&all[1], &[97; 50], &[])]);
    for _ in 0..times {
        let pending: Pending = begin().unwrap();
        let ready = pending.subscribe();
        drop(pending);
        // Nothing is left to wait for.
        ready.block();
    }
    let cells = meter::used().kv_cells;
    let lengths: Vec<_> = all.iter().map(|session| session.rewind(2).unwrap()).collect();
    format!("{} {lengths:?} {}", cells >= 6, meter::used().kv_cells)
}

/// A list with so many steps, all of one session.
pub(crate) fn many(steps: usize) -> String {
    let model = open().0;
    let session = &sessions(&model, 1)[0];
    let many: Vec<_> = (0..steps).map(|_| step(session, &[], &[])).collect();
    format!("{:?}", submit(&many).map(drop))
}

/// A list with so many tokens.
pub(crate) fn huge(tokens: usize) -> String {
    let model = open().0;
    let session = &sessions(&model, 1)[0];
    let input = vec![97; tokens];
    let list = submit(&[step(session, &input, &[])]).map(drop);
    let run = session.generate(&options(5)).unwrap();
    let inject = run.inject(&input);
    let mut end = None;
    while let Some(chunk) = run.next().unwrap() {
        end = chunk.finish;
    }
    format!("{list:?} {inject:?} {end:?}")
}

/// Tokens that are added to a run.
pub(crate) fn inject() -> String {
    let model = open().0;
    let session = &sessions(&model, 1)[0];
    let run = session.generate(&options(20)).unwrap();
    let before = meter::used().kv_cells;
    let first = run.next().unwrap().unwrap().text;
    run.inject(&model.encode("xyz", false).unwrap()).unwrap();
    let widened = meter::used().kv_cells;
    let mut text = first;
    while let Some(chunk) = run.next().unwrap() {
        text += &chunk.text;
    }
    let after = meter::used().kv_cells;
    let ended = run.inject(&[97]).err();
    drop(run);
    // Behind z comes a.
    format!("{before} {widened} {after} {} {} {} {ended:?}", text.len(), text.contains('a'), session.length())
}

/// Calls that the engine does not answer, so many times, while it computes a batch
/// with the token 200.
pub(crate) fn priorities(times: u32) -> String {
    let model = open().0;
    let all = sessions(&model, 2);
    let grammar = Grammar::compile(&model, &Source::Regex("[0-9]".into())).unwrap();
    let _pending = submit(&[step(&all[1], &[200], &[])]).unwrap();
    for n in 0..times {
        let priority = if n % 2 == 0 { Priority::Interactive } else { Priority::Background };
        all[0].set_priority(priority).unwrap();
        all[0].constrain((n % 2 == 0).then_some(&grammar)).unwrap();
    }
    format!("{times} times")
}
