//! Rows that belong together, and what is computed of them.

use std::collections::HashMap;

use super::aggregate::{Aggregate, Value};
use super::table::Table;

/// How many groups there may be.
const GROUPS: usize = 100_000;

/// A table of groups, a row for each.
pub(super) struct Groups {
    pub(super) names: Vec<String>,
    pub(super) columns: Vec<Vec<Value>>,
    pub(super) rows: usize,
}

/// Groups the rows by the columns, in the order in which they are first seen.
pub(super) fn compute(
    table: &Table,
    rows: &[usize],
    by: &[String],
    aggregates: &[Aggregate],
) -> Result<Groups, String> {
    let columns = table.columns(by)?;
    let mut known: HashMap<Vec<&str>, usize> = HashMap::new();
    let mut firsts = Vec::new();
    let mut group = Vec::with_capacity(rows.len());
    for row in rows {
        let key: Vec<_> = columns.iter().map(|column| table.cell(*row, *column)).collect();
        let next = known.len();
        let number = *known.entry(key).or_insert(next);
        if number == next {
            firsts.push(*row);
        }
        if next == GROUPS && number == next {
            return Err(format!("there are more than {GROUPS} groups: leave rows out, or group by less"));
        }
        group.push(number);
    }
    // All rows are one group, even if there are none.
    let number = if by.is_empty() { 1 } else { firsts.len() };

    let count = [Aggregate::COUNT];
    let aggregates = if aggregates.is_empty() { &count } else { aggregates };
    let mut names = by.to_vec();
    let mut all: Vec<Vec<_>> = columns
        .iter()
        .map(|column| firsts.iter().map(|row| Value::Text(table.cell(*row, *column).to_owned())).collect())
        .collect();
    for aggregate in aggregates {
        names.push(aggregate.name());
        all.push(aggregate.compute(table, rows, &group, number)?);
    }
    Ok(Groups { names, columns: all, rows: number })
}
