//! `nala-host key`: keys for tenants.

use std::io::Write;

use nala_tenant::{Key, Secret, StoredKey};
use serde_json::json;

use crate::args::{KeyArgs, KeyVerb, NewKeyArgs, OutputFormat};

/// Runs the verb.
///
/// # Errors
/// The system gives no randomness, or standard output cannot be written.
pub(crate) fn main(args: &KeyArgs) -> anyhow::Result<()> {
    match &args.verb {
        KeyVerb::New(args) => new(args),
    }
}

fn new(args: &NewKeyArgs) -> anyhow::Result<()> {
    let (secret, stored) = Key::generate()?;
    let text = match args.output.format {
        OutputFormat::Text => text(args, &secret, &stored)?,
        OutputFormat::Json => {
            let report = json!({
                "key": secret.expose(),
                "id": stored.id().to_string(),
                "stored": stored.to_string(),
                "expires": args.expires,
                "note": args.note,
                "line": line(args, &stored)?,
            });
            format!("{report:#}\n")
        }
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn text(args: &NewKeyArgs, secret: &Secret, stored: &StoredKey) -> anyhow::Result<String> {
    Ok(format!(
        "The key, for its user; it is shown this once, and sent as `authorization: Bearer KEY`:\n  {}\n\n\
         The line for `keys` of a [tenant.NAME] in the operator's file:\n  {}\n",
        secret.expose(),
        line(args, stored)?
    ))
}

/// The key as it stands in a list of the operator's file.
fn line(args: &NewKeyArgs, stored: &StoredKey) -> anyhow::Result<String> {
    let expires = args.expires.iter().map(|moment| format!(", expires = {moment}"));
    // A string of JSON without control characters is one of TOML.
    let note = args.note.iter().map(|note| Ok(format!(", note = {}", serde_json::to_string(note)?)));
    let more = expires.map(Ok).chain(note).collect::<Result<String, serde_json::Error>>()?;
    Ok(match more.is_empty() {
        true => format!("\"{stored}\","),
        false => format!("{{ key = \"{stored}\"{more} }},"),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nala_manifest::operator::Operator;

    use super::*;
    use crate::args::{Cli, Verb};

    fn args(more: &[&str]) -> NewKeyArgs {
        let line = [&["nala-host", "key", "new"], more].concat();
        match Cli::read_from(line.into_iter().map(Into::into)).unwrap().verb {
            Verb::Key(KeyArgs { verb: KeyVerb::New(args) }) => args,
            _ => unreachable!("`key new` was asked for"),
        }
    }

    #[test]
    fn the_line_is_one_of_the_operators_file_and_lets_the_key_in() {
        for more in [&[][..], &["--expires", "2999-01-31"], &["--note", "the \"build\" server \\ é"]] {
            let (secret, stored) = Key::generate().unwrap();
            let line = line(&args(more), &stored).unwrap();
            let file = format!("[tenant.acme]\nkeys = [\n    {line}\n]\n");
            let operator = Operator::parse(&file, None, Path::new("")).unwrap();
            let tenant = operator.roster.tenants().next().unwrap();
            assert_eq!(tenant.keys[0].to_string(), stored.to_string());
            assert_eq!(tenant.keys[0].expires().is_some(), more.contains(&"--expires"), "{line}");
            assert!(!line.contains(secret.expose()));
        }
    }
}
