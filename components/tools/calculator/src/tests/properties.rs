use dashu_ratio::RBig;
use proptest::prelude::*;

use super::{calculate, tell};

/// An expression of integers and what it is, calculated by other means.
fn integers() -> impl Strategy<Value = (String, i128)> {
    let leaf = (-1_000_000_000_i128..1_000_000_000).prop_map(|number| (format!("({number})"), number));
    leaf.prop_recursive(4, 24, 2, |inner| {
        (inner.clone(), inner, 0..4_u8).prop_filter_map("too large, or a division by 0", |(a, b, operator)| {
            let (sign, result) = match operator {
                0 => ("+", a.1.checked_add(b.1)?),
                1 => ("-", a.1.checked_sub(b.1)?),
                2 => ("*", a.1.checked_mul(b.1)?),
                // Of the divisor's sign, unlike that of Rust.
                _ => ("mod", a.1.checked_rem(b.1)?.checked_add(b.1)?.checked_rem(b.1)?),
            };
            Some((format!("({} {sign} {})", a.0, b.0), result))
        })
    })
}

/// Without more parentheses than are needed, so that it tests how operators bind.
fn flat() -> impl Strategy<Value = (String, i128)> {
    let product = prop::collection::vec(0..1_000_i128, 1..4).prop_map(|factors| {
        let text: Vec<String> = factors.iter().map(ToString::to_string).collect();
        (text.join(" * "), factors.iter().product::<i128>())
    });
    prop::collection::vec((product, any::<bool>()), 1..6).prop_map(|products| {
        products.into_iter().fold((String::from("0"), 0), |(text, sum), ((product, value), plus)| {
            if plus { (format!("{text}+{product}"), sum + value) } else { (format!("{text}-{product}"), sum - value) }
        })
    })
}

proptest! {
    #[test]
    fn integers_are_as_those_of_the_machine((expression, right) in integers()) {
        let outcome = calculate(&expression).unwrap();
        prop_assert_eq!(outcome.result, right.to_string());
        prop_assert!(outcome.exact);
    }

    #[test]
    fn products_bind_tighter_than_sums((expression, right) in flat()) {
        prop_assert_eq!(calculate(&expression).unwrap().result, right.to_string());
    }

    #[test]
    fn decimals_are_as_integers_with_a_point(a in 0..1_000_000_000_i128, b in 1..1_000_000_000_i128, places in 1_usize..9) {
        let point = |number: i128, places: usize| {
            let digits = format!("{number:0>width$}", width = places + 1);
            let (whole, fraction) = digits.split_at(digits.len() - places);
            format!("{whole}.{fraction}")
        };
        let value = |text: &str| RBig::from_str_decimal(text).unwrap();
        let (x, y) = (point(a, places), point(b, places));
        prop_assert_eq!(value(&calculate(&format!("{x} + {y}")).unwrap().result), value(&point(a + b, places)));
        prop_assert_eq!(value(&calculate(&format!("{x} * {y}")).unwrap().result), value(&point(a * b, 2 * places)));
    }

    #[test]
    fn a_quotient_is_off_by_less_than_its_last_digit(a in any::<i64>(), b in 1..i64::MAX) {
        let outcome = calculate(&format!("({a}) / {b}")).unwrap();
        let told = RBig::from_str_decimal(&outcome.result).unwrap();
        let right = RBig::from(a) / RBig::from(b);
        prop_assert!(told == right || !outcome.exact);
        let off = if told > right { &told - &right } else { &right - &told };
        let size = if a < 0 { -right } else { right };
        // Half of the 34th digit.
        prop_assert!(off * RBig::from(10).pow(33) * RBig::from(2) <= size);
    }

    #[test]
    fn a_unit_is_the_same_there_and_back(value in -1_000_000_i64..1_000_000, index in 0_usize..8) {
        let pairs = [("km", "mi"), ("kg", "lb"), ("°C", "°F"), ("GB", "KiB"), ("h", "s"), ("J", "BTU"), ("psi", "bar"), ("deg", "turn")];
        let (from, to) = pairs[index];
        let outcome = calculate(&format!("(({value}) * 1 {from} in {to}) in {from}"));
        // One does not calculate with °C.
        if from != "°C" {
            prop_assert_eq!(outcome.unwrap().result, value.to_string());
        }
        let outcome = calculate(&format!("({value} {from} in {to}) in {from}")).unwrap();
        prop_assert_eq!(outcome.result, value.to_string());
        prop_assert!(outcome.exact);
    }

    #[test]
    fn whatever_is_asked_is_answered(expression in "[-+*/%^!(),.0-9e a-z°²µ]{0,60}") {
        let answer = tell(&expression);
        prop_assert!(answer.is_error != answer.structured.is_some());
    }

    #[test]
    fn words_in_any_order_are_answered(
        words in prop::collection::vec(prop::sample::select(&[
            "1", "2.5", "9e99", "km", "in", "to", "°C", "K", "%", "of", "mod", "+", "-", "*", "/", "^", "(", ")", ",", "!", "sqrt(",
            "sin(", "ln(", "max(", "pi", "e", "m", "s", "²", "deg", "acos(", "exp(", "round(", "0",
        ][..]), 0..20),
    ) {
        let answer = tell(&words.join(" "));
        prop_assert!(answer.is_error != answer.structured.is_some());
    }
}
