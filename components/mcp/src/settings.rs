//! What the operator says of the server, in the component's environment.

use serde_json::{Value, json};

/// The variables.
const NAME: &str = "MCP_NAME";
const INSTRUCTIONS: &str = "MCP_INSTRUCTIONS";
const HOSTS: &str = "MCP_ALLOWED_HOSTS";
const ORIGINS: &str = "MCP_ALLOWED_ORIGINS";
const RESOURCE: &str = "MCP_RESOURCE";
const AUTHORIZATION: &str = "MCP_AUTHORIZATION_SERVERS";
const SCOPES: &str = "MCP_SCOPES";
const TRANSPORT: &str = "MCP_TRANSPORT";

/// The settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    name: Option<String>,
    /// What a model should know of the tools as a whole.
    pub(crate) instructions: Option<String>,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// The address of the server, as clients know it.
    resource: Option<String>,
    authorization: Vec<String>,
    scopes: Vec<String>,
    /// Whether messages come over standard input: then nothing is repeated in headers.
    pub(crate) is_stdio: bool,
}

impl Settings {
    pub(crate) fn of_environment() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name| variable(name).filter(|value| !value.trim().is_empty());
        let list = |name| -> Vec<String> {
            let text = text(name).unwrap_or_default();
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        };
        Self {
            name: text(NAME),
            instructions: text(INSTRUCTIONS),
            hosts: list(HOSTS),
            origins: list(ORIGINS),
            resource: text(RESOURCE),
            authorization: list(AUTHORIZATION),
            scopes: list(SCOPES),
            is_stdio: variable(TRANSPORT).as_deref() == Some("stdio"),
        }
    }

    /// Who the server is (`Implementation`).
    pub(crate) fn info(&self) -> Value {
        json!({ "name": self.name.as_deref().unwrap_or("nala"), "version": env!("CARGO_PKG_VERSION") })
    }

    /// Refuses requests that a page elsewhere has a browser send: one that gives its own
    /// name an address of this machine has that name as `Host`, and any page has its own
    /// `Origin`.
    pub(crate) fn check(&self, host: Option<&str>, origin: Option<&str>) -> Result<(), String> {
        let asked = host;
        if let Some(host) = host
            && !allows(&self.hosts, host)
        {
            return Err(format!("`Host: {}` is not served here; {HOSTS} can name it", shortened(host)));
        }
        if let Some(origin) = origin {
            let host = origin.split_once("://").map_or("", |(_, host)| host);
            let is_named = self.origins.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(origin));
            // Where any host is served, a page has to be of the one that it asks.
            let is_any = self.hosts.iter().any(|known| known == "*");
            let is_its_own = |asked: &str| asked.eq_ignore_ascii_case(host);
            let is_host = if is_any { asked.is_some_and(is_its_own) } else { allows(&self.hosts, host) };
            let is_here = self.origins.is_empty() && is_host;
            if !is_named && !is_here {
                return Err(format!("`Origin: {}` may not use this; {ORIGINS} can name it", shortened(origin)));
            }
        }
        Ok(())
    }

    /// Protected-resource metadata (RFC 9728), if the operator has named who gives tokens.
    pub(crate) fn metadata(&self) -> Option<Value> {
        let resource = self.resource.as_deref()?;
        let mut all = json!({
            "resource": resource,
            "resource_name": self.name.as_deref().unwrap_or("nala"),
            "bearer_methods_supported": ["header"],
        });
        if let Value::Object(all) = &mut all {
            for (key, list) in [("authorization_servers", &self.authorization), ("scopes_supported", &self.scopes)] {
                if !list.is_empty() {
                    all.insert(key.to_owned(), json!(list));
                }
            }
        }
        Some(all)
    }
}

/// Whether a host, with or without a port, is one of those. Without a list it has to be
/// this machine by a name that no page can have.
fn allows(hosts: &[String], host: &str) -> bool {
    let name = without_port(host);
    if hosts.is_empty() {
        return ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own));
    }
    let is_it = |known: &String| known == "*" || known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name);
    hosts.iter().any(is_it)
}

fn without_port(host: &str) -> &str {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && (name.starts_with('[') == name.ends_with(']')) => name,
        _ => host,
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(hosts: &str, origins: &str) -> Settings {
        Settings::of(|name| match name {
            HOSTS => Some(hosts.to_owned()),
            ORIGINS => Some(origins.to_owned()),
            _ => None,
        })
    }

    #[test]
    fn only_this_machine_is_served_unless_somebody_says_so() {
        let default = settings("", "");
        for host in ["localhost", "localhost:3000", "127.0.0.1:80", "[::1]:3000", "[::1]", "LocalHost:1"] {
            assert!(default.check(Some(host), None).is_ok(), "{host}");
            assert!(default.check(Some(host), Some(&format!("http://{host}"))).is_ok(), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:3000", "", "localhost:evil"] {
            let refused = default.check(Some(host), None).unwrap_err();
            assert!(refused.contains(HOSTS), "{refused}");
        }
        for origin in ["http://evil.example", "null", "https://localhost.evil.example", "localhost"] {
            let refused = default.check(Some("localhost"), Some(origin)).unwrap_err();
            assert!(refused.contains(ORIGINS), "{refused}");
        }
    }

    #[test]
    fn names_that_are_given_are_served_and_no_others() {
        let named = settings("mcp.example, 10.0.0.1:3000", "https://app.example");
        assert!(named.check(Some("MCP.example:443"), Some("https://app.example")).is_ok());
        assert!(named.check(Some("10.0.0.1:3000"), None).is_ok());
        assert!(named.check(Some("10.0.0.1:3001"), None).is_err());
        assert!(named.check(Some("localhost"), None).is_err());
        assert!(named.check(Some("mcp.example"), Some("https://mcp.example")).is_err(), "origins are named");
        assert!(settings("*", "").check(Some("any.example"), Some("https://any.example")).is_ok());
        assert!(settings("*", "").check(Some("any.example"), Some("https://evil.example")).is_err());
        assert!(settings("*", "").check(None, Some("https://evil.example")).is_err());
        assert!(settings("*", "*").check(Some("a"), Some("null")).is_ok());
    }

    #[test]
    fn who_gives_tokens_is_told_where_it_is_known() {
        assert_eq!(settings("", "").metadata(), None);
        let settings = Settings::of(|name| match name {
            RESOURCE => Some("https://mcp.example/mcp".to_owned()),
            AUTHORIZATION => Some("https://auth.example".to_owned()),
            _ => None,
        });
        let metadata = settings.metadata().unwrap();
        assert_eq!(metadata["resource"], "https://mcp.example/mcp");
        assert_eq!(metadata["authorization_servers"], json!(["https://auth.example"]));
    }
}
