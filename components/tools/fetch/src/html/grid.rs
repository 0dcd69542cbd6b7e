//! Tables. Those whose first cell is a heading become tables of Markdown; many of the
//! others only place what is on a page, and become lines.

use super::Style;
use super::layout::Layout;

/// How many tables in each other have rows.
const DEEPEST: usize = 8;

/// The tables that are open.
#[derive(Debug, Default)]
pub(super) struct Grids {
    tables: Vec<Table>,
    /// Those deeper than these.
    deeper: usize,
}

#[derive(Debug, Default)]
struct Table {
    manner: Manner,
    /// How many cells the row that is open has, and how long the text was before it.
    row: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Manner {
    #[default]
    Undecided,
    Lines,
    /// With the line below the first row to come.
    Heading,
    Body,
}

impl Grids {
    pub(super) fn begin(&mut self, layout: &mut Layout) {
        if self.tables.is_empty() {
            layout.paragraph();
        } else {
            layout.lines();
        }
        if self.tables.len() < DEEPEST { self.tables.push(Table::default()) } else { self.deeper += 1 }
    }

    pub(super) fn end(&mut self, layout: &mut Layout) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else {
            self.end_row(layout);
            self.tables.pop();
        }
        layout.paragraph();
    }

    /// Ends what the page left open.
    pub(super) fn end_all(&mut self, layout: &mut Layout) {
        self.deeper = 0;
        while !self.tables.is_empty() {
            self.end(layout);
        }
    }

    pub(super) fn row(&mut self, layout: &mut Layout) {
        self.end_row(layout);
        if let (Some(table), 0) = (self.tables.last_mut(), self.deeper) {
            table.row = Some((0, layout.len()));
        }
    }

    pub(super) fn cell(&mut self, is_heading: bool, style: Style, layout: &mut Layout) {
        let is_outermost = self.tables.len() == 1;
        let (Some(table), 0) = (self.tables.last_mut(), self.deeper) else { return layout.lines() };
        let (cells, start) = table.row.get_or_insert((0, layout.len()));
        if table.manner == Manner::Undecided {
            let is_grid = is_heading && is_outermost && style == Style::Markdown;
            table.manner = if is_grid { Manner::Heading } else { Manner::Lines };
        }
        match table.manner {
            Manner::Heading | Manner::Body if *cells == 0 => {
                layout.set_inline(false);
                layout.lines();
                layout.flush();
                layout.put("| ");
                layout.set_inline(true);
            }
            Manner::Heading | Manner::Body => layout.put(" | "),
            // Cells without text are often there to keep others apart.
            Manner::Lines | Manner::Undecided if layout.len() > *start => {
                layout.put("");
                layout.begin_with(" | ");
            }
            Manner::Lines | Manner::Undecided => layout.begin_with(""),
        }
        *cells += 1;
    }

    pub(super) fn end_row(&mut self, layout: &mut Layout) {
        let Some(table) = self.tables.last_mut().filter(|_| self.deeper == 0) else { return };
        let Some((cells, start)) = table.row.take() else { return };
        if cells > 0 && matches!(table.manner, Manner::Heading | Manner::Body) {
            layout.put(" |");
            layout.set_inline(false);
            if table.manner == Manner::Heading {
                table.manner = Manner::Body;
                layout.lines();
                layout.flush();
                layout.put(&"| --- ".repeat(cells));
                layout.put("|");
            }
        } else if layout.len() > start {
            layout.put("");
        } else {
            layout.forget_beginning();
        }
        layout.lines();
    }
}
