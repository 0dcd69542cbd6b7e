//! Calls written in JSON.

use crate::json::{Json, Took, blank, escape, quote};
use crate::notation::Keys;
use crate::stream::{Failure, HELD, Stream};

/// What a JSON object has to look like to be a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It is one: a marker says so.
    Marked,
    /// It is one if it has a name and arguments; otherwise it is text.
    Bare,
}

impl Doubt {
    fn settle(self, failure: Failure, stream: &Stream) -> Failure {
        match (self, failure) {
            // Once a call has begun there is no doubt.
            (Self::Bare, Failure::Broken(_) | Failure::TooLong | Failure::End) if !stream.in_call() => {
                Failure::NotACall
            }
            (_, failure) => failure,
        }
    }
}

/// Reads calls in JSON, objects or arrays of such, up to what is none.
pub(crate) async fn calls(stream: &Stream, keys: Keys, doubt: Doubt) -> Result<(), Failure> {
    stream.first_column();
    stream.blanks().await?;
    if !matches!(stream.must_peek().await?, '{' | '[') {
        return Err(Failure::NotACall);
    }
    let mut count = 0usize;
    loop {
        match stream.peek().await {
            Some('{') => {
                match keys {
                    Keys::Fixed => object(stream, doubt).await?,
                    Keys::Name => named_objects(stream).await?,
                }
                count += 1;
            }
            // Brackets beyond those that belong here are taken too: small models
            // write them.
            Some('[' | ']' | '}' | ',' | ';') => {
                stream.take().await?;
            }
            Some(c) if c.is_whitespace() => stream.blanks().await?,
            _ if count > 0 => return Ok(()),
            None => return Err(Failure::End),
            _ if doubt == Doubt::Bare => return Err(Failure::NotACall),
            _ => return Err(stream.expected("a call as a JSON object")),
        }
    }
}

/// Reads one call: an object with its name and arguments.
pub(crate) async fn object(stream: &Stream, doubt: Doubt) -> Result<(), Failure> {
    fields(stream, doubt).await.map_err(|failure| doubt.settle(failure, stream))
}

async fn fields(stream: &Stream, doubt: Doubt) -> Result<(), Failure> {
    expect(stream, '{', "`{`").await?;
    // OpenAI's own form has the call under `function`.
    let mut depth = 1usize;
    let mut call = Call::default();
    let mut first = true;
    loop {
        spaces(stream).await?;
        let next = stream.must_peek().await?;
        if next == '}' {
            stream.take().await?;
            depth -= 1;
            if depth == 0 {
                return call.end(stream, doubt);
            }
            first = false;
            continue;
        }
        if !first {
            expect(stream, ',', "`,` or `}` after a value").await?;
            spaces(stream).await?;
        }
        first = false;
        if stream.must_peek().await? != '"' {
            return Err(stream.expected("a key in double quotes"));
        }
        let key = string(stream).await?;
        spaces(stream).await?;
        expect(stream, ':', "`:` after a key").await?;
        spaces(stream).await?;
        let next = stream.must_peek().await?;
        match key.as_str() {
            "function" if next == '{' && depth == 1 => {
                stream.take().await?;
                depth += 1;
                first = true;
            }
            "name" | "tool_name" | "function" if call.name.is_none() => {
                if next != '"' {
                    return Err(stream.expected("the function's name in double quotes"));
                }
                call.name = Some(string(stream).await?).filter(|name| !name.is_empty());
                call.give_early_arguments(stream);
            }
            "arguments" | "parameters" if call.arguments == Arguments::None => call.read(stream).await?,
            "id" | "tool_call_id" | "call_id" if next == '"' => {
                let id = string(stream).await?;
                call.id = Some(id).filter(|id| !id.is_empty());
            }
            "type" => drop(value(stream).await?),
            // A call has nothing else; plain JSON has.
            _ if doubt == Doubt::Bare && !stream.in_call() => return Err(Failure::NotACall),
            _ => drop(value(stream).await?),
        }
    }
}

#[derive(Default)]
struct Call {
    name: Option<String>,
    id: Option<String>,
    arguments: Arguments,
}

#[derive(Default, PartialEq, Eq)]
enum Arguments {
    #[default]
    None,
    /// They came before the name.
    Early(String),
    /// The call has begun, and they are given out.
    Given,
}

impl Call {
    /// Reads the arguments: to the client, if the name is known.
    async fn read(&mut self, stream: &Stream) -> Result<(), Failure> {
        match &self.name {
            Some(name) => {
                let name = name.clone();
                match stream.must_peek().await? {
                    '{' => {
                        stream.start_call(&name, self.id.take());
                        arguments(stream).await?;
                    }
                    '"' | 'n' => {
                        let text = unwrap(stream, &value(stream).await?)?;
                        stream.start_call(&name, self.id.take());
                        stream.arguments(&text);
                    }
                    _ => return Err(stream.expected("an object of arguments")),
                }
                self.arguments = Arguments::Given;
                Ok(())
            }
            None => {
                self.arguments = Arguments::Early(unwrap(stream, &value(stream).await?)?);
                Ok(())
            }
        }
    }

    /// Gives out arguments that came before the name.
    fn give_early_arguments(&mut self, stream: &Stream) {
        if let (Some(name), Arguments::Early(arguments)) = (&self.name, &self.arguments) {
            stream.start_call(name, self.id.take());
            stream.arguments(arguments);
            self.arguments = Arguments::Given;
        }
    }

