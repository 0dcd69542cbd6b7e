//! The rows of an answer.

use super::aggregate::Value;
use super::groups::Groups;
use super::order;
use super::table::Table;
use crate::limits::{OUTPUT_BYTES, Shown, names};

/// What there is to give.
pub(super) struct Output<'a> {
    names: Vec<String>,
    /// Rows in their order.
    rows: Vec<usize>,
    /// Writes a cell of a row.
    cells: Cells<'a>,
}

enum Cells<'a> {
    Table(&'a Table, Vec<usize>),
    Groups(Groups),
}

impl<'a> Output<'a> {
    /// Rows of the table itself, with these columns of it.
    pub(super) fn of_rows(
        table: &'a Table,
        rows: Vec<usize>,
        columns: Option<&[String]>,
        sort: Option<(&str, bool)>,
    ) -> Result<Self, String> {
        let columns = match columns {
            Some(names) => table.columns(names)?,
            None => (0..table.names().len()).collect(),
        };
        let rows = match sort {
            Some((name, descending)) => {
                let column = table.column(name)?;
                let keys = order::keys(rows.iter().map(|row| table.cell(*row, column)));
                order::sorted(&keys, descending).into_iter().filter_map(|place| rows.get(place).copied()).collect()
            }
            None => rows,
        };
        let names = columns.iter().map(|column| table.name(*column).to_owned()).collect();
        Ok(Self { names, rows, cells: Cells::Table(table, columns) })
    }

    /// Groups.
    pub(super) fn of_groups(groups: Groups, sort: Option<(&str, bool)>) -> Result<Self, String> {
        let rows = match sort {
            Some((name, descending)) => {
                let places = groups.names.iter().zip(&groups.columns);
                let Some((_, column)) = places.into_iter().find(|(known, _)| *known == name) else {
                    let known = names(groups.names.iter().map(String::as_str));
                    return Err(format!("the answer has no column {} to sort by; it has {known}", Shown(name)));
                };
                let texts: Vec<_> = column
                    .iter()
                    .map(|value| match value {
                        Value::Text(text) => text.clone(),
                        Value::Count(count) => count.to_string(),
                        Value::Nothing => String::new(),
                    })
                    .collect();
                order::sorted(&order::keys(texts.iter().map(String::as_str)), descending)
            }
            None => (0..groups.rows).collect(),
        };
        Ok(Self { names: groups.names.clone(), rows, cells: Cells::Groups(groups) })
    }

    /// So many of the rows as JSON, and fewer if they are long.
    pub(super) fn write(&self, limit: usize) -> Result<String, String> {
        let columns = string(&self.names)?;
        if columns.len() > OUTPUT_BYTES {
            return Err("the names of the columns alone are more than 256 KiB: name a few `columns`".to_owned());
        }
        let (mut rows, mut given) = (String::new(), 0);
        let mut note = None;
        for row in &self.rows {
            if given == limit {
                note = Some(format!("the limit is {limit} rows"));
                break;
            }
            let before = rows.len();
            if given > 0 {
                rows.push(',');
            }
            // A row is looked at no further than there is room for it.
            let fits = self.cells.write(&mut rows, *row, OUTPUT_BYTES - columns.len())?;
            if !fits {
                rows.truncate(before);
                note = Some(format!("there is no room for more than {given} rows in 256 KiB: name fewer `columns`"));
                break;
            }
            given += 1;
        }
        let truncated = note.is_some();
        let note =
            note.map(|note| string(&note)).transpose()?.map_or_else(String::new, |note| format!(",\"note\":{note}"));
        let total = self.rows.len();
        Ok(format!(
            "{{\"columns\":{columns},\"rows\":[{rows}],\"total_rows\":{total},\"truncated\":{truncated}{note}}}"
        ))
    }
}

impl Cells<'_> {
    /// Writes a row. False: there is no room for it.
    fn write(&self, out: &mut String, row: usize, room: usize) -> Result<bool, String> {
        out.push('[');
        let columns = match self {
            Self::Table(_, columns) => columns.len(),
            Self::Groups(groups) => groups.columns.len(),
        };
        for n in 0..columns {
            if n > 0 {
                out.push(',');
            }
            match self {
                Self::Table(table, columns) => {
                    let cell = columns.get(n).map_or("", |column| table.cell(row, *column));
                    if cell.len() > room {
                        return Ok(false);
                    }
                    out.push_str(&string(cell)?);
                }
                Self::Groups(groups) => match groups.columns.get(n).and_then(|column| column.get(row)) {
                    Some(Value::Text(text)) if text.len() > room => return Ok(false),
                    Some(Value::Text(text)) => out.push_str(&string(text)?),
                    Some(Value::Count(count)) => out.push_str(&count.to_string()),
                    Some(Value::Nothing) | None => out.push_str("null"),
                },
            }
            if out.len() > room {
                return Ok(false);
            }
        }
        out.push(']');
        Ok(out.len() <= room)
    }
}

fn string<T: serde::Serialize + ?Sized>(value: &T) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}
