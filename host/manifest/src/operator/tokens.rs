//! `[[tokens]]`: authorization servers whose access tokens are taken beside keys.

use std::path::{Path, PathBuf};

use nala_tenant::{Roster, TenantName};
use toml::Spanned;
use url::Url;

use super::error::{self, Error};
use super::source::Source;
use super::{raw, unknown};

/// An authorization server whose tokens are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenIssuer {
    /// What it calls itself (`iss` of its tokens).
    pub issuer: String,
    /// The address of this host as clients know it (`aud` of tokens for it).
    pub audience: Url,
    /// Where its keys are.
    pub keys: TokenKeys,
    /// Whose requests with its tokens are.
    pub owner: TokenOwner,
    /// What a token has to allow.
    pub scopes: Vec<String>,
}

/// Where the keys of an issuer are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenKeys {
    /// Where its metadata says.
    Discovered,
    /// At an address.
    At(Url),
    /// In a file, joined to the folder of the operator's.
    File(PathBuf),
}

/// Whose a request with a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenOwner {
    /// This tenant's, always.
    Tenant(TenantName),
    /// That of the tenant which a claim names.
    Claim(String),
}

impl TokenOwner {
    /// Whether a tenant can be meant.
    pub(super) fn can_be(&self, tenant: &TenantName) -> bool {
        match self {
            Self::Tenant(own) => own == tenant,
            Self::Claim(_) => true,
        }
    }
}

/// All of them. `roster` is who is declared, if anybody is.
///
/// # Errors
/// One is not whole, has an address that is none, a tenant that is not there; or two are
/// for the same tokens.
pub(super) fn read(
    all: Vec<Spanned<raw::TokenIssuer>>,
    roster: Option<&Roster>,
    base_dir: &Path,
    source: Source<'_>,
) -> Result<Vec<TokenIssuer>, Error> {
    let mut read: Vec<TokenIssuer> = Vec::new();
    for raw in all {
        let span = raw.span();
        let Some(roster) = roster else {
            let message = "tokens say which tenant somebody is, and there are none";
            return Err(error::at(source, span, message, "add a table [tenant.NAME], or leave `[[tokens]]` out"));
        };
        let issuer = one(raw, roster, base_dir, source)?;
        if read.iter().any(|other| other.issuer == issuer.issuer && other.audience == issuer.audience) {
            let message = format!("tokens of {} for {} are taken already", issuer.issuer, issuer.audience);
            return Err(error::at(source, span, message, "name an issuer once for an audience"));
        }
        read.push(issuer);
    }
    Ok(read)
}

fn one(
    raw: Spanned<raw::TokenIssuer>,
    roster: &Roster,
    base_dir: &Path,
    source: Source<'_>,
) -> Result<TokenIssuer, Error> {
    let span = raw.span();
    let raw = raw.into_inner();
    let fail = |message: &str, help: &str| error::at(source, span.clone(), message, help);
    let Some(issuer) = raw.issuer.filter(|issuer| !issuer.get_ref().is_empty()) else {
        let help = "write what its tokens have as `iss`, such as issuer = \"https://auth.example.com\"";
        return Err(fail("the tokens are of no issuer", help));
    };
    let Some(audience) = &raw.audience else {
        let help = "write this host's address as clients know it: audience = \"https://nala.example.com/mcp\"";
        return Err(fail("the tokens are for no audience", help));
    };
    let audience = address(audience, source)?;
    let keys = match (raw.keys, raw.keys_file) {
        (Some(url), None) => TokenKeys::At(address(&url, source)?),
        (None, Some(path)) => TokenKeys::File(base_dir.join(path.into_inner())),
        (None, None) => {
            // It is looked for beside the issuer, which has to be somewhere for that.
            address(&issuer, source)?;
            TokenKeys::Discovered
        }
        (Some(_), Some(_)) => {
            return Err(fail("its keys are in two places", "write one of `keys` and `keys_file`, or none"));
        }
    };
    let owner = match (raw.tenant, raw.tenant_claim) {
        (Some(name), None) => TokenOwner::Tenant(unknown::tenant(&name, roster, source)?),
        (None, Some(claim)) if !claim.get_ref().is_empty() => TokenOwner::Claim(claim.into_inner()),
        _ => {
            let help = "write `tenant` for all of its tokens, or `tenant_claim`, the claim that names the tenant";
            return Err(fail("it is not clear whose its tokens are", help));
        }
    };
    let scopes = raw.scopes.iter().map(|text| scope(text, source)).collect::<Result<_, _>>()?;
    Ok(TokenIssuer { issuer: issuer.into_inner(), audience, keys, owner, scopes })
}

