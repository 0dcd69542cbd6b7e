//! `allowed_outbound_hosts`, and `allowed_http_hosts` of older manifests.
//!
//! What a host is, is not judged here: whoever connects reads them, after
//! variables have come into their places.
//!
//! Source: <https://spinframework.dev/http-outbound#granting-http-permissions-to-components>.

use url::{Host, Url};

use crate::diagnostic::Place;
use crate::reader::Node;
use crate::template::Template;
use crate::variables::{self, Declared};

/// An entry of `allowed_outbound_hosts`: `scheme://host:port`, once its
/// variables have values. One that is empty then, or has no host, is skipped in
/// Spin: the way to leave a place for a host that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    /// Its text.
    pub template: Template,
    /// Where it stands, for errors in it.
    pub place: Place,
}

/// Reads both lists, of which a component has one.
pub(crate) fn read(outbound: Option<Node<'_>>, http: Option<Node<'_>>, declared: &Declared<'_>) -> Vec<AllowedHost> {
    let old = http.filter(|http| !http.says_nothing());
    let new = outbound.filter(|outbound| !outbound.says_nothing());
    if let (Some(_), Some(old)) = (new, old) {
        old.fail::<()>(
            "`allowed_http_hosts` and `allowed_outbound_hosts` cannot be there together",
            format!("move its hosts into `allowed_outbound_hosts`{}", instead(&old_hosts(old))),
        );
        return Vec::new();
    }
    let Some(old) = old else {
        let entries = new.and_then(Node::list).unwrap_or_default();
        return entries.into_iter().filter_map(|node| host(node, declared)).collect();
    };
    let hosts = old_hosts(old);
    let help = format!("write `allowed_outbound_hosts`{}", instead(&hosts));
    old.document.warning(old.span(), "`allowed_http_hosts` is deprecated", help);
    let allowed = |(text, place): (String, Place)| Some(AllowedHost { template: Template::parse(&text).ok()?, place });
    hosts.into_iter().filter_map(allowed).collect()
}

fn host(node: Node<'_>, declared: &Declared<'_>) -> Option<AllowedHost> {
    if node.text()? == "insecure:allow-all" {
        return node.fail("`insecure:allow-all` is of older manifests", "write \"*://*:*\" if all hosts are meant");
    }
    if node.text()?.trim().is_empty() {
        return node.fail("a host cannot be empty", "write \"https://example.com\", or remove it");
    }
    Some(AllowedHost { template: variables::template(node, declared)?, place: node.place() })
}

fn instead(hosts: &[(String, Place)]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    format!(": [{}]", hosts.iter().map(|(host, _)| format!("{host:?}")).collect::<Vec<_>>().join(", "))
}

/// The entries of `allowed_http_hosts` as the new key has them.
fn old_hosts(node: Node<'_>) -> Vec<(String, Place)> {
    let entries = node.texts().unwrap_or_default();
    let all = entries.iter().find(|(text, _)| *text == "insecure:allow-all");
    if let Some((_, node)) = all {
        return ["http://*:*", "https://*:*", "http://self"].map(|host| (host.to_owned(), node.place())).to_vec();
    }
    entries.into_iter().filter_map(|(text, node)| Some((old_host(text, node)?, node.place()))).flat_map(each).collect()
}

fn each((hosts, place): (Vec<String>, Place)) -> impl Iterator<Item = (String, Place)> {
    hosts.into_iter().map(move |host| (host, place.clone()))
}

/// `example.com`, `example.com:8080` and the same with `http://` or `https://`
/// all meant both schemes.
fn old_host(text: &str, node: Node<'_>) -> Option<Vec<String>> {
    let whole = if text.contains("//") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&whole).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some((url, host)) = url.as_ref().and_then(|url| Some((url, url.host()?))) else {
        return node.fail(format!("`{text}` is no host"), "write it with its port alone, such as \"example.com:8080\"");
    };
    if url.path().len() > 1 || url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        return node.fail(format!("`{text}` has more than a host and a port"), format!("write \"{host}\""));
    }
    if host == Host::Domain("self") {
        return Some(vec!["http://self".to_owned()]);
    }
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    Some(vec![format!("http://{host}{port}"), format!("https://{host}{port}")])
}
