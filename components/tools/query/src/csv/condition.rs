//! Which rows are asked for.

use std::cmp::Ordering;

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::Value;

use super::decimal;
use super::order::is_empty;
use super::table::Table;
use crate::limits::Shown;

/// What holds for a row.
#[derive(Deserialize)]
pub(super) struct Condition {
    column: String,
    op: Op,
    value: Option<Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    #[serde(rename = "=", alias = "==", alias = "eq")]
    Equal,
    #[serde(rename = "!=", alias = "<>", alias = "ne")]
    Unequal,
    #[serde(rename = "<", alias = "lt")]
    Less,
    #[serde(rename = "<=", alias = "le")]
    LessOrEqual,
    #[serde(rename = ">", alias = "gt")]
    Greater,
    #[serde(rename = ">=", alias = "ge")]
    GreaterOrEqual,
    In,
    Contains,
    StartsWith,
    EndsWith,
    IsEmpty,
    NotEmpty,
}

/// What a cell is compared with.
enum Operand {
    Number(Decimal),
    Text(String),
}

/// A condition that is understood.
struct Test {
    column: usize,
    op: Op,
    operands: Vec<Operand>,
}

/// The rows for which all conditions hold, tried one after the other.
pub(super) fn select(table: &Table, conditions: &[Condition]) -> Result<Vec<usize>, String> {
    let tests: Vec<_> = conditions.iter().map(|condition| condition.test(table)).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    for row in 0..table.rows() {
        let mut holds = true;
        for test in &tests {
            holds = holds && test.holds(table, row)?;
        }
        if holds {
            rows.push(row);
        }
    }
    Ok(rows)
}

impl Condition {
    fn test(&self, table: &Table) -> Result<Test, String> {
        let column = table.column(&self.column)?;
        let wrong = |what: &str| Err(format!("the condition on {} is to have {what} as `value`", Shown(&self.column)));
        let operands = match (self.op, &self.value) {
            (Op::IsEmpty | Op::NotEmpty, _) => Vec::new(),
            (Op::In, Some(Value::Array(values))) => {
                let operands: Option<Vec<_>> = values.iter().map(|value| operand(self.op, value)).collect();
                let Some(operands) = operands else { return wrong("an array of texts and numbers") };
                operands
            }
            (Op::In, _) => return wrong("an array of texts and numbers"),
            (op, value) => {
                let Some(operand) = value.as_ref().and_then(|value| operand(op, value)) else {
                    return wrong("a text or a number of at most 28 digits");
                };
                vec![operand]
            }
        };
        Ok(Test { column, op: self.op, operands })
    }
}

/// What a value is compared as.
fn operand(op: Op, value: &Value) -> Option<Operand> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        _ => return None,
    };
    let orders = matches!(op, Op::Less | Op::LessOrEqual | Op::Greater | Op::GreaterOrEqual);
    let matches = matches!(op, Op::Contains | Op::StartsWith | Op::EndsWith);
    match (value, decimal::read(&text)) {
        (Value::Number(_), number) if !matches => number.ok().map(Operand::Number),
        // The order of numbers as text is never meant; but `007` may well be a text.
        (Value::String(_), Ok(number)) if orders => Some(Operand::Number(number)),
        _ => Some(Operand::Text(text)),
    }
}

impl Test {
    fn holds(&self, table: &Table, row: usize) -> Result<bool, String> {
        let cell = table.cell(row, self.column);
        let text =
            || self.operands.first().map_or("", |operand| if let Operand::Text(text) = operand { text } else { "" });
        let ordered = |wanted: fn(Ordering) -> bool| {
            let Some(operand) = self.operands.first() else { return Ok(false) };
            if is_empty(cell) {
                return Ok(false);
            }
            let ordering = match operand {
                Operand::Text(text) => cell.cmp(text),
                Operand::Number(number) => match decimal::read(cell) {
                    Ok(cell) => cell.cmp(number),
                    Err(why) => return Err(table.no_number(row, self.column, why)),
                },
            };
            Ok(wanted(ordering))
        };
        match self.op {
            Op::Equal | Op::In => Ok(self.equals_any(cell)),
            Op::Unequal => Ok(!self.equals_any(cell)),
            Op::Less => ordered(Ordering::is_lt),
            Op::LessOrEqual => ordered(Ordering::is_le),
            Op::Greater => ordered(Ordering::is_gt),
            Op::GreaterOrEqual => ordered(Ordering::is_ge),
            Op::Contains => Ok(cell.contains(text())),
            Op::StartsWith => Ok(cell.starts_with(text())),
            Op::EndsWith => Ok(cell.ends_with(text())),
            Op::IsEmpty => Ok(is_empty(cell)),
            Op::NotEmpty => Ok(!is_empty(cell)),
        }
    }

    fn equals_any(&self, cell: &str) -> bool {
        let number = decimal::read(cell).ok();
        self.operands.iter().any(|operand| match operand {
            Operand::Number(wanted) => number.as_ref() == Some(wanted),
            Operand::Text(text) => cell == text,
        })
    }
}