/// An address by http or https, without what no request is sent with.
fn address(text: &Spanned<String>, source: Source<'_>) -> Result<Url, Error> {
    let wrong = |why: String| {
        let message = format!("`{}` {why}", text.get_ref());
        error::at(source, text.span(), message, "write an address such as \"https://auth.example.com/keys\"")
    };
    let url = Url::parse(text.get_ref()).map_err(|error| wrong(format!("is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("is neither http nor https".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // Not to be shown.
        let message = "an address here has no user name and no password";
        return Err(error::hidden(source, text.span(), message, "leave them out"));
    }
    if url.fragment().is_some() {
        return Err(wrong("has a fragment".to_owned()));
    }
    Ok(url)
}

/// A word of `scope` (RFC 6749, section 3.3).
fn scope(text: &Spanned<String>, source: Source<'_>) -> Result<String, Error> {
    let word = text.get_ref();
    let is_of_one = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    match !word.is_empty() && word.bytes().all(is_of_one) {
        true => Ok(word.clone()),
        false => {
            let message = format!("`{word}` is no scope");
            Err(error::at(source, text.span(), message, "write each as a word of its own: scopes = [\"a\", \"b\"]"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Operator;
    use super::*;

    fn parse(tokens: &str) -> Result<Vec<TokenIssuer>, String> {
        let text = format!("[tenant.acme]\n[[tokens]]\n{tokens}");
        Operator::parse(&text, None, Path::new("/etc/nala")).map(|operator| operator.tokens).map_err(|e| e.to_string())
    }

    const WHO: &str = "issuer = \"https://a.example\"\naudience = \"https://nala.example/mcp\"\n";

    #[test]
    fn an_issuer_is_read() {
        let read = parse(&format!("{WHO}tenant_claim = \"org\"\nscopes = [\"tools\"]")).unwrap();
        assert_eq!(read[0].keys, TokenKeys::Discovered);
        assert_eq!(read[0].owner, TokenOwner::Claim("org".to_owned()));
        assert_eq!(read[0].audience.as_str(), "https://nala.example/mcp");
        let read = parse(&format!("{WHO}tenant = \"acme\"\nkeys_file = \"jwks.json\"")).unwrap();
        assert_eq!(read[0].keys, TokenKeys::File("/etc/nala/jwks.json".into()));
        assert_eq!(read[0].owner, TokenOwner::Tenant("acme".parse().unwrap()));
    }

    #[test]
    fn what_is_wrong_with_one_is_told() {
        let who = |rest: &str| format!("{WHO}{rest}");
        for (text, what) in [
            (who(""), "not clear whose"),
            (who("tenant = \"acme\"\ntenant_claim = \"org\""), "not clear whose"),
            (who("tenant = \"acne\""), "did you mean `acme`"),
            (who("tenant = \"acme\"\nkeys = \"ftp://a\""), "neither http nor https"),
            (who("tenant = \"acme\"\nkeys = \"https://a\"\nkeys_file = \"b\""), "two places"),
            (who("tenant = \"acme\"\nscopes = [\"a b\"]"), "is no scope"),
            (who("tenant = \"acme\"\nscope = \"a\""), "did you mean `scopes`"),
            ("issuer = \"https://a.example\"\ntenant = \"acme\"".to_owned(), "for no audience"),
            ("audience = \"https://a.example\"\ntenant = \"acme\"".to_owned(), "of no issuer"),
            (format!("tenant = \"acme\"\n{}", WHO.replace("https://a.example", "a")), "is no address"),
            (format!("{}\n[[tokens]]\n{0}", who("tenant = \"acme\"")), "taken already"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
        let alone = Operator::parse(&format!("[[tokens]]\n{}", who("tenant_claim = \"org\"")), None, Path::new(""));
        assert!(alone.unwrap_err().to_string().contains("there are none"));
    }
}
