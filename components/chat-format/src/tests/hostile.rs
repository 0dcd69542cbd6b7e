//! Whatever the text is: nothing panics, events keep their order, and it makes no
//! difference where the text was cut.

use crate::{Ended, Event, Format};

use crate::tests::answers::{brief, events, tools};

/// A seeded source of chance.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// Pieces of all notations.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "'",
    ":",
    ",",
    "=",
    ">",
    "<",
    "\\",
    "\n",
    " ",
    "-1.5e",
    "null",
    "True",
    "call:",
    "\"name\": ",
    "\"arguments\": ",
    "\"parameters\": ",
    "\"function\": ",
    "{\"name\": \"any\", \"arguments\": {",
    "now",
    "weather",
    "city",
    "functions.now:0",
    "all\n",
    " to=functions.now",
    "analysis",
    "json",
    "```",
    "```json\n",
    "Köln 🚀",
    "<function=now>",
    "<parameter=city>",
    "</parameter>",
    "</function>",
    "<invoke name=\"now\">",
    "</invoke>",
    "]<]minimax[>[<a>",
    "]<]minimax[>[</a>",
    "<|open|>call tool=\"now\" index=\"1\"<|sep|>",
    "\\ud83d",
    "\\u0041",
];

fn check(format: Format, tail: &str, text: &str, ended: Ended, chance: &mut Chance) -> Vec<Event> {
    let whole = events(format, &tools(), tail, [text], ended);
    let expected = brief(&whole);
    let characters: Vec<&str> = text.split_inclusive(|_: char| true).collect();
    assert_eq!(brief(&events(format, &tools(), tail, characters, ended)), expected, "{format:?} {tail:?} {text:?}");
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let most = chance.below(12) + 1;
        let at = (most..=rest.len()).find(|&at| rest.is_char_boundary(at)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(at);
        pieces.push(piece);
        rest = after;
    }
    assert_eq!(brief(&events(format, &tools(), tail, pieces, ended)), expected, "{format:?} {tail:?} {text:?}");
    whole
}

#[test]
fn pieces_of_notations_in_any_order() {
    let mut chance = Chance(7);
    let mut calls = 0;
    let mut malformed = 0;
    for &format in Format::ALL {
        let markers = format.markers();
        let tails = ["", "<think>\n", "<|start|>assistant", ">>>", "<tool_call>\n"];
        for round in 0..600 {
            let mut text = String::new();
            for _ in 0..chance.below(16) {
                text.push_str(if markers.is_empty() || chance.below(3) > 0 {
                    chance.pick(PIECES)
                } else {
                    chance.pick(markers)
                });
            }
            let ended = if round % 2 == 0 { Ended::Complete } else { Ended::Cut };
            let events = check(format, tails[chance.below(tails.len())], &text, ended, &mut chance);
            calls += events.iter().filter(|event| matches!(event, Event::CallStart { .. })).count();
            malformed += events.iter().filter(|event| matches!(event, Event::Malformed { .. })).count();
        }
    }
    // Otherwise the pieces are badly chosen.
    assert!(calls > 200 && malformed > 200, "{calls} {malformed}");
}

