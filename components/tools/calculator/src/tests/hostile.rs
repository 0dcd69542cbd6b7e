use std::time::{Duration, Instant};

use super::{calculate, tell};
use crate::limits::{DEPTH, LENGTH};

/// Far more than what any expression takes, so that a busy machine fails no test, and far
/// less than what one without limits would.
const SOON: Duration = Duration::from_secs(20);

/// What is said of an expression, soon.
#[track_caller]
fn said(expression: &str) -> String {
    let begun = Instant::now();
    let said = match calculate(expression) {
        Ok(outcome) => outcome.result,
        Err(problem) => problem.to_string(),
    };
    let shown: String = expression.chars().take(40).collect();
    assert!(begun.elapsed() < SOON, "{shown}: {:?}", begun.elapsed());
    said
}

#[test]
fn what_is_too_large_is_refused_at_once() {
    for expression in [
        "9^9^9^9",
        "9^9^9",
        "2^20000",
        "2^16611",
        "factorial(10^9)",
        "99999!",
        "3!!!!!",
        "10^999999999",
        "1e999999999",
        "1e99999999999999999999999999",
        "exp(1e9)",
        "exp(11520)",
        "1e4999 * 1e4999",
        "10^10^10^10^10",
        "(1e4000)^1.5",
        "1.5^(10^30)",
        "-(10^5000)*10",
    ] {
        assert!(said(expression).contains("too large"), "{expression}: {}", said(expression));
    }
    for expression in ["10^-999999999", "1e-999999999", "exp(-1e9)", "1e-4999 / 1e4999", "0.5^(10^30)", "2^-99999"] {
        assert!(said(expression).contains("too small"), "{expression}: {}", said(expression));
    }
}

#[test]
fn what_is_too_long_or_deep_is_refused_at_once() {
    let million = 1 << 20;
    for sign in ["(", "-", "1+", "2^", "sqrt(", "9", "é", "!"] {
        assert!(said(&sign.repeat(million)).contains(&format!("more than {LENGTH} characters")), "{sign}");
    }
    for sign in ["(", "sqrt(", "2^", "-(", "1+(", "m^", "2^-", "1 m in ("] {
        assert!(said(&sign.repeat(LENGTH / sign.len())).contains(&format!("more than {DEPTH} levels")), "{sign}");
    }
    assert_eq!(said(&format!("{}1{}", "(".repeat(DEPTH - 1), ")".repeat(DEPTH - 1))), "1");
    // Signs are no levels.
    assert_eq!(said(&format!("{}1", "-".repeat(LENGTH - 2))), "1");
}

#[test]
fn the_deepest_expression_needs_little_stack() {
    let deep = format!("{}1{}", "max(1, 2 ^ -sqrt(1 m / 1 m * ".repeat(DEPTH / 3 - 1), "))".repeat(DEPTH / 3 - 1));
    // A component has 1 MiB.
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(move || assert!(!said(&deep).contains("levels"))).unwrap().join().unwrap();
}

#[test]
fn the_dearest_expressions_end_soon() {
    let fill = |start: &str, step: &str| {
        let times = (LENGTH - start.len()) / step.len();
        format!("{start}{}", step.repeat(times))
    };
    for expression in [
        fill("9^5200/7^5900", "*3"),
        fill("9^5200/7^5900", "+1/3"),
        fill("9^5200/7^5900", "-7%2"),
        fill("9^5200/7^5900", "/3"),
        fill("1/7^5900", "+9!"),
        fill("0", "+1700!"),
        fill("0", "+9^5000/7^5000"),
        fill("1/3", "^.5"),
        fill("2", "+ln(3)"),
        fill("2", "+sin(99999999999999)"),
        fill("2", "+sin(1e14)"),
        fill("2", "+tan(2)"),
        fill("2", "+acos(.7)"),
        fill("2", "+exp(9e3)"),
        fill("2", "+1.1^.1"),
        fill("2", "+7^4999.1"),
        fill("2", "+e^e"),
        fill("2", "+pi"),
        fill("1 m", "+1ly"),
        fill("1 rad", "+1deg"),
        fill("1", "*deg*rad"),
        fill("2", "+3^(1/64)"),
        fill("2", "+(7^5900)^(1/64)"),
        fill("2", "+sqrt(7^5900)"),
        fill("2", "+log10(7^5900)"),
        fill("max(1", ",1"),
        fill("1 zzzz", "z"),
        fill("round(9^5200/7^5900,4000)", "+round(9^5200/7^5900,4000)"),
    ] {
        said(&expression);
    }
}

#[test]
fn units_are_bounded() {
    for expression in ["m^9", "(m^8)^8", "m^999999999999", "m^8*m", "m*kg*s*K*bit*N*J*W*Pa", "1/m^9"] {
        let said = said(expression);
        assert!(said.contains("units are multiplied") || said.contains("no such power"), "{expression}: {said}");
    }
}

#[test]
fn an_answer_is_short() {
    for expression in ["7^5900", "1/7^5900", "9^5200/7^5900", "1/3", &"z".repeat(3_999)] {
        let answer = tell(expression);
        let text = format!("{answer:?}");
        assert!(text.len() < 16_000, "{expression}: {}", text.len());
    }
}
