//! Tools for files: they list, read, search and write what is in the folders that their
//! component is granted.
//!
//! What may be reached is the host's matter, which resolves every path beneath a granted
//! folder. What is checked here is checked to tell a model what it did wrong.

mod folders;
mod list;
mod pattern;
mod read;
mod search;
mod trouble;
mod write;

use nala_sdk::tools::{Answer, Error, Tool};
use serde::{Deserialize, Serialize};

use folders::Folders;

const PATH: &str = "A path in the folder that is granted, or from / on as list_files shows it";

fn tools() -> Vec<Tool> {
    let mut writing = Tool::new(
        "write_file",
        "Writes a text to a file, in place of what is in it or behind that. Folders that are missing are made.",
        with_path(write::INPUT),
    )
    .titled("Write a file")
    .answering(write::OUTPUT);
    writing.annotations.read_only = Some(false);
    writing.annotations.destructive = Some(true);
    writing.annotations.idempotent = Some(false);
    let mut all = vec![
        Tool::new("list_files", "Lists what is in a folder.", with_path(list::INPUT))
            .titled("List files")
            .answering(list::OUTPUT)
            .read_only(),
        Tool::new("read_file", "Reads a text file, a long one in parts.", with_path(read::INPUT))
            .titled("Read a file")
            .answering(read::OUTPUT)
            .read_only(),
        Tool::new(
            "search_files",
            "Finds files and folders by their names, and files by a text in them, in a folder and all that are in it.",
            with_path(search::INPUT),
        )
        .titled("Search files")
        .answering(search::OUTPUT)
        .read_only(),
        writing,
    ];
    for tool in &mut all {
        tool.annotations.open_world = Some(false);
    }
    all
}

/// A schema with what is said of paths everywhere.
fn with_path(schema: &str) -> String {
    schema.replace("PATH", PATH)
}

fn call(name: &str, arguments: &str) -> Result<Answer, Error> {
    called(&Folders::granted(), name, arguments)
}

fn called(folders: &Folders, name: &str, arguments: &str) -> Result<Answer, Error> {
    match name {
        "list_files" => run(arguments, |asked| list::list(folders, asked)),
        "read_file" => run(arguments, |asked| read::read(folders, asked)),
        "search_files" => run(arguments, |asked| search::search(folders, asked)),
        "write_file" => run(arguments, |asked| write::write(folders, asked)),
        _ => Err(Error::UnknownTool(name.to_owned())),
    }
}

fn run<'a, A: Deserialize<'a>, T: Serialize>(
    arguments: &'a str,
    work: impl FnOnce(A) -> Result<T, String>,
) -> Result<Answer, Error> {
    let asked = serde_json::from_str(arguments).map_err(|error| Error::InvalidArguments(error.to_string()))?;
    let done = work(asked).and_then(|done| serde_json::to_string(&done).map_err(|error| error.to_string()));
    Ok(done.map_or_else(Answer::error, Answer::structured))
}

nala_sdk::provider!(tools, call);

#[cfg(test)]
mod tests;
