//! What is computed of many cells.

use rust_decimal::Decimal;
use serde::Deserialize;

use super::decimal::{self, Sum};
use super::order::{self, Key};
use super::table::Table;
use crate::limits::Shown;

/// What is asked for.
#[derive(Deserialize)]
pub(super) struct Aggregate {
    op: Op,
    column: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

/// A cell of an answer.
#[derive(Clone)]
pub(super) enum Value {
    Text(String),
    Count(usize),
    Nothing,
}

impl Aggregate {
    /// How many rows there are.
    pub(super) const COUNT: Self = Self { op: Op::Count, column: None };

    /// What its column of the answer is called.
    pub(super) fn name(&self) -> String {
        let op = match self.op {
            Op::Count => "count",
            Op::Sum => "sum",
            Op::Avg => "avg",
            Op::Min => "min",
            Op::Max => "max",
        };
        self.column.as_ref().map_or_else(|| op.to_owned(), |column| format!("{op}({column})"))
    }

    /// Its value for each group; `group` has the group of each row.
    pub(super) fn compute(
        &self,
        table: &Table,
        rows: &[usize],
        group: &[usize],
        groups: usize,
    ) -> Result<Vec<Value>, String> {
        let Some(name) = &self.column else {
            return match self.op {
                Op::Count => Ok(counts(group.iter().copied(), groups).into_iter().map(Value::Count).collect()),
                _ => Err(format!("`aggregate` is to name the column of which it is the {}", self.name())),
            };
        };
        let column = table.column(name)?;
        let cells = rows.iter().map(|row| table.cell(*row, column));
        let filled = || rows.iter().zip(group).filter(|(row, _)| !order::is_empty(table.cell(**row, column)));
        match self.op {
            Op::Count => Ok(counts(filled().map(|(_, group)| *group), groups).into_iter().map(Value::Count).collect()),
            Op::Min | Op::Max => Ok(extremes(cells, group, groups, self.op == Op::Max)),
            Op::Sum | Op::Avg => {
                let mut sums = vec![Sum::default(); groups];
                let long = || format!("the {} of {} has too many digits", self.name(), Shown(name));
                for (row, group) in filled() {
                    let number =
                        decimal::read(table.cell(*row, column)).map_err(|why| table.no_number(*row, column, why))?;
                    if let Some(sum) = sums.get_mut(*group) {
                        *sum = sum.add(number).ok_or_else(long)?;
                    }
                }
                let totals = sums.into_iter().map(|sum| sum.total().ok_or_else(long));
                if self.op == Op::Sum {
                    return totals.map(|total| Ok(number(total?))).collect();
                }
                let counts = counts(filled().map(|(_, group)| *group), groups);
                totals.zip(counts).map(|(total, count)| Ok(average(total?, count))).collect()
            }
        }
    }
}

fn counts(of: impl Iterator<Item = usize>, groups: usize) -> Vec<usize> {
    let mut counts = vec![0; groups];
    for group in of {
        if let Some(count) = counts.get_mut(group) {
            *count += 1;
        }
    }
    counts
}

/// The first or the last cell of each group, as it is written.
fn extremes<'a>(
    cells: impl Iterator<Item = &'a str> + Clone,
    group: &[usize],
    groups: usize,
    largest: bool,
) -> Vec<Value> {
    let keys = order::keys(cells.clone());
    let mut best: Vec<Option<(&Key<'_>, &str)>> = vec![None; groups];
    for ((key, cell), group) in keys.iter().zip(cells).zip(group) {
        let Some(best) = best.get_mut(*group) else { continue };
        let better = |than: &Key<'_>| {
            if largest { order::compare(key, than).is_gt() } else { order::compare(key, than).is_lt() }
        };
        if !matches!(key, Key::Empty) && best.is_none_or(|(than, _)| better(than)) {
            *best = Some((key, cell));
        }
    }
    best.into_iter().map(|best| best.map_or(Value::Nothing, |(_, cell)| Value::Text(cell.to_owned()))).collect()
}

/// To 28 digits, which is all there is room for.
fn average(total: Decimal, count: usize) -> Value {
    total.checked_div(Decimal::from(count)).map_or(Value::Nothing, number)
}

fn number(number: Decimal) -> Value {
    Value::Text(number.normalize().to_string())
}
