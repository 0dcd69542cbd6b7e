use super::*;

/// What of a text may be sent, in pieces of a size, and the object it makes.
fn taken(text: &str, size: usize) -> (String, String) {
    let mut arguments = Arguments::new();
    let mut sent = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let cut = (size..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(cut);
        sent.push_str(arguments.push(piece));
        rest = after;
    }
    assert_eq!(arguments.written(), text);
    (sent, arguments.object())
}

const GOOD: [&str; 6] = [
    "{}",
    " { } ",
    r#"{"a":1,"b":[-0.5e+3,0,10,[],{}],"c":{"d":null,"e":true,"f":false}}"#,
    r#"{ "ü\n\"\\\/" : "世🌍\u00e4\ud83c\udf0d\uFFFF" , "x" : [ 1 , 2 ] }"#,
    "{\"a\":\n12345678901234567890123\n}",
    r#"{"a":1E5,"a":0e-1}"#,
];

#[test]
fn an_object_passes_as_it_is_however_it_is_cut() {
    for text in GOOD {
        for size in [1, 2, 3, 1000] {
            assert_eq!(taken(text, size), (text.to_owned(), text.to_owned()), "by {size}");
        }
    }
}

#[test]
fn what_makes_it_no_json_stays_behind() {
    for (text, good) in [
        ("[1]", ""),
        ("oops", ""),
        ("{}x", "{}"),
        ("{\"a\":1}}", "{\"a\":1}"),
        ("{a:1}", "{"),
        ("{'a':1}", "{"),
        ("{\"a\" 1}", "{\"a\" "),
        ("{\"a\":1,}", "{\"a\":1,"),
        ("{\"a\":01}", "{\"a\":0"),
        ("{\"a\":1.}", "{\"a\":1."),
        ("{\"a\":-}", "{\"a\":-"),
        ("{\"a\":1e+}", "{\"a\":1e+"),
        ("{\"a\":.5}", "{\"a\":"),
        ("{\"a\":trve}", "{\"a\":tr"),
        ("{\"a\":\"b\nc\"}", "{\"a\":\"b"),
        ("{\"a\":\"\\x\"}", "{\"a\":\"\\"),
        ("{\"a\":\"\\u00g0\"}", "{\"a\":\"\\u00"),
        ("{\"a\":\"\\udc00\"}", "{\"a\":\"\\udc0"),
        ("{\"a\":\"\\ud800x\"}", "{\"a\":\"\\ud800"),
        ("{\"a\":\"\\ud800\\u0041\"}", "{\"a\":\"\\ud800\\u004"),
        ("{\"a\":[1}", "{\"a\":[1"),
        ("{\"a\":{\"b\":1]", "{\"a\":{\"b\":1"),
        ("{\"a\":1 ö}", "{\"a\":1 "),
    ] {
        for size in [1, 1000] {
            let (sent, object) = taken(text, size);
            assert_eq!(sent, good, "{text:?} by {size}");
            assert!(serde_json::from_str::<Map<String, Value>>(&object).is_ok(), "{text:?}: {object:?}");
        }
    }
}

#[test]
fn the_checker_and_the_parser_agree_about_every_beginning() {
    // A beginning passes whole, and is an object only at the very end.
    for text in GOOD {
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let (sent, object) = taken(&text[..cut], 1);
            assert_eq!(sent, text[..cut]);
            assert!(serde_json::from_str::<Map<String, Value>>(&object).is_ok(), "{object:?}");
        }
    }
}

#[test]
fn it_is_whole_exactly_where_a_parser_reads_an_object() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % most as u64).unwrap()
    };
    let mut wholes = 0;
    for _ in 0..200_000 {
        let mut text: Vec<char> = GOOD[below(GOOD.len())].chars().collect();
        let letters: Vec<char> = "{}[]\":,\\ud8c9-+.0e tfn\n".chars().collect();
        let at = below(text.len());
        match below(3) {
            0 => text[at] = letters[below(letters.len())],
            1 => text.insert(at, letters[below(letters.len())]),
            _ => drop(text.remove(at)),
        }
        let text: String = text.into_iter().collect();
        let mut arguments = Arguments::new();
        let sent = arguments.push(&text);
        let whole = sent == text && arguments.next == Next::Nothing;
        let parsed = serde_json::from_str::<Map<String, Value>>(&text);
        // What a parser has no room for is JSON nevertheless.
        let large = parsed.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
        assert!(large || whole == parsed.is_ok(), "{text:?}: {whole}, {parsed:?}");
        wholes += u32::from(whole);
    }
    assert!((20_000..180_000).contains(&wholes), "both cases are there: {wholes}");
}

#[test]
fn of_arguments_that_break_off_the_whole_members_are_left() {
    for (text, object) in [
        ("", "{}"),
        ("{", "{}"),
        ("{\"a\"", "{}"),
        ("{\"a\":\"b", "{}"),
        ("{\"a\":\"b\"", "{\"a\":\"b\"}"),
        ("{\"a\":\"b\",\"c\":[1,2", "{\"a\":\"b\"}"),
        ("{\"a\":12", "{}"),
        ("{\"a\":12 ", "{\"a\":12}"),
        ("{\"a\":12,\"b", "{\"a\":12}"),
        ("{\"b\":true,\"a\":nul", "{\"b\":true}"),
        ("{\"z\":1,\"a\":2,oops", "{\"z\":1,\"a\":2}"),
    ] {
        assert_eq!(taken(text, 1).1, object, "{text:?}");
    }
}

#[test]
fn depth_is_bounded() {
    let deep = format!("{{\"a\":{}", "[".repeat(10_000));
    let (sent, object) = taken(&deep, 1000);
    assert_eq!((sent.len(), object.as_str()), (5 + MAX_DEPTH - 1, "{}"));
}
