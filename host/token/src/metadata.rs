//! What clients are told of where tokens come from.

use serde_json::{Value, json};

use crate::tokens::Tokens;

/// Where protected-resource metadata is: before the path of the resource (RFC 9728,
/// section 3.1).
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What is wrong with a token that was sent (RFC 6750, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not right, or nobody's.
    Invalid,
    /// It does not allow what was asked for.
    Scope,
}

impl Tokens {
    /// The metadata that is asked for by a path, if there is any.
    #[must_use]
    pub fn metadata(&self, path: &str) -> Option<Value> {
        let resource = path.strip_prefix(WELL_KNOWN)?;
        let is_it = |of: &str| of.trim_end_matches('/') == resource.trim_end_matches('/');
        let own: Vec<_> = self.all.iter().filter(|known| is_it(known.issuer.audience.path())).collect();
        // Without a path, what there is, where there is one: clients try that last.
        let own = match (own.is_empty(), resource.trim_end_matches('/')) {
            (true, "") => self.all.iter().collect(),
            _ => own,
        };
        let first = own.first()?;
        let own: Vec<_> = own.iter().filter(|known| known.issuer.audience == first.issuer.audience).collect();
        let issuers: Vec<&str> = own.iter().map(|known| known.issuer.issuer.as_str()).collect();
        let mut scopes: Vec<&String> = own.iter().flat_map(|known| &known.issuer.scopes).collect();
        scopes.sort();
        scopes.dedup();
        let mut metadata = json!({
            "resource": first.issuer.audience.as_str(),
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
        });
        if let (Value::Object(all), false) = (&mut metadata, scopes.is_empty()) {
            all.insert("scopes_supported".to_owned(), json!(scopes));
        }
        Some(metadata)
    }

    /// What a client is told that asked for a path and was refused, if tokens are taken
    /// there: the value of `WWW-Authenticate` (RFC 6750, section 3; RFC 9728, section 5.1).
    /// Without a fault it has shown nothing.
    #[must_use]
    pub fn challenge(&self, path: &str, fault: Option<Fault>) -> Option<String> {
        let is_below = |of: &str| {
            let of = of.trim_end_matches('/');
            path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let below = self.all.iter().filter(|known| is_below(known.issuer.audience.path()));
        let known = below.max_by_key(|known| known.issuer.audience.path().len())?;
        let audience = &known.issuer.audience;
        let place = audience.path().trim_end_matches('/');
        let origin = audience.origin().ascii_serialization();
        let mut text = format!("Bearer resource_metadata=\"{origin}{WELL_KNOWN}{place}\"");
        match fault {
            Some(Fault::Invalid) => text += ", error=\"invalid_token\"",
            Some(Fault::Scope) => text += ", error=\"insufficient_scope\"",
            None => {}
        }
        if !known.issuer.scopes.is_empty() {
            text += &format!(", scope=\"{}\"", known.issuer.scopes.join(" "));
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Issuer, Keys, Whose};

    use super::*;

    fn tokens(audiences: &[&str]) -> Tokens {
        let issuer = |audience: &&str| Issuer {
            issuer: "https://auth.example".to_owned(),
            audience: audience.parse().unwrap(),
            keys: Keys::Discovered,
            whose: Whose::Tenant("acme".to_owned()),
            scopes: vec!["tools".to_owned()],
        };
        Tokens::new(audiences.iter().map(issuer).collect())
    }

    #[test]
    fn metadata_is_where_the_resource_is() {
        let tokens = tokens(&["https://nala.example/mcp", "https://nala.example/"]);
        let resource = |path: &str| tokens.metadata(&format!("{WELL_KNOWN}{path}")).map(|all| all["resource"].clone());
        assert_eq!(resource("/mcp"), Some("https://nala.example/mcp".into()));
        assert_eq!(resource(""), Some("https://nala.example/".into()));
        assert_eq!(resource("/other"), None);
        assert_eq!(tokens.metadata("/mcp"), None);
        let all = tokens.metadata(&format!("{WELL_KNOWN}/mcp")).unwrap();
        assert_eq!(all["authorization_servers"], json!(["https://auth.example"]));
        assert_eq!(all["scopes_supported"], json!(["tools"]));
        assert_eq!(Tokens::default().metadata(WELL_KNOWN), None);
    }

    #[test]
    fn the_nearest_resource_is_named_in_a_challenge() {
        let tokens = tokens(&["https://nala.example/", "https://nala.example/mcp"]);
        let challenge = |path: &str, fault| tokens.challenge(path, fault).unwrap();
        let own = "Bearer resource_metadata=\"https://nala.example/.well-known/oauth-protected-resource";
        assert_eq!(challenge("/mcp", None), format!("{own}/mcp\", scope=\"tools\""));
        assert_eq!(challenge("/mcp2", None), format!("{own}\", scope=\"tools\""));
        let told = challenge("/mcp/x", Some(Fault::Scope));
        assert_eq!(told, format!("{own}/mcp\", error=\"insufficient_scope\", scope=\"tools\""));
        assert!(challenge("/", Some(Fault::Invalid)).contains("error=\"invalid_token\""));
        assert_eq!(Tokens::default().challenge("/", None), None);
    }
}