/// Valid answers, to be spoilt.
const VALID: &[(Format, &str)] = &[
    (
        Format::Hermes,
        "<think>\nHm\n</think>\n\nOk\n<tool_call>\n{\"name\": \"any\", \"arguments\": {\"a\": [1, \"ü\\n\"]}}\n</tool_call>",
    ),
    (
        Format::Llama3,
        "{\"name\": \"any\", \"parameters\": {\"a\": {\"b\": null}}}; {\"name\": \"now\", \"parameters\": {}}",
    ),
    (Format::Lfm2, "<|tool_call_start|>[any(a='x', b=[1, {\"c\": None}]), now()]<|tool_call_end|>"),
    (Format::Mistral, "[TOOL_CALLS]any[CALL_ID]abcdefghi[ARGS]{\"a\": \"b\"}[TOOL_CALLS]now[ARGS]{}"),
    (
        Format::QwenCoder,
        "<tool_call>\n<function=weather>\n<parameter=city>\nUlm\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
    ),
    (Format::Glm, "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Ulm</arg_value>\n</tool_call>"),
    (
        Format::Harmony,
        "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary to=functions.any <|constrain|>json<|message|>{\"a\": 1}<|call|>",
    ),
    (Format::Gemma4, "<|tool_call>call:any{a:<|\"|>x<|\"|>,b:[1,true]}<tool_call|>"),
    (
        Format::DeepSeekR1,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>any\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>",
    ),
    (
        Format::DeepSeekV32,
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"any\">\n<｜DSML｜parameter name=\"a\" string=\"true\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ),
    (
        Format::MiniMaxM3,
        "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"any\">]<]minimax[>[<a>]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[</a>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
    ),
    (
        Format::KimiK2,
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.any:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|>",
    ),
    (Format::Apertus, "<|tools_prefix|>[{\"any\": {\"a\": 1}}, {\"now\": {}}]<|tools_suffix|>"),
];

#[test]
fn valid_answers_spoilt() {
    let mut chance = Chance(11);
    for &(format, valid) in VALID {
        let intact = check(format, "", valid, Ended::Complete, &mut chance);
        assert!(intact.iter().any(|event| matches!(event, Event::CallEnd { .. })), "{format:?}");
        assert!(!intact.iter().any(|event| matches!(event, Event::Malformed { .. })), "{format:?}");
        let letters: Vec<char> = valid.chars().collect();
        for round in 0..1500 {
            let mut spoilt = letters.clone();
            for _ in 0..=chance.below(3) {
                let at = chance.below(spoilt.len());
                match chance.below(4) {
                    0 => drop(spoilt.remove(at)),
                    1 => spoilt.truncate(at + 1),
                    2 => spoilt.insert(at, letters[chance.below(letters.len())]),
                    _ => spoilt[at] = ['"', '{', '}', '<', '\n', 'x', '\\'][chance.below(7)],
                }
                if spoilt.is_empty() {
                    spoilt.push('x');
                }
            }
            let text: String = spoilt.iter().collect();
            let ended = if round % 3 == 0 { Ended::Cut } else { Ended::Complete };
            check(format, "", &text, ended, &mut chance);
        }
    }
}

#[test]
fn text_without_markers_is_not_changed() {
    let mut chance = Chance(3);
    let letters =
        ["a", "Z", "0", " ", "\n", "\t", "é", "🚀", ".", "(", "*", "#", "\\", "/", "'", "-", "\u{0}", "\u{feff}"];
    for &format in Format::ALL {
        for _ in 0..300 {
            let text: String = (0..chance.below(40)).map(|_| chance.pick(&letters)).collect();
            let events = check(format, "", &text, Ended::Complete, &mut chance);
            let expected: &[String] = if text.is_empty() { &[] } else { &[format!("say: {text}")] };
            assert_eq!(brief(&events), expected, "{format:?}");
        }
    }
}

#[test]
fn deep_nesting_is_refused_and_no_stack_overflows() {
    for open in ["[", "{\"a\":", "(", "{a:"] {
        let deep = open.repeat(20_000);
        for (format, before) in [
            (Format::Hermes, "<tool_call>{\"name\": \"any\", \"arguments\": {\"a\": "),
            (Format::Lfm2, "<|tool_call_start|>[any(a="),
            (Format::Gemma4, "<|tool_call>call:any{a:"),
        ] {
            let events = events(format, &tools(), "", [before, &deep], Ended::Complete);
            assert!(events.iter().any(|event| matches!(event, Event::Malformed { index: Some(0), .. })), "{format:?}");
        }
    }
    let deep = "]<]minimax[>[<a>".repeat(20_000);
    let before = "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"any\">";
    let events = events(Format::MiniMaxM3, &tools(), "", [before, &deep], Ended::Complete);
    assert!(events.iter().any(|event| matches!(event, Event::Malformed { index: Some(0), .. })));
}
