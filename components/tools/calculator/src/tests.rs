mod arithmetic;
mod functions;
mod hostile;
mod properties;
mod units;
mod wrong;

use super::*;

/// What is told in one line: `~` is put before what is not exact, the unit behind it.
fn told(expression: &str) -> String {
    let outcome = calculate(expression).unwrap_or_else(|problem| panic!("{expression:?}: {problem}"));
    let sign = if outcome.exact { "" } else { "~" };
    let unit = outcome.unit.map(|unit| format!(" {unit}")).unwrap_or_default();
    format!("{sign}{}{unit}", outcome.result)
}

#[track_caller]
fn check(table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter(|(expression, right)| told(expression) != *right)
        .map(|(expression, right)| format!("{expression}: {} is told, not {right}", told(expression)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_answer_is_json_that_follows_the_schema() {
    let answer = call("calculate", r#"{"expression": "3 km + 200 m in mi"}"#).unwrap();
    assert!(!answer.is_error);
    let json: serde_json::Value = serde_json::from_str(answer.structured.as_deref().unwrap()).unwrap();
    let right = serde_json::json!({"result": "1.988387815159468702775789389962618", "unit": "mi", "exact": false});
    assert_eq!(json, right);
    let answer = call("calculate", r#"{"expression": "37 * 43"}"#).unwrap();
    let right = r#"{"result":"1591","unit":null,"exact":true}"#;
    assert_eq!(answer.structured.as_deref(), Some(right));
}

#[test]
fn what_is_wrong_is_an_answer_for_the_model() {
    let answer = call("calculate", r#"{"expression": "1 +"}"#).unwrap();
    assert!(answer.is_error && answer.structured.is_none());
    assert!(matches!(call("calculate", "{}"), Err(Error::InvalidArguments(_))));
    assert!(matches!(call("calculate", r#"{"expression": 1}"#), Err(Error::InvalidArguments(_))));
}

#[test]
fn the_schemas_are_json() {
    for tool in tools() {
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let input = read(&tool.input_schema);
        assert_eq!(input["type"], "object");
        assert!(
            input["properties"]["expression"]["description"].as_str().unwrap().contains(&limits::LENGTH.to_string())
        );
        let output = read(tool.output_schema.as_deref().unwrap());
        let answer = serde_json::to_value(calculate("1").unwrap()).unwrap();
        for name in output["required"].as_array().unwrap() {
            assert!(answer.get(name.as_str().unwrap()).is_some(), "{name}");
        }
        assert!(output["properties"]["exact"]["description"].as_str().unwrap().contains(&limits::TOLD.to_string()));
        assert_eq!(tool.annotations.read_only, Some(true));
    }
}

#[test]
fn what_the_description_says_is_so() {
    check(&[
        ("20% of 150", "30"),
        ("150 + 20%", "180"),
        ("150 * 20%", "30"),
        ("30 / 150 in %", "20 %"),
        ("5 ft 11 in to cm", "180.34 cm"),
        ("90 km/h * 20 min", "30 km"),
        ("2 GB / (50 Mbit/s)", "320 s"),
        ("1_234.5", "1234.5"),
    ]);
    for name in ["sqrt", "cbrt", "round(x, digits)", "log(x, base)", "atan", "factorial"] {
        assert!(WHAT.contains(name), "{name}");
    }
}
