//! Bodies that are written while the client reads.

use wasip2::io::streams::OutputStream;

use crate::Error;

/// The most that `blocking-write-and-flush` takes at once, by the definition of
/// `wasi:io/streams`.
const WRITE: usize = 4096;

/// Writes a streaming body.
#[derive(Debug)]
pub struct BodyWriter(Sink);

#[derive(Debug)]
enum Sink {
    Stream(OutputStream),
    Memory(Vec<u8>),
}

impl BodyWriter {
    pub(super) fn new(stream: OutputStream) -> Self {
        Self(Sink::Stream(stream))
    }

    pub(super) fn collect(write: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<Vec<u8>, Error> {
        let mut this = Self(Sink::Memory(Vec::new()));
        write(&mut this)?;
        match this.0 {
            Sink::Memory(bytes) => Ok(bytes),
            Sink::Stream(_) => Ok(Vec::new()),
        }
    }

    /// Sends bytes to the client at once: one call of the host up to 4,096
    /// bytes, and none for nothing. Waits while the client reads slower than the model
    /// writes.
    ///
    /// # Errors
    /// [`Error::Gone`] when the client has hung up. Return it (`?`), and the work
    /// ends: dropping a [`Generation`](crate::llm::Generation) cancels it.
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        match &mut self.0 {
            Sink::Memory(memory) => memory.extend_from_slice(bytes.as_ref()),
            Sink::Stream(stream) => {
                for part in bytes.as_ref().chunks(WRITE) {
                    stream.blocking_write_and_flush(part).map_err(|_| Error::Gone)?;
                }
            }
        }
        Ok(())
    }
}

/// Writes server-sent events, as defined by the HTML standard (section 9.2).
#[derive(Debug)]
pub struct Sse<'a> {
    out: &'a mut BodyWriter,
    line: Vec<u8>,
}

impl<'a> Sse<'a> {
    /// Events on a body.
    pub fn new(out: &'a mut BodyWriter) -> Self {
        Self { out, line: Vec::new() }
    }

    /// Sends an event without a name; every line of `data` gets its own field.
    ///
    /// # Errors
    /// As [`BodyWriter::write`].
    pub fn data(&mut self, data: &str) -> Result<(), Error> {
        self.line.clear();
        self.fields(data);
        self.out.write(&self.line)
    }

    /// Sends an event with a name, which must be a single line.
    ///
    /// # Errors
    /// As [`BodyWriter::write`].
    pub fn event(&mut self, name: &str, data: &str) -> Result<(), Error> {
        self.line.clear();
        self.line.extend_from_slice(b"event: ");
        self.line.extend(name.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')));
        self.line.push(b'\n');
        self.fields(data);
        self.out.write(&self.line)
    }

    fn fields(&mut self, data: &str) {
        // CR ends a line too.
        for line in data.split('\n').flat_map(|line| line.trim_end_matches('\r').split('\r')) {
            self.line.extend_from_slice(b"data: ");
            self.line.extend_from_slice(line.as_bytes());
            self.line.push(b'\n');
        }
        self.line.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_cannot_be_forged_by_line_breaks() {
        let bytes = BodyWriter::collect(|out| {
            let mut events = Sse::new(out);
            events.event("na\nme", "a\r\nb\rc\n\nd")
        });
        let text = String::from_utf8(bytes.unwrap()).unwrap();
        assert_eq!(text, "event: name\ndata: a\ndata: b\ndata: c\ndata: \ndata: d\n\n");
    }
}
