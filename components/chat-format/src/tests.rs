//! What the formats make of what models write.

mod answers;
mod channels;
mod forced;
mod hostile;
mod json;
mod plain;
mod tags;
mod templates;
mod thoughts;
