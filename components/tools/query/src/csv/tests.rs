//! What is asked of tables, and what of it is refused.

use serde_json::{Value, json};

use super::*;

const SHOP: &str = "\
name,kind,price,sold,since
bread,food,3.10,2026-01-02,1
\"pen, \"\"good\"\"\",tool,0.2,2025-12-31,2
crème 🍮,food,12,,10
salt,food,0.1,2026-01-01,9
,,,,
";

fn ask(arguments: &Value) -> Answer {
    super::call(&arguments.to_string()).unwrap()
}

fn given(mut arguments: Value) -> Value {
    if arguments.get("csv").is_none() {
        arguments["csv"] = SHOP.into();
    }
    let answer = ask(&arguments);
    assert!(!answer.is_error, "{arguments}: {answer:?}");
    serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap()
}

fn rows(arguments: Value) -> Value {
    given(arguments)["rows"].clone()
}

fn refused(mut arguments: Value) -> String {
    if arguments.get("csv").is_none() {
        arguments["csv"] = SHOP.into();
    }
    let answer = ask(&arguments);
    assert!(answer.is_error && answer.structured.is_none(), "{answer:?}");
    match answer.content.as_slice() {
        [nala_sdk::tools::Content::Text(text)] => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// The names of the rows for which a condition holds.
fn found(conditions: &Value) -> Value {
    let rows = rows(json!({"columns": ["name"], "where": conditions}));
    rows.as_array().unwrap().iter().map(|row| row[0].clone()).collect()
}

#[test]
fn rows_are_given_as_they_are_written() {
    let all = json!({
        "columns": ["name", "kind", "price", "sold", "since"],
        "rows": [
            ["bread", "food", "3.10", "2026-01-02", "1"],
            ["pen, \"good\"", "tool", "0.2", "2025-12-31", "2"],
            ["crème 🍮", "food", "12", "", "10"],
            ["salt", "food", "0.1", "2026-01-01", "9"],
            ["", "", "", "", ""],
        ],
        "total_rows": 5,
        "truncated": false,
    });
    assert_eq!(given(json!({})), all);
    let some = rows(json!({"columns": ["sold", "name", "sold"], "limit": 1}));
    assert_eq!(some, json!([["2026-01-02", "bread", "2026-01-02"]]));
}

#[test]
fn conditions_choose_rows() {
    let one = |column: &str, op: &str, value: Value| found(&json!([{"column": column, "op": op, "value": value}]));
    assert_eq!(one("name", "=", json!("bread")), json!(["bread"]));
    assert_eq!(one("price", "=", json!(3.1)), json!(["bread"]));
    assert_eq!(one("price", "=", json!("3.1")), json!([]));
    assert_eq!(one("price", "!=", json!(3.1)), json!(["pen, \"good\"", "crème 🍮", "salt", ""]));
    assert_eq!(one("since", ">", json!(2)), json!(["crème 🍮", "salt"]));
    assert_eq!(one("since", ">=", json!("2")), json!(["pen, \"good\"", "crème 🍮", "salt"]));
    assert_eq!(one("since", "<", json!(2)), json!(["bread"]));
    assert_eq!(one("price", "<=", json!(0.2)), json!(["pen, \"good\"", "salt"]));
    assert_eq!(one("sold", "<", json!("2026-01-02")), json!(["pen, \"good\"", "salt"]));
    assert_eq!(one("name", "in", json!(["salt", "bread", "x"])), json!(["bread", "salt"]));
    assert_eq!(one("since", "in", json!([9, 1])), json!(["bread", "salt"]));
    assert_eq!(one("name", "contains", json!("🍮")), json!(["crème 🍮"]));
    assert_eq!(one("since", "contains", json!(1)), json!(["bread", "crème 🍮"]));
    assert_eq!(one("name", "starts_with", json!("s")), json!(["salt"]));
    assert_eq!(one("name", "ends_with", json!("\"")), json!(["pen, \"good\""]));
    assert_eq!(one("sold", "is_empty", json!("")), json!(["crème 🍮", ""]));
    let both = json!([{"column": "kind", "op": "=", "value": "food"}, {"column": "sold", "op": "not_empty"}]);
    assert_eq!(found(&both), json!(["bread", "salt"]));
}

#[test]
fn rows_are_sorted_as_numbers_or_as_text() {
    let sorted = |by: &str, descending: bool| {
        let rows = rows(json!({"columns": [by], "sort_by": by, "descending": descending}));
        rows.as_array().unwrap().iter().map(|row| row[0].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(sorted("since", false), ["1", "2", "9", "10", ""]);
    assert_eq!(sorted("since", true), ["10", "9", "2", "1", ""]);
    assert_eq!(sorted("price", false), ["0.1", "0.2", "3.10", "12", ""]);
    assert_eq!(sorted("name", true), ["salt", "pen, \"good\"", "crème 🍮", "bread", ""]);
    let mixed = rows(json!({"csv": "a\n10\n9\nx", "sort_by": "a"}));
    assert_eq!(mixed, json!([["10"], ["9"], ["x"]]));
    let stable = rows(json!({"csv": "a,b\n1,x\n0,y\n1.0,z", "sort_by": "a", "descending": true}));
    assert_eq!(stable, json!([["1", "x"], ["1.0", "z"], ["0", "y"]]));
}

#[test]
fn groups_are_computed_exactly() {
    let asked = json!({
        "where": [{"column": "kind", "op": "not_empty"}],
        "group_by": ["kind"],
        "aggregate": [
            {"op": "count"}, {"op": "count", "column": "sold"}, {"op": "sum", "column": "price"},
            {"op": "avg", "column": "since"}, {"op": "min", "column": "sold"}, {"op": "max", "column": "since"},
        ],
        "sort_by": "sum(price)",
    });
    let answer = given(asked);
    let names = json!(["kind", "count", "count(sold)", "sum(price)", "avg(since)", "min(sold)", "max(since)"]);
    assert_eq!(answer["columns"], names);
    assert_eq!(
        answer["rows"],
        json!([
            ["tool", 1, 1, "0.2", "2", "2025-12-31", "2"],
            ["food", 3, 2, "15.2", "6.6666666666666666666666666667", "2026-01-01", "10"],
        ])
    );
    assert_eq!(rows(json!({"aggregate": [{"op": "sum", "column": "price"}]})), json!([["15.4"]]));
    assert_eq!(rows(json!({"group_by": ["kind"], "limit": 2})), json!([["food", 3], ["tool", 1]]));
    let tenths = format!("n\n{}", "0.1\n".repeat(1000));
    assert_eq!(rows(json!({"csv": tenths, "aggregate": [{"op": "sum", "column": "n"}]})), json!([["100"]]));
    let none = json!({
        "csv": "a\n",
        "aggregate": [{"op": "count"}, {"op": "sum", "column": "a"}, {"op": "avg", "column": "a"}, {"op": "max", "column": "a"}],
    });
    assert_eq!(rows(none), json!([[0, "0", null, null]]));
    assert_eq!(given(json!({"csv": "a\n", "group_by": ["a"]}))["rows"], json!([]));
}

#[test]
fn other_delimiters_and_marks_are_read() {
    assert_eq!(
        rows(json!({"csv": "\u{feff}a;b\r\n1;\"x;y\"\r\n", "delimiter": ";", "columns": ["a", "b"]})),
        json!([["1", "x;y"]])
    );
    assert_eq!(rows(json!({"csv": " a \t b\n1\t2", "delimiter": "\t", "columns": ["b"]})), json!([["2"]]));
    assert_eq!(rows(json!({"csv": "a\0,日本\n\0,\"本\n日\"", "columns": ["a\0", "日本"]})), json!([["\0", "本\n日"]]));
}

#[test]
fn what_cannot_be_answered_is_told() {
    let condition =
        |column: &str, op: &str, value: Value| json!({"where": [{"column": column, "op": op, "value": value}]});
    let sum = |csv: &str| json!({"csv": csv, "aggregate": [{"op": "sum", "column": "n"}]});
    let known = "there is no column `cost`; the columns are `name`, `kind`, `price`, `sold`, `since`";
    let table = [
        (json!({"columns": ["cost"]}), known),
        (json!({"sort_by": "cost"}), known),
        (json!({"group_by": ["cost"]}), known),
        (json!({"aggregate": [{"op": "sum", "column": "cost"}]}), known),
        (condition("cost", "=", json!(1)), known),
        (condition("sold", ">", json!(1)), "row 1 of column `sold` holds `2026-01-02`, which is no number"),
        (condition("name", "in", json!("bread")), "an array"),
        (condition("name", "=", Value::Null), "a text or a number"),
        (condition("name", "<", json!({})), "a text or a number"),
        (condition("price", "=", json!(1e300)), "at most 28 digits"),
        (json!({"aggregate": [{"op": "sum"}]}), "of which it is the sum"),
        (json!({"aggregate": [{"op": "count"}], "sort_by": "name"}), "no column `name` to sort by; it has `count`"),
        (json!({"columns": ["name"], "group_by": ["kind"]}), "leave out `columns`"),
        (json!({"columns": vec!["name"; 65]}), "`columns` has 65 entries and may have 64"),
        (json!({"delimiter": ""}), "one character"),
        (json!({"delimiter": "é"}), "one character"),
        (json!({"csv": ""}), "the first line of `csv` is to name the columns"),
        (json!({"csv": "a,b\n1,2\n3\n"}), "row 2 (line 3) has 1 cells, and the header names 2 columns"),
        (json!({"csv": "a,b,a\n1,2,3", "columns": ["a"]}), "columns 1 and 3 are both named `a`"),
        (json!({"csv": "a;b\n1;2", "columns": ["b"]}), "name the `delimiter`"),
        (json!({"csv": "a,b\n1,\"2\n3,4\n5,6"}), "begins with in line 2 is never closed"),
        (sum("n\n1\n\n \n1,000"), "row 3"),
        (sum("n\n1\nx\0"), "row 2 of column `n` holds `x\\u{0}`, which is no number"),
        (sum("n\n9999999999999999999999999999\n0.1"), "too many digits"),
        (sum("n\n1e40"), "more than 28 digits"),
    ];
    for (arguments, why) in table {
        let error = refused(arguments.clone());
        assert!(error.contains(why), "{arguments}: {error}");
    }
}

#[test]
fn what_is_large_is_cut_or_refused() {
    let many = format!("n\n{}", (0..20_000).map(|n| format!("{n}\n")).collect::<String>());
    let answer = given(json!({"csv": many}));
    assert_eq!((answer["rows"].as_array().unwrap().len(), &answer["total_rows"]), (100, &json!(20_000)));
    assert_eq!((&answer["truncated"], &answer["note"]), (&json!(true), &json!("the limit is 100 rows")));
    assert_eq!(rows(json!({"csv": many, "limit": 1_000_000})).as_array().unwrap().len(), 10_000);

    let wide = format!("a,b\n{}", format!("{},1\n", "x".repeat(1000)).repeat(1000));
    let answer = given(json!({"csv": wide, "limit": 1000}));
    assert_eq!(answer["rows"].as_array().unwrap().len(), 259);
    assert!(answer["note"].as_str().unwrap().contains("256 KiB"));
    assert!(answer.to_string().len() < 257 << 10);

    let huge = format!("a,b\n\"{}\",1", "\"\"".repeat(2_000_000));
    let answer = given(json!({"csv": huge}));
    assert_eq!((&answer["rows"], &answer["truncated"]), (&json!([]), &json!(true)));
    assert_eq!(rows(json!({"csv": huge, "columns": ["b"]})), json!([["1"]]));
    assert!(refused(json!({"csv": "x".repeat(9 << 20)})).contains("may have 8388608"));

    let header: Vec<_> = (0..100_000).map(|n| format!("c{n}")).collect();
    let columns = format!("{}\n{}", header.join(","), vec!["1"; 100_000].join(","));
    assert!(refused(json!({"csv": columns})).contains("names of the columns alone"));
    let error = refused(json!({"csv": columns, "columns": ["d"]}));
    assert!(error.contains("and 99960 more") && error.len() < 1000, "{error}");
    assert_eq!(rows(json!({"csv": columns, "columns": ["c99999"]})), json!([["1"]]));

    let groups = format!("a\n{}", (0..100_001).map(|n| format!("{n}\n")).collect::<String>());
    assert!(refused(json!({"csv": groups, "group_by": ["a"]})).contains("more than 100000 groups"));
    let most = format!("a,b\n{}", ",\n".repeat(4_000_000));
    assert_eq!(given(json!({"csv": most, "limit": 1, "sort_by": "a"}))["total_rows"], 4_000_000);
}
