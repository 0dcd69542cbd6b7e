//! Random walks: what the masks allow is in the language, forks and steps back
//! change nothing.

use proptest::prelude::*;

use super::*;

/// Sources of every kind, each compiled once.
fn sources() -> Vec<GrammarSource> {
    let person = r##"{"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"type":"integer",
        "minimum":0,"maximum":150},"tags":{"type":"array","items":{"enum":["a","b\n","日"]},"maxItems":3},
        "next":{"anyOf":[{"type":"null"},{"$ref":"#"}]}},"required":["name","age"],"additionalProperties":false}"##;
    vec![
        schema(person),
        schema(r#"{"type":"array","items":{"type":"number","minimum":-1.5},"minItems":1,"maxItems":4}"#),
        GrammarSource::AnyJson,
        regex("(ab|a)*c{2,3}[é-ü]?"),
        lark("start: e\ne: e \"+\" t | t\nt: \"(\" e \")\" | /[0-9]{1,3}/"),
        gbnf("root ::= item (\",\" ws item)*\nws ::= [ \\t]*\nitem ::= [a-c]+ | \"(\" root \")\" | [\\u65E5x]{2}"),
    ]
}

fn grammars() -> &'static [Grammar] {
    static GRAMMARS: std::sync::OnceLock<Vec<Grammar>> = std::sync::OnceLock::new();
    GRAMMARS.get_or_init(|| sources().into_iter().map(|source| compile(source).unwrap()).collect())
}

/// The n-th of the allowed tokens, n taken modulo their number.
fn choose(matcher: &mut Matcher, n: usize) -> Option<Token> {
    let mask = matcher.mask().unwrap();
    let count = mask.allowed();
    if count == 0 { None } else { mask.tokens().nth(n % count) }
}

/// Everything that can be seen of a matcher.
fn state(matcher: &mut Matcher) -> (Vec<Token>, Vec<Token>, bool, bool) {
    let forced = matcher.forced();
    (matcher.mask().unwrap().tokens().collect(), forced, matcher.is_accepting(), matcher.is_done())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn forks_and_steps_back_equal_a_fresh_matcher(
        which in 0..6_usize,
        program in prop::collection::vec((0..8_u8, any::<u16>()), 1..40),
    ) {
        let grammar = &grammars()[which];
        let mut matcher = Matcher::new(grammar);
        let mut said: Vec<Token> = Vec::new();
        for (action, n) in program {
            let n = usize::from(n);
            match action {
                0 => {
                    let back = n % (said.len() + 1);
                    prop_assert_eq!(matcher.rollback(back), Ok(()));
                    said.truncate(said.len() - back);
                }
                1 => matcher = matcher.fork(),
                2 => {
                    let forced = matcher.forced();
                    prop_assert_eq!(matcher.accept(&forced), Ok(forced.len()));
                    said.extend(forced);
                }
                3 => {
                    // Whatever it is: taken in as a whole or not at all.
                    let token = (n % 300) as Token;
                    if matcher.accept(&[token]).unwrap() == 1 {
                        said.push(token);
                    }
                }
                _ => {
                    if let Some(token) = choose(&mut matcher, n) {
                        prop_assert_eq!(matcher.accept(&[token]), Ok(1));
                        said.push(token);
                    }
                }
            }
        }
        let mut fresh = Matcher::new(grammar);
        prop_assert_eq!(fresh.accept(&said), Ok(said.len()));
        prop_assert_eq!(state(&mut matcher), state(&mut fresh));
    }

    #[test]
    fn whatever_is_walked_as_json_is_json(
        which in 0..3_usize,
        choices in prop::collection::vec(any::<u16>(), 600),
    ) {
        let mut matcher = Matcher::new(&grammars()[which]);
        let mut text: Vec<u8> = Vec::new();
        for n in choices {
            // The end, where it may come: random text in strings goes on forever.
            let token = if matcher.is_accepting() { END } else { closing(&mut matcher, n.into(), text.len()) };
            prop_assert_eq!(matcher.accept(&[token]), Ok(1));
            let Ok(byte) = u8::try_from(token) else { break };
            text.push(byte);
        }
        if matcher.is_done() {
            let text = String::from_utf8(text).unwrap();
            let value: serde_json::Value = match serde_json::from_str(&text) {
                Ok(value) => value,
                // A number that f64 cannot hold is JSON all the same.
                Err(error) if error.to_string().contains("out of range") => return Ok(()),
                Err(error) => panic!("{error}: {text:?}"),
            };
            match which {
                0 => {
                    prop_assert!(value["name"].as_str().unwrap().chars().count() <= 8);
                    prop_assert!((0..=150).contains(&value["age"].as_i64().unwrap()));
                }
                1 => {
                    let items = value.as_array().unwrap();
                    prop_assert!((1..=4).contains(&items.len()));
                    prop_assert!(items.iter().all(|n| n.as_f64().unwrap() >= -1.5), "{}", text);
                }
                _ => {}
            }
        } else {
            prop_assert!(text.len() >= 500, "{:?}", text);
        }
    }
}

/// A token that brings the end nearer, once the text is long.
fn closing(matcher: &mut Matcher, n: usize, length: usize) -> Token {
    let mask = matcher.mask().unwrap();
    let closing = [b'"', b']', b'}'].into_iter().map(Token::from).find(|&token| mask.allows(token));
    match closing {
        Some(token) if length > 30 => token,
        _ => choose(matcher, n).unwrap(),
    }
}
