//! The calls of a turn, all at a time.

use nala_sdk::Error;
use nala_sdk::tools::{self, Answer, Body, Content, Contents, Event, Running};

use crate::step::Step;

/// A call with its number in the run.
pub(crate) struct Call {
    pub(crate) id: u32,
    pub(crate) tool: String,
    pub(crate) arguments: String,
}

/// What a call came to.
struct Said {
    text: String,
    is_error: bool,
}

/// Has the tools do what they are asked, and gives what the model reads of each, in the
/// order of the calls. What goes wrong is told to the model, which may learn from it.
pub(crate) fn make(
    calls: &[Call],
    most: usize,
    tell: &mut dyn FnMut(&Step) -> Result<(), Error>,
) -> Result<Vec<String>, Error> {
    let running: Vec<Result<Running, tools::Error>> =
        calls.iter().map(|call| tools::start(&call.tool, &call.arguments)).collect();
    let mut texts = Vec::new();
    for (call, running) in calls.iter().zip(running) {
        let said = match running {
            Ok(running) => listen(call.id, &running, tell)?,
            Err(error) => failed(&error),
        };
        let text = cut(said.text, most);
        tell(&Step::Result { id: call.id, text: text.clone(), is_error: said.is_error })?;
        texts.push(text);
    }
    Ok(texts)
}

/// Waits for the answer of a call. The others go on meanwhile.
fn listen(id: u32, running: &Running, tell: &mut dyn FnMut(&Step) -> Result<(), Error>) -> Result<Said, Error> {
    loop {
        match running.next() {
            Ok(Some(Event::Progress(progress))) => {
                let tools::Progress { done, total, message } = progress;
                tell(&Step::Progress { id, done, total, message })?;
            }
            Ok(Some(Event::Answer(answer))) => return Ok(read(&answer)),
            // What a tool logs is not for the model, and nobody here can be asked.
            Ok(Some(Event::Log(_) | Event::Ask(_))) => {}
            Ok(Some(Event::Contents(_) | Event::Filled(_) | Event::Completion(_)) | None) => {
                return Ok(Said { text: "the tool gave no answer".to_owned(), is_error: true });
            }
            Err(error) => return Ok(failed(&error)),
        }
    }
}

fn failed(error: &tools::Error) -> Said {
    let text: &str = match error {
        tools::Error::UnknownTool(why)
        | tools::Error::InvalidArguments(why)
        | tools::Error::Failed(why)
        | tools::Error::Limit(why)
        | tools::Error::Busy(why) => why,
        tools::Error::Needs(_) => "this tool asks whoever calls it, and nobody can be asked here",
    };
    Said { text: format!("Error: {text}"), is_error: true }
}

/// What a model can read of an answer.
fn read(answer: &Answer) -> Said {
    let hidden = |kind: &str, bytes: &[u8]| format!("[{kind}, {} bytes, which cannot be shown]", bytes.len());
    let part = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        Content::Image(media) | Content::Audio(media) => hidden(&media.mime_type, &media.data),
        Content::Link(link) => link.uri.clone(),
        Content::Resource(Contents { uri, mime_type, body }) => match body {
            Body::Text(text) => text.clone(),
            Body::Bytes(bytes) => hidden(mime_type.as_deref().unwrap_or(uri), bytes),
        },
    };
    let parts: Vec<String> = answer.content.iter().map(part).collect();
    let text = parts.join("\n");
    let text = if answer.is_error { format!("Error: {text}") } else { text };
    Said { text, is_error: answer.is_error }
}

/// The beginning of a text that is too long, and how much there was.
fn cut(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let end = text.floor_char_boundary(most);
    format!("{}\n[cut: {} bytes in all]", text.get(..end).unwrap_or_default(), text.len())
}

#[cfg(test)]
mod tests {
    use nala_sdk::tools::Media;

    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_characters_and_says_so() {
        assert_eq!(cut("abc".to_owned(), 3), "abc");
        assert_eq!(cut("aßc".to_owned(), 2), "a\n[cut: 4 bytes in all]");
    }

    #[test]
    fn the_model_reads_texts_and_is_told_of_the_rest() {
        let mut answer = Answer::text("a");
        answer.content.push(Content::Image(Media { data: vec![0; 3], mime_type: "image/png".to_owned() }));
        assert_eq!(read(&answer).text, "a\n[image/png, 3 bytes, which cannot be shown]");
        let said = read(&Answer::error("no file"));
        assert!(said.is_error && said.text == "Error: no file");
    }
}