    /// The object has ended.
    fn end(self, stream: &Stream, doubt: Doubt) -> Result<(), Failure> {
        match (self.name, self.arguments) {
            (Some(_), Arguments::Given) => stream.end_call(),
            (_, _) if doubt == Doubt::Bare => return Err(Failure::NotACall),
            (Some(name), _) => {
                stream.start_call(&name, self.id);
                stream.arguments("{}");
                stream.end_call();
            }
            (None, _) => return Err(stream.wrong("the call names no function: it has no \"name\"")),
        }
        Ok(())
    }
}

/// Reads an object whose keys are names and whose values are arguments.
async fn named_objects(stream: &Stream) -> Result<(), Failure> {
    expect(stream, '{', "`{`").await?;
    let mut first = true;
    loop {
        spaces(stream).await?;
        match stream.must_peek().await? {
            '}' => {
                stream.take().await?;
                return Ok(());
            }
            ',' if !first => {
                stream.take().await?;
                spaces(stream).await?;
            }
            _ if first => {}
            _ => return Err(stream.expected("`,` or `}` after a value")),
        }
        first = false;
        if stream.must_peek().await? != '"' {
            return Err(stream.expected("the function's name in double quotes"));
        }
        let name = string(stream).await?;
        spaces(stream).await?;
        expect(stream, ':', "`:` after the function's name").await?;
        spaces(stream).await?;
        whole(stream, &name, None).await?;
    }
}

/// Reads the arguments of a call whose name is known, and ends it.
pub(crate) async fn whole(stream: &Stream, name: &str, id: Option<String>) -> Result<(), Failure> {
    stream.must_peek().await?;
    stream.start_call(name, id);
    arguments(stream).await?;
    stream.end_call();
    Ok(())
}

/// Reads the arguments of the open call: an object, a string that holds one, or
/// null.
pub(crate) async fn arguments(stream: &Stream) -> Result<(), Failure> {
    match stream.must_peek().await? {
        '{' => {
            let mut json = Json::new();
            while let Took::Part | Took::Nothing = pass(stream, &mut json).await? {}
            Ok(())
        }
        '"' | 'n' => {
            let written = value(stream).await?;
            stream.arguments(&unwrap(stream, &written)?);
            Ok(())
        }
        _ => Err(stream.expected("an object of arguments")),
    }
}

/// Gives one character of an object to the client.
async fn pass(stream: &Stream, json: &mut Json) -> Result<Took, Failure> {
    let c = stream.must_peek().await?;
    let mut piece = String::new();
    let took = if c < ' ' && json.in_string() {
        // Models break lines in strings; no JSON parser would take it.
        escape(c, &mut piece);
        Took::Part
    } else {
        piece.push(c);
        json.feed(c).map_err(|what| stream.expected(what))?
    };
    stream.take().await?;
    stream.arguments(&piece);
    Ok(took)
}

/// The object that some written arguments mean.
fn unwrap(stream: &Stream, written: &str) -> Result<String, Failure> {
    let written = written.trim();
    let text = match written.starts_with('"') {
        true => serde_json::from_str::<String>(written).map_err(|error| stream.wrong(&error.to_string()))?,
        false => written.to_owned(),
    };
    let text = text.trim();
    match text {
        "" | "null" => Ok("{}".to_owned()),
        text if text.starts_with('{') => match serde_json::from_str::<serde_json::Value>(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => Err(stream.wrong(&format!("the arguments are no JSON: {error}"))),
        },
        _ => Err(stream.wrong("the arguments are no object")),
    }
}

/// Reads a JSON value whose text is wanted. It stands before a comma or bracket.
pub(crate) async fn value(stream: &Stream) -> Result<String, Failure> {
    let mut json = Json::new();
    let mut text = String::new();
    loop {
        let c = stream.must_peek().await?;
        if c < ' ' && json.in_string() {
            escape(c, &mut text);
            stream.take().await?;
            continue;
        }
        let before = text.len();
        match json.feed(c).map_err(|what| stream.expected(what))? {
            Took::Nothing => return Ok(text),
            took => {
                text.push(c);
                if text.len() > HELD {
                    return Err(Failure::TooLong);
                }
                if before == 0 && blank(c) {
                    text.clear();
                }
                stream.take().await?;
                if took == Took::Last {
                    return Ok(text);
                }
            }
        }
    }
}

/// Reads a JSON string, with its quotes.
async fn string(stream: &Stream) -> Result<String, Failure> {
    let text = value(stream).await?;
    serde_json::from_str(&text).map_err(|_| stream.wrong("expected text in double quotes"))
}

/// White space as JSON has it.
async fn spaces(stream: &Stream) -> Result<(), Failure> {
    while stream.peek().await.is_some_and(blank) {
        stream.take().await?;
    }
    Ok(())
}

async fn expect(stream: &Stream, c: char, what: &str) -> Result<(), Failure> {
    if stream.must_peek().await? != c {
        return Err(stream.expected(what));
    }
    stream.take().await?;
    Ok(())
}

/// The text of a key with its colon, after what is written already.
pub(crate) fn key(name: &str, first: First) -> String {
    let separator = if first == First::Yes { "" } else { "," };
    format!("{separator}{}:", quote(name))
}

/// Whether something is the first of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    Yes,
    No,
}
