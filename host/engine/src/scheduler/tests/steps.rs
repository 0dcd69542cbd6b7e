//! Steps over many sessions, and tokens added to a run.

use super::*;
use crate::Token;
use crate::command::StepCommand;
use crate::options::{Reading, Readout, Sampling};

type Answer = Receiver<Result<Vec<Reading>, Error>>;

fn submit(bench: &mut Bench, steps: Vec<(SessionId, Vec<Token>, Vec<Readout>)>) -> Vec<Answer> {
    let (commands, answers) = steps
        .into_iter()
        .map(|(id, input, readouts)| {
            let (reply, answer) = oneshot::channel();
            (StepCommand { id, input, readouts, reply }, answer)
        })
        .unzip();
    bench.scheduler.handle(Command::Submit(commands));
    answers
}

fn letters(text: &str) -> Vec<Token> {
    text.bytes().map(Token::from).collect()
}

fn sample() -> Readout {
    Readout::Sample(Box::new(Sampling::GREEDY))
}

#[test]
fn the_sessions_of_a_step_share_a_batch() {
    let mut bench = bench();
    let ids: Vec<_> = (0..8).map(|_| bench.ready(3)).collect();
    let before = bench.fake.fills().len();
    let mut answers = submit(&mut bench, ids.iter().map(|&id| (id, letters("c"), vec![sample()])).collect());
    assert_eq!(bench.fake.fills().len(), before, "it returns before the work");
    bench.settle();
    assert_eq!(bench.fake.fills()[before..], [8]);
    for answer in &mut answers {
        let readings = answer.try_recv().unwrap().unwrap();
        assert!(matches!(&readings[..], [Reading::Token(token)] if token.token == u32::from(b'd')), "{readings:?}");
    }
    let held: Vec<_> = ids.iter().map(|id| bench.scheduler.sequences[id].tokens.len()).collect();
    assert_eq!(held, [4; 8], "what was chosen is not added");
}

#[test]
fn readings_agree_with_each_other() {
    let mut bench = bench();
    let id = bench.ready(3);
    let ask = vec![sample(), Readout::Top(3), Readout::LogprobsOf(letters("bz")), Readout::Entropy];
    let read = |bench: &mut Bench, input: &str| {
        let mut answers = submit(bench, vec![(id, letters(input), ask.clone())]);
        bench.settle();
        answers[0].try_recv().unwrap().unwrap()
    };
    let readings = read(&mut bench, "a");
    let [Reading::Token(token), Reading::Top(top), Reading::Logprobs(logprobs), Reading::Entropy(entropy)] =
        &readings[..]
    else {
        panic!("{readings:?}");
    };
    assert_eq!((token.token, top[0].token), (u32::from(b'b'), u32::from(b'b')));
    assert_eq!(top.len(), 3);
    assert_eq!(logprobs[0], top[0].logprob);
    assert!(logprobs[1] < logprobs[0]);
    assert!(*entropy > 0.0 && *entropy < 1.0, "one token is likely: {entropy}");
    // Without input the same logits are read again, also when they were not kept.
    assert_eq!(read(&mut bench, ""), readings);
    bench.scheduler.sequences.get_mut(&id).unwrap().logits = None;
    assert_eq!(read(&mut bench, ""), readings);
    assert_eq!(bench.scheduler.sequences[&id].tokens.len(), 4);
}

#[test]
fn one_sessions_error_is_its_own() {
    let mut bench = bench();
    let (good, empty, busy) = (bench.ready(3), bench.open(), bench.ready(3));
    let run = bench.generate(busy, GenerateOptions::greedy(9));
    let steps = [good, empty, busy].map(|id| (id, Vec::new(), vec![Readout::Entropy]));
    let mut answers = submit(&mut bench, steps.into());
    bench.settle();
    let results: Vec<_> = answers.iter_mut().map(|answer| answer.try_recv().unwrap()).collect();
    assert!(results[0].is_ok());
    assert!(matches!(&results[1], Err(Error::InvalidArgument(text)) if text.contains("empty")));
    assert!(matches!(&results[2], Err(Error::InvalidArgument(text)) if text.contains("at work")));
    assert_eq!(drain(&run).finish, Some(Finish::Length));
}

#[test]
fn a_step_that_nobody_waits_for_is_undone() {
    let mut bench = bench();
    let id = bench.ready(3);
    drop(submit(&mut bench, vec![(id, letters("xyz"), Vec::new())]));
    bench.settle();
    assert_eq!(bench.scheduler.sequences[&id].tokens.len(), 3);
}

#[test]
fn a_session_whose_step_was_dropped_takes_the_next_call() {
    let mut bench = bench();
    let id = bench.ready(3);
    drop(submit(&mut bench, vec![(id, letters("xyz"), Vec::new())]));
    bench.scheduler.handle(Command::Wake);
    bench.rewind(id, 2).unwrap();
    assert_eq!(bench.scheduler.sequences[&id].tokens.len(), 2);
}

#[test]
fn a_seed_draws_differently_at_each_place_and_the_same_each_time() {
    let mut bench = bench();
    let draw = Readout::Sample(Box::new(Sampling { temperature: 100.0, seed: Some(1), ..Sampling::GREEDY }));
    let mut draws = Vec::new();
    for n in [3, 3, 4, 5, 6] {
        let id = bench.ready(n);
        let mut answers = submit(&mut bench, vec![(id, Vec::new(), vec![draw.clone()])]);
        bench.settle();
        let readings = answers[0].try_recv().unwrap().unwrap();
        draws.push(match &readings[..] {
            [Reading::Token(sampled)] => sampled.token,
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(draws[0], draws[1]);
    assert!(draws[1..].windows(2).any(|pair| pair[0] != pair[1]), "{draws:?}");
}

#[test]
fn a_run_goes_on_behind_what_is_added() {
    let mut bench = bench();
    let id = bench.ready(3);
    let run = bench.generate(id, GenerateOptions::greedy(6));
    let number = bench.next;
    bench.scheduler.step();
    bench.scheduler.step();
    assert_eq!(drain(&run).text, "abc");
    let before = bench.fake.fills().len();
    let (reply, mut done) = oneshot::channel();
    bench.scheduler.handle(Command::Inject { id, run: number, tokens: letters("mno"), reply });
    assert_eq!(done.try_recv().unwrap(), Ok(()));
    bench.settle();
    assert_eq!(drain(&run).text, "pqr", "its text is not the run's");
    assert_eq!(bench.fake.fills().len() - before, 3, "the tokens rode along in one batch");
    assert_eq!(bench.scheduler.sequences[&id].tokens[3..], letters("abcmnopqr"));
    let (reply, mut done) = oneshot::channel();
    bench.scheduler.handle(Command::Inject { id, run: number, tokens: letters("x"), reply });
    assert!(matches!(done.try_recv().unwrap(), Err(Error::InvalidArgument(text)) if text.contains("ended")));
}

#[test]
fn what_is_added_must_leave_room_for_the_run() {
    let mut bench = bench();
    let id = bench.ready(3);
    let _run = bench.generate(id, GenerateOptions::greedy(6));
    let (number, free) = (bench.next, bench.scheduler.sequences[&id].free());
    for (n, fits) in [(free, false), (free - 1, true)] {
        let (reply, mut done) = oneshot::channel();
        let tokens = vec![u32::from(b'x'); n as usize];
        bench.scheduler.handle(Command::Inject { id, run: number, tokens, reply });
        assert_eq!(done.try_recv().unwrap().is_ok(), fits);
    }
    bench.settle();
}
