//! A table: CSV that was read.

use std::collections::HashMap;

use csv::{ErrorKind, ReaderBuilder, StringRecord};

use super::quotes;
use crate::limits::{Shown, check_input, names};

/// Names and cells. All cells are one text, for there can be millions of them.
pub(super) struct Table {
    names: Vec<String>,
    /// Where each name is, and where it is again if it is there twice.
    places: HashMap<String, (usize, Option<usize>)>,
    cells: String,
    ends: Vec<u32>,
}

impl Table {
    pub(super) fn read(text: &str, delimiter: &str) -> Result<Self, String> {
        check_input("csv", text)?;
        let [delimiter] = *delimiter.as_bytes() else {
            return Err("the delimiter is to be one character of `,`, `;`, `|` and the tabulator".to_owned());
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if let Some(line) = quotes::unclosed(text, delimiter) {
            return Err(format!("the quote that a cell begins with in line {line} is never closed"));
        }
        let mut reader = ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| explain(&error))?;
        let names: Vec<_> = header.iter().map(|name| name.trim().to_owned()).collect();
        if names.is_empty() {
            return Err("there is no table: the first line of `csv` is to name the columns".to_owned());
        }
        let mut places = HashMap::with_capacity(names.len());
        for (place, name) in names.iter().enumerate() {
            let (first, again) = places.entry(name.clone()).or_insert((place, None));
            if *first != place && again.is_none() {
                *again = Some(place);
            }
        }

        let (mut cells, mut ends) = (String::new(), Vec::new());
        let mut record = StringRecord::new();
        while reader.read_record(&mut record).map_err(|error| explain(&error))? {
            for cell in &record {
                cells.push_str(cell);
                ends.push(u32::try_from(cells.len()).map_err(|error| error.to_string())?);
            }
        }
        Ok(Self { names, places, cells, ends })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn rows(&self) -> usize {
        self.ends.len() / self.names.len().max(1)
    }

    /// Which column has that name.
    pub(super) fn column(&self, name: &str) -> Result<usize, String> {
        match self.places.get(name) {
            Some((place, None)) => Ok(*place),
            Some((first, Some(again))) => {
                Err(format!("columns {} and {} are both named {}: rename one", first + 1, again + 1, Shown(name)))
            }
            None => {
                let known = names(self.names.iter().map(String::as_str));
                let one = if self.names.len() == 1 { "; if they are several, name the `delimiter`" } else { "" };
                Err(format!("there is no column {}; the columns are {known}{one}", Shown(name)))
            }
        }
    }

    pub(super) fn columns(&self, names: &[String]) -> Result<Vec<usize>, String> {
        names.iter().map(|name| self.column(name)).collect()
    }

    /// The name of a column.
    pub(super) fn name(&self, column: usize) -> &str {
        self.names.get(column).map_or("", String::as_str)
    }

    /// What a cell holds; rows count from 0.
    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        let cell = row * self.names.len() + column;
        let end = |cell: usize| self.ends.get(cell).map_or(0, |end| *end as usize);
        let begin = cell.checked_sub(1).map_or(0, end);
        self.cells.get(begin..end(cell)).unwrap_or_default()
    }

    /// What is said of a cell that should be a number.
    pub(super) fn no_number(&self, row: usize, column: usize, why: &str) -> String {
        format!(
            "row {} of column {} holds {}, {why}; rows count from 1 after the header. Leave such rows out by a \
             condition before",
            row + 1,
            Shown(self.name(column)),
            Shown(self.cell(row, column)),
        )
    }
}

/// What is wrong with the text.
fn explain(error: &csv::Error) -> String {
    match error.kind() {
        ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let place =
                pos.as_ref().map_or_else(String::new, |pos| format!("row {} (line {}) ", pos.record(), pos.line()));
            format!(
                "{place}has {len} cells, and the header names {expected_len} columns; a cell that holds the \
                 delimiter is to be in quotes"
            )
        }
        _ => format!("the table cannot be read: {error}"),
    }
}
