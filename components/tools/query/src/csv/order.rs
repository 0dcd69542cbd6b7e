//! Which cell comes first.

use std::cmp::Ordering;

use rust_decimal::Decimal;

use super::decimal;

/// A cell to be compared with others of its column.
pub(super) enum Key<'a> {
    Number(Decimal),
    Text(&'a str),
    Empty,
}

/// Cells of a column: as numbers if all that are not empty are numbers, else as text.
pub(super) fn keys<'a>(cells: impl Iterator<Item = &'a str> + Clone) -> Vec<Key<'a>> {
    let numbers: Option<Vec<_>> = cells
        .clone()
        .map(|cell| if is_empty(cell) { Some(Key::Empty) } else { decimal::read(cell).ok().map(Key::Number) })
        .collect();
    let text = |cell| if is_empty(cell) { Key::Empty } else { Key::Text(cell) };
    numbers.unwrap_or_else(|| cells.map(text).collect())
}

/// Whether a cell holds nothing but space.
pub(super) fn is_empty(cell: &str) -> bool {
    cell.trim().is_empty()
}

/// The order of the keys as indices; those that are equal stay as they are, and what is
/// empty comes last either way.
pub(super) fn sorted(keys: &[Key<'_>], descending: bool) -> Vec<usize> {
    let mut order: Vec<_> = keys.iter().enumerate().collect();
    order.sort_by(|(_, left), (_, right)| match (left, right) {
        (Key::Empty, Key::Empty) => Ordering::Equal,
        (Key::Empty, _) => Ordering::Greater,
        (_, Key::Empty) => Ordering::Less,
        (left, right) if descending => compare(right, left),
        (left, right) => compare(left, right),
    });
    order.into_iter().map(|(place, _)| place).collect()
}

/// Compares two of one column.
pub(super) fn compare(left: &Key<'_>, right: &Key<'_>) -> Ordering {
    match (left, right) {
        (Key::Number(left), Key::Number(right)) => left.cmp(right),
        (Key::Text(left), Key::Text(right)) => left.cmp(right),
        _ => Ordering::Equal,
    }
}
