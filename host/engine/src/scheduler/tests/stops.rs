//! What leaves of a run's text, and what ends it.

use super::*;
use crate::Token;
use crate::fake::USER;

/// Says `x<user>y<user>z`, then the same again.
fn marking() -> Bench {
    let said = [u32::from(b'x'), USER, u32::from(b'y'), USER, u32::from(b'z')];
    let script = move |tokens: &[Token]| said[tokens.len() % said.len()];
    Bench::new(Fake { script: Arc::new(script), ..Fake::default() }, EngineConfig::default())
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn control_tokens_have_a_text_where_it_is_asked_for() {
    let mut bench = marking();
    for (shown, text) in [(vec![], "xyz"), (vec![USER], "x<user>y<user>z"), (vec![END, 65], "xyz")] {
        let id = bench.ready(5);
        let run = bench.generate(id, GenerateOptions { shown, ..GenerateOptions::greedy(5) });
        bench.settle();
        let all = drain(&run);
        assert_eq!((all.text.as_str(), all.finish), (text, Some(Finish::Length)));
        assert_eq!(all.tokens.len(), 5);
    }
}

#[test]
fn stop_texts_see_control_tokens_that_are_shown() {
    let mut bench = marking();
    let stop_text = texts(&["never", "ser>y"]);
    for (shown, text, finish) in [(vec![], "xyz", Finish::Length), (vec![USER], "x<u", Finish::StopText(1))] {
        let id = bench.ready(5);
        let stop_text = stop_text.clone();
        let run = bench.generate(id, GenerateOptions { shown, stop_text, ..GenerateOptions::greedy(5) });
        bench.settle();
        let all = drain(&run);
        assert_eq!((all.text.as_str(), all.finish), (text, Some(finish)));
    }
}

#[test]
fn a_token_that_ends_the_run_has_no_text() {
    let mut bench = Bench::new(Fake::saying("hi"), EngineConfig::default());
    let id = bench.ready(3);
    let run = bench.generate(id, GenerateOptions { shown: vec![END], ..GenerateOptions::greedy(9) });
    bench.settle();
    let all = drain(&run);
    assert_eq!((all.text.as_str(), all.finish), ("hi", Some(Finish::StopToken)));
    // Where it does not end the run it is a token like others.
    let id = bench.ready(3);
    let run = bench.generate(id, GenerateOptions { shown: vec![END], ignore_end: true, ..GenerateOptions::greedy(3) });
    bench.settle();
    assert_eq!(drain(&run).text, "hi<end>");
}

#[test]
fn a_run_says_which_stop_text_ended_it() {
    // The one whose end came first; of those that end together the longest.
    for (stops, text, which) in [
        (&["zz", "cd"][..], "ab", 1),
        (&["bcde", "cd", "c"], "ab", 2),
        (&["d", "bcd", "cd"], "a", 1),
        (&["cd", "cd"], "ab", 0),
    ] {
        let mut bench = bench();
        let id = bench.ready(3);
        let run = bench.generate(id, GenerateOptions { stop_text: texts(stops), ..GenerateOptions::greedy(9) });
        bench.settle();
        let all = drain(&run);
        assert_eq!((all.text.as_str(), all.finish), (text, Some(Finish::StopText(which))), "{stops:?}");
    }
}
