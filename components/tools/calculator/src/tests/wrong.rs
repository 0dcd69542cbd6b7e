use super::calculate;

/// What is said, and where.
#[track_caller]
fn says(table: &[(&str, &str)]) {
    for (expression, part) in table {
        match calculate(expression) {
            Ok(outcome) => panic!("{expression:?} is {outcome:?}"),
            Err(problem) => {
                let said = problem.to_string();
                assert!(said.contains(part), "{expression:?}: {said:?} does not say {part:?}");
            }
        }
    }
}

#[test]
fn grammar_is_told_with_its_place() {
    says(&[
        ("", "the expression is empty"),
        ("  ", "the expression is empty"),
        ("1 +", "at character 4: a number, a function or a unit is expected, not the end"),
        ("1 + * 2", "at character 5: a number"),
        ("(1 + 2", "at character 7: a `)` is missing"),
        ("1 + 2)", "at character 6: there is no `(` for this `)`"),
        ("()", "at character 2: a number"),
        ("2 3", "at character 3: put an operator such as `*` before a number"),
        ("2(3)", "at character 2: put an operator such as `*` before `(`"),
        ("2 pi", "at character 3: put an operator such as `*` before `pi`"),
        ("3 sqrt(4)", "at character 3: put an operator"),
        ("1,234 + 1", "at character 2: `,` stands between the arguments of a function; thousands are written with `_`"),
        ("1.2.3", "at character 1: a number has one decimal point"),
        ("2 + 2 =", "at character 7: leave `=` out"),
        ("$5", "at character 1: leave `$` out"),
        ("[1]", "write `(` instead of `[`"),
        ("2 & 3", "at character 3: `&` means nothing here"),
        ("é + \u{0}", "at character 5"),
        ("sqrt 4", "at character 1: write sqrt(x), with parentheses"),
        ("5 °C in K + 1 K", "at character 11: a conversion comes last"),
        ("10 % -3", "at character 4: `%` before `-` may be meant in two ways"),
        ("10%-3", "for a remainder 10 mod (-3)"),
        ("20%%", "at character 4: `%` follows a plain number"),
    ]);
}

#[test]
fn names_are_told_with_those_there_are() {
    says(&[
        ("foo(1)", "at character 1: there is no function `foo`; there are sqrt, cbrt"),
        ("2 + foo", "at character 5: there is no unit `foo`; there are m, in, ft"),
        ("5 KM", "at character 3: there is no unit `KM`, but there is `km`"),
        ("5 mb", "but there is `MB`"),
        ("1 m in parsec", "at character 8: there is no unit `parsec`"),
        ("sqrt(1, 2)", "at character 1: `sqrt` is not for 2 arguments; write sqrt(x)"),
        ("log(5)", "write log(x, base), or ln(x), log10(x) or log2(x)"),
        ("max()", "`max` is not for 0 arguments; write max(a, b, ...)"),
        ("m(3)", "put an operator such as `*` between `m` and `(`"),
    ]);
}

#[test]
fn incompatible_units_are_both_named() {
    says(&[
        ("3 km + 2 kg", "at character 6: `km` (length) and `kg` (mass) cannot be added"),
        ("3 km - 2", "`km` (length) and a plain number cannot be subtracted"),
        ("3 km in kg", "at character 6: `km` (length) cannot be converted to `kg` (mass)"),
        ("5 in cm", "a plain number cannot be converted to `cm` (length)"),
        ("1 MB in m/s", "`MB` (data) cannot be converted to `m/s` (speed)"),
        ("max(1 m, 1 s)", "`s` (time) cannot be converted to `m` (length)"),
        ("7 km % 2 s", "cannot be divided with a remainder"),
        ("3 km in 5 m", "what is converted to is a unit without a number"),
        ("sqrt(2 m)", "there is no such power of `m` (length)"),
        ("2^(3 m)", "a plain number is needed, not `m` (length)"),
        ("sin(3 m)", "a plain number is needed, not `m` (length)"),
        ("20 °C + 5 °C", "two temperatures of `°C` (temperature) cannot be added"),
        ("20 °C * 2", "one does not calculate with `°C`"),
        ("300 K - 20 °C", "`°C` (temperature) cannot be subtracted from `K` (temperature)"),
        ("20 °C + 10%", "convert it to K first"),
    ]);
}

#[test]
fn what_has_no_result_is_told() {
    says(&[
        ("1 / 0", "at character 3: a division by 0"),
        ("1 / (2 - 2)", "a division by 0"),
        ("5 mod 0", "a division by 0"),
        ("0^-1", "a division by 0"),
        ("sqrt(-1)", "at character 1: a negative number has no square root"),
        (
            "(-8)^(1/3)",
            "at character 5: a negative number has no fractional power; for the third root of it write cbrt",
        ),
        ("ln(0)", "greater than 0"),
        ("log10(-5)", "greater than 0"),
        ("log(5, 1)", "no logarithm to the base of 1"),
        ("asin(2)", "from -1 to 1"),
        ("tan(pi / 2)", "infinite"),
        ("2.5!", "a factorial is that of an integer from 0"),
        ("(-1)!", "a factorial is that of an integer from 0"),
        ("round(1, 0.5)", "a small integer"),
        ("sin(1e15)", "less than 1e15"),
    ]);
}
