//! Which sequence holds how many cells, and how many are left.
//!
//! llama.cpp keeps this to itself and rounds the number of cells up, so the
//! limit that callers see is held here. Sequences that share their beginning
//! hold the same cells, and a cell is free when its last holder lets go of it.

/// The cells of a context. They have names of their own, which are not
/// llama.cpp's.
pub(crate) struct Holdings {
    free: Vec<u32>,
    /// How many sequences hold each cell.
    holders: Vec<u16>,
    /// The cells of each sequence, by position.
    sequences: Vec<Vec<u32>>,
}

impl Holdings {
    pub(crate) fn new(cells: u32, sequences: u32) -> Self {
        Self {
            free: (0..cells).rev().collect(),
            holders: vec![0; cells as usize],
            sequences: vec![Vec::new(); sequences as usize],
        }
    }

    /// How many tokens each sequence holds.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = u32> {
        self.sequences.iter().map(|cells| u32::try_from(cells.len()).unwrap_or(u32::MAX))
    }

    /// How many tokens a sequence holds. None: there is no such sequence.
    pub(crate) fn length(&self, seq: u32) -> Option<u32> {
        let cells = self.sequences.get(seq as usize)?;
        Some(u32::try_from(cells.len()).unwrap_or(u32::MAX))
    }

    /// Cells that nobody holds.
    pub(crate) fn free(&self) -> u32 {
        u32::try_from(self.free.len()).unwrap_or(u32::MAX)
    }

    /// A sequence takes free cells until it holds `length`.
    pub(crate) fn grow(&mut self, seq: u32, length: u32) {
        let Some(cells) = self.sequences.get_mut(seq as usize) else { return };
        while cells.len() < length as usize {
            // A recurrent state has no cells: its tokens count for nothing.
            let cell = self.free.pop().unwrap_or(u32::MAX);
            if let Some(holders) = self.holders.get_mut(cell as usize) {
                *holders = 1;
            }
            cells.push(cell);
        }
    }

    /// An empty sequence comes to hold the first cells of another one.
    pub(crate) fn share(&mut self, from: u32, to: u32, length: u32) {
        let cells = self.sequences.get(from as usize).and_then(|cells| cells.get(..length as usize));
        let cells = cells.unwrap_or_default().to_vec();
        for &cell in &cells {
            if let Some(holders) = self.holders.get_mut(cell as usize) {
                *holders += 1;
            }
        }
        if let Some(into) = self.sequences.get_mut(to as usize) {
            *into = cells;
        }
    }

    /// A sequence lets go of all cells from position `from` on.
    pub(crate) fn cut(&mut self, seq: u32, from: u32) {
        self.cut_out(seq, from, u32::MAX);
    }

    /// A sequence lets go of `count` cells at position `at`.
    pub(crate) fn cut_out(&mut self, seq: u32, at: u32, count: u32) {
        let Some(cells) = self.sequences.get_mut(seq as usize) else { return };
        let at = (at as usize).min(cells.len());
        let end = at.saturating_add(count as usize).min(cells.len());
        for cell in cells.drain(at..end) {
            let Some(holders) = self.holders.get_mut(cell as usize) else { continue };
            *holders = holders.saturating_sub(1);
            if *holders == 0 {
                self.free.push(cell);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_cells_are_free_when_the_last_holder_lets_go() {
        let mut holdings = Holdings::new(10, 3);
        holdings.grow(0, 6);
        holdings.share(0, 1, 4);
        holdings.grow(1, 5);
        assert_eq!((holdings.free(), holdings.lengths().collect::<Vec<_>>()), (3, vec![6, 5, 0]));
        holdings.cut(0, 0);
        assert_eq!(holdings.free(), 5);
        holdings.cut_out(1, 1, 2);
        assert_eq!((holdings.free(), holdings.length(1)), (7, Some(3)));
        holdings.cut(1, 0);
        assert_eq!((holdings.free(), holdings.length(3)), (10, None));
    }
}
