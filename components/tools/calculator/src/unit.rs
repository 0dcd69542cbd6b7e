//! Units: what is measured in them, and how large they are.

mod table;

use dashu_ratio::RBig;

use self::table::{ROWS, Row};
use crate::decimal;
use crate::problem::Fallible;

/// Powers of length, mass, time, temperature and data.
pub(crate) type Dimension = [i32; 5];

/// A unit, perhaps with a prefix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unit {
    /// As it is told.
    pub(crate) name: String,
    pub(crate) dimension: Dimension,
    /// How many of the base units (m, kg, s, K, bit) it is, but for `pi`.
    pub(crate) factor: RBig,
    /// Whether the factor is still to be multiplied by pi: so degrees and turns stay exact.
    pub(crate) pi: bool,
    /// What is added before the factor: a scale of temperature does not begin at 0 K.
    pub(crate) offset: Option<RBig>,
}

/// Which prefixes are put before a unit.
#[derive(Clone, Copy, PartialEq)]
enum Prefixes {
    None,
    /// From nano to exa.
    Metric,
    /// From kilo to exa, and from kibi to exbi.
    Data,
}

/// Symbol, name, base and exponent.
type Prefix = (&'static str, &'static str, u8, isize);

const METRIC: &[Prefix] = &[
    ("n", "nano", 10, -9),
    ("µ", "micro", 10, -6),
    // The Greek letter; the one above is the micro sign.
    ("μ", "micro", 10, -6),
    ("u", "micro", 10, -6),
    ("m", "milli", 10, -3),
    ("c", "centi", 10, -2),
    ("d", "deci", 10, -1),
    ("h", "hecto", 10, 2),
    ("k", "kilo", 10, 3),
    ("M", "mega", 10, 6),
    ("G", "giga", 10, 9),
    ("T", "tera", 10, 12),
    ("P", "peta", 10, 15),
    ("E", "exa", 10, 18),
];

const DATA: &[Prefix] = &[
    ("k", "kilo", 10, 3),
    ("K", "kilo", 10, 3),
    ("M", "mega", 10, 6),
    ("G", "giga", 10, 9),
    ("T", "tera", 10, 12),
    ("P", "peta", 10, 15),
    ("E", "exa", 10, 18),
    ("Ki", "kibi", 2, 10),
    ("Mi", "mebi", 2, 20),
    ("Gi", "gibi", 2, 30),
    ("Ti", "tebi", 2, 40),
    ("Pi", "pebi", 2, 50),
    ("Ei", "exbi", 2, 60),
];

impl Prefixes {
    fn all(self) -> &'static [Prefix] {
        match self {
            Self::None => &[],
            Self::Metric => METRIC,
            Self::Data => DATA,
        }
    }
}

/// The unit of a symbol, whose letters are as they are (`Mb` are megabits, `MB` megabytes),
/// or of a word, whose letters may be large and which may be a plural.
pub(crate) fn find(name: &str) -> Option<Unit> {
    let word = name.to_lowercase();
    let named = |row: &Row, word: &str| {
        let singular = word.strip_suffix('s').unwrap_or(word);
        row.words.iter().any(|known| *known == word || *known == singular)
    };
    ROWS.iter()
        .find_map(|row| row.symbols.contains(&name).then(|| row.unit(None)))
        .or_else(|| ROWS.iter().find_map(|row| named(row, &word).then(|| row.unit(None))))
        .or_else(|| {
            ROWS.iter().find_map(|row| {
                row.prefixes.all().iter().find_map(|prefix| {
                    let symbol = name.strip_prefix(prefix.0).is_some_and(|rest| row.symbols.contains(&rest));
                    let spelled = || word.strip_prefix(prefix.1).is_some_and(|rest| named(row, rest));
                    (symbol || spelled()).then(|| row.unit(Some(prefix)))
                })
            })
        })
}

/// Why there is no unit of a name, with what there is instead.
pub(crate) fn unknown(name: &str) -> String {
    let shown: String = name.chars().take(40).collect();
    for meant in [name.to_lowercase(), name.to_uppercase()] {
        if let Some(unit) = find(&meant) {
            return format!("there is no unit `{shown}`, but there is `{}`: small and large letters differ", unit.name);
        }
    }
    let known: Vec<&str> = ROWS.iter().filter_map(|row| row.symbols.first().copied()).collect();
    format!("there is no unit `{shown}`; there are {} and their multiples such as km, mg, kWh, GiB", known.join(", "))
}

/// What is measured, where it has a name.
pub(crate) fn quantity(dimension: Dimension) -> Option<&'static str> {
    if dimension == Dimension::default() {
        return Some("a plain number");
    }
    ROWS.iter().find(|row| row.kind.dimension() == dimension).map(|row| row.kind.name())
}

impl Row {
    fn unit(&self, prefix: Option<&Prefix>) -> Unit {
        let symbol = self.symbols.first().copied().unwrap_or_default();
        let (before, times) = match prefix {
            None => ("", RBig::ONE),
            Some(("μ" | "u", ..)) => ("µ", decimal::ten_to(-6)),
            Some(("K", ..)) => ("k", decimal::ten_to(3)),
            Some((symbol, _, 10, exponent)) => (*symbol, decimal::ten_to(*exponent)),
            Some((symbol, _, base, exponent)) => (*symbol, RBig::from(*base).pow(*exponent)),
        };
        let (pi, factor) = match self.factor.strip_prefix("pi*") {
            Some(rest) => (true, rest),
            None => (false, self.factor),
        };
        Unit {
            name: format!("{before}{symbol}"),
            dimension: self.kind.dimension(),
            // The test below reads every row.
            factor: product(factor).unwrap_or(RBig::ZERO) * times,
            pi,
            offset: self.offset.and_then(|offset| product(offset).ok()),
        }
    }
}

/// Decimals with `*` and `/` between them.
fn product(text: &str) -> Fallible<RBig> {
    let mut value = RBig::ONE;
    for factor in text.split('*') {
        let mut parts = factor.split('/');
        value *= plain(parts.next().unwrap_or_default())?;
        for divisor in parts {
            let divisor = plain(divisor)?;
            if divisor.is_zero() {
                return Err(format!("`{text}` divides by 0"));
            }
            value /= divisor;
        }
    }
    Ok(value)
}

fn plain(text: &str) -> Fallible<RBig> {
    RBig::from_str_decimal(text).map_err(|error| format!("`{text}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_read() {
        for row in ROWS {
            assert!(!row.symbols.is_empty());
            let factor = row.factor.strip_prefix("pi*").unwrap_or(row.factor);
            assert!(product(factor).unwrap() > RBig::ZERO, "{}", row.factor);
            assert!(row.offset.is_none_or(|offset| product(offset).unwrap() > RBig::ZERO));
        }
    }

    #[test]
    fn a_name_has_one_meaning() {
        let mut names = Vec::new();
        for row in ROWS {
            let mut own: Vec<&str> = row.symbols.iter().chain(row.words).copied().collect();
            own.sort_unstable();
            // A symbol may be a word as well, for the prefixes that words have.
            own.dedup();
            names.extend(own);
        }
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn what_is_told_is_read_again() {
        for row in ROWS {
            for prefix in row.prefixes.all().iter().map(Some).chain([None]) {
                let unit = row.unit(prefix);
                let again = find(&unit.name).unwrap();
                assert_eq!(unit.name, again.name);
                assert_eq!(unit.factor, again.factor, "{}", unit.name);
            }
        }
    }
}
