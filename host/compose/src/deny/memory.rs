//! The memory of the component: constants at its beginning, and behind them room for
//! what callers pass, which nobody reads.

/// Where constants begin. Nothing is at address 0.
const FIRST: usize = 16;
/// The largest alignment of the canonical ABI.
const ALIGN: usize = 8;

/// Constants, and where each is.
#[derive(Debug, Default)]
pub(super) struct Memory {
    bytes: Vec<u8>,
}

impl Memory {
    /// Sets bytes aside, zeroed; gives their address.
    pub(super) fn reserve(&mut self, size: usize) -> usize {
        let offset = self.bytes.len().next_multiple_of(ALIGN);
        self.bytes.resize(offset + size, 0);
        FIRST + offset
    }

    /// Adds a text; gives its address.
    pub(super) fn text(&mut self, text: &str) -> usize {
        let address = self.reserve(text.len());
        self.write(address, text.as_bytes());
        address
    }

    /// Writes into what was set aside.
    pub(super) fn write(&mut self, address: usize, bytes: &[u8]) {
        let at = address.saturating_sub(FIRST);
        for (target, byte) in self.bytes.iter_mut().skip(at).zip(bytes) {
            *target = *byte;
        }
    }

    /// Writes a number as the canonical ABI does, with so many bytes.
    pub(super) fn write_number(&mut self, address: usize, number: usize, bytes: usize) {
        let all = (number as u64).to_le_bytes();
        self.write(address, all.get(..bytes).unwrap_or(&all));
    }

    /// Where constants begin, and all of them.
    pub(super) fn constants(&self) -> (usize, &[u8]) {
        (FIRST, &self.bytes)
    }

    /// Where the room for callers begins.
    pub(super) fn end(&self) -> usize {
        (FIRST + self.bytes.len()).next_multiple_of(ALIGN)
    }
}
