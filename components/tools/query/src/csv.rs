//! `query_csv`: what is asked of a table in CSV.
//!
//! Cells are given as they are written. Sums and averages are computed with the digits that
//! are written, in decimal, and given as text, so that no reader rounds them.

use nala_sdk::tools::{Answer, Error, Tool};
use serde::Deserialize;

mod aggregate;
mod condition;
mod decimal;
mod groups;
mod order;
mod output;
mod quotes;
mod table;
#[cfg(test)]
mod tests;

use aggregate::Aggregate;
use condition::Condition;
use output::Output;
use table::Table;

pub(crate) const NAME: &str = "query_csv";

/// Names, conditions and aggregates that a query has at most, each.
const PARTS: usize = 64;
/// Rows of an answer, if nothing is said, and at most.
const ROWS: usize = 100;
const MOST_ROWS: usize = 10_000;

const WHAT: &str = "Filters, sorts, groups and sums a table in CSV whose first line names the columns. Takes up to 8 MiB \
    of CSV; gives up to 10000 rows (100 if no limit is named) and 256 KiB, and says when there were more. Numbers are \
    exact decimals such as -1.5 or 2e3; empty cells are left out of all sums, averages and comparisons.";

const INPUT: &str = r#"{
  "type": "object",
  "properties": {
    "csv": {"type": "string", "description": "The table, its first line the names of the columns"},
    "delimiter": {"type": "string", "enum": [",", ";", "\t", "|"], "description": "What is between cells, a comma if it is left out"},
    "columns": {"type": "array", "items": {"type": "string"}, "maxItems": 64, "description": "Columns to give, all if it is left out; not together with group_by or aggregate"},
    "where": {
      "type": "array",
      "maxItems": 64,
      "description": "Conditions, all of which hold for a row; a later one is only tried on rows for which those before it hold",
      "items": {
        "type": "object",
        "properties": {
          "column": {"type": "string"},
          "op": {"type": "string", "enum": ["=", "!=", "<", "<=", ">", ">=", "in", "contains", "starts_with", "ends_with", "is_empty", "not_empty"]},
          "value": {"type": ["string", "number", "boolean", "array"], "items": {"type": ["string", "number", "boolean"]}, "description": "A number compares as number, a text as text, but by < <= > >= a text that is a number compares as number; for in an array"}
        },
        "required": ["column", "op"],
        "additionalProperties": false
      }
    },
    "group_by": {"type": "array", "items": {"type": "string"}, "maxItems": 64, "description": "Gives one row for all rows with the same cells in these columns: those cells and the aggregates"},
    "aggregate": {
      "type": "array",
      "maxItems": 64,
      "description": "What to compute of each group, or of all rows; count if it is left out",
      "items": {
        "type": "object",
        "properties": {
          "op": {"type": "string", "enum": ["count", "sum", "avg", "min", "max"]},
          "column": {"type": "string", "description": "Left out only for count, which then counts rows; else cells that are not empty"}
        },
        "required": ["op"],
        "additionalProperties": false
      }
    },
    "sort_by": {"type": "string", "description": "A column, of the answer if there are aggregates: then count, sum(COLUMN) and so on are columns, too. As numbers if all cells are numbers; empty cells come last"},
    "descending": {"type": "boolean"},
    "limit": {"type": "integer", "minimum": 0, "maximum": 10000}
  },
  "required": ["csv"],
  "additionalProperties": false
}"#;

const OUTPUT: &str = r#"{
  "type": "object",
  "properties": {
    "columns": {"type": "array", "items": {"type": "string"}},
    "rows": {
      "type": "array",
      "description": "One array for each row, with a cell for each column; sums and the like are decimal numbers as text, null where there was nothing to compute",
      "items": {"type": "array", "items": {"type": ["string", "integer", "null"]}}
    },
    "total_rows": {"type": "integer", "description": "How many rows there are, with those that are not given here"},
    "truncated": {"type": "boolean", "description": "Whether there are more rows than are given here"},
    "note": {"type": "string", "description": "Why there are no more"}
  },
  "required": ["columns", "rows", "total_rows", "truncated"],
  "additionalProperties": false
}"#;

#[derive(Deserialize)]
struct Arguments {
    csv: String,
    delimiter: Option<String>,
    columns: Option<Vec<String>>,
    #[serde(default, rename = "where")]
    conditions: Vec<Condition>,
    #[serde(default)]
    group_by: Vec<String>,
    #[serde(default)]
    aggregate: Vec<Aggregate>,
    sort_by: Option<String>,
    #[serde(default)]
    descending: bool,
    limit: Option<usize>,
}

pub(crate) fn tool() -> Tool {
    let mut tool = Tool::new(NAME, WHAT, INPUT).titled("Query CSV").answering(OUTPUT).read_only();
    tool.annotations.open_world = Some(false);
    tool
}

pub(crate) fn call(arguments: &str) -> Result<Answer, Error> {
    let arguments: Arguments =
        serde_json::from_str(arguments).map_err(|error| Error::InvalidArguments(error.to_string()))?;
    Ok(answer(&arguments).map_or_else(Answer::error, Answer::structured))
}

fn answer(arguments: &Arguments) -> Result<String, String> {
    check(arguments)?;
    let table = Table::read(&arguments.csv, arguments.delimiter.as_deref().unwrap_or(","))?;
    let rows = condition::select(&table, &arguments.conditions)?;
    let sort = arguments.sort_by.as_deref().map(|column| (column, arguments.descending));
    let output = if arguments.group_by.is_empty() && arguments.aggregate.is_empty() {
        Output::of_rows(&table, rows, arguments.columns.as_deref(), sort)?
    } else {
        let groups = groups::compute(&table, &rows, &arguments.group_by, &arguments.aggregate)?;
        Output::of_groups(groups, sort)?
    };
    output.write(arguments.limit.unwrap_or(ROWS).min(MOST_ROWS))
}

fn check(arguments: &Arguments) -> Result<(), String> {
    let parts = [
        ("columns", arguments.columns.as_ref().map_or(0, Vec::len)),
        ("where", arguments.conditions.len()),
        ("group_by", arguments.group_by.len()),
        ("aggregate", arguments.aggregate.len()),
    ];
    if let Some((name, number)) = parts.iter().find(|(_, number)| *number > PARTS) {
        return Err(format!("`{name}` has {number} entries and may have {PARTS}"));
    }
    if arguments.columns.is_some() && !(arguments.group_by.is_empty() && arguments.aggregate.is_empty()) {
        return Err("leave out `columns` or the rest: with `group_by` or `aggregate` the answer has the columns \
                    of `group_by` and the aggregates"
            .to_owned());
    }
    Ok(())
}
