//! What is said of what cannot be done.

use serde_json::Value;
use url::Url;

/// How much of a text of others is shown, in characters.
const SHOWN: usize = 1000;

/// As much of a name as is shown.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", short(name, 200))
}

/// The beginning of a text, on one line.
pub(crate) fn short(text: &str, most: usize) -> String {
    let shown = |char: char| if char.is_control() { char.escape_debug().to_string() } else { char.to_string() };
    let start: String = text.chars().take(most).map(shown).collect();
    let more = if text.chars().nth(most).is_some() { "…" } else { "" };
    format!("{start}{more}")
}

/// Why the API server was not asked, or gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The host does not let this component ask that server.
    HostNotAllowed,
    /// Nor any server at the address that its name has.
    AddressNotAllowed,
    /// The host has a credential for that server, which cannot be used.
    CredentialUnusable,
    /// Something else, as words that follow "because".
    Failed(String),
}

impl Fault {
    /// What is to be said of it, and done about it.
    pub(crate) fn explain(&self, api: &Url) -> String {
        let origin = api.origin().ascii_serialization();
        let place = "in the component's table of spin.toml";
        match self {
            Self::HostNotAllowed => format!(
                "the API server may not be asked: this tool is not granted {origin}. Its operator can grant it with \
                 `allowed_outbound_hosts = [\"{origin}\"]` {place}"
            ),
            Self::AddressNotAllowed => format!(
                "the API server may not be asked: the address of `{}` is a private or special one. Its operator can \
                 grant it with a credential for {origin} in [[egress.credentials]] of nala.toml, or by the address \
                 itself in `allowed_outbound_hosts` {place}",
                api.host_str().unwrap_or_default(),
            ),
            Self::CredentialUnusable => format!(
                "the API server was not asked: the host cannot use the credential that it has for {origin}. Its \
                 operator finds the reason in the host's log"
            ),
            Self::Failed(why) => format!("the API server at {origin} could not be asked, because {why}"),
        }
    }
}

/// What the API server says of a request that it did not do, and what to do about it. It
/// answers with an object of the kind `Status`.
pub(crate) fn status(code: u16, body: &[u8], api: &Url) -> String {
    let origin = api.origin().ascii_serialization();
    let said = serde_json::from_slice::<Value>(body).ok();
    let said = said.as_ref().and_then(|status| status.get("message")).and_then(Value::as_str);
    let said = match said {
        Some(message) => short(message, SHOWN),
        None if body.is_empty() => "it says no more".to_owned(),
        None => short(&String::from_utf8_lossy(body), 300),
    };
    match code {
        300..400 => format!("{origin} redirects (status {code}), which is not followed; is it an API server?"),
        400 => format!("the API server does not understand the request (400): {said}"),
        401 => format!(
            "the API server does not know who asks (401): {said}. Its operator has to give the host a credential for \
             {origin}: [[egress.credentials]] in nala.toml"
        ),
        403 => format!(
            "the account of this tool may not do that (403): {said}. Whoever administers the cluster can grant it by a \
             role"
        ),
        404 => format!("that is not there (404): {said}. list_resources tells what is"),
        409 => format!("somebody else has changed it meanwhile (409): {said}. Look at it again before another attempt"),
        410 => format!("the list is no longer kept for its next part (410): {said}. List again without `continue`"),
        422 => format!("the API server does not take that (422): {said}"),
        429 => format!("the API server has too much to do (429): {said}. Try again later"),
        500.. => format!("the API server has failed ({code}): {said}. Try again later"),
        _ => format!("the API server answers with status {code}: {said}"),
    }
}
