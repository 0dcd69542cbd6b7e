//! Whether `allowed_outbound_hosts` can be read, once variables are in their places.

use std::collections::BTreeSet;

use nala_egress::{AllowList, Chained};
use nala_manifest::variables::{Value, Values};
use nala_manifest::{AllowedHost, Component, Diagnostic};

use crate::application::is_left_out;

/// Reads each entry of a component. `values` are those of the variables, if all have one;
/// `reachable` are the components that others may call.
pub(super) fn check(component: &Component, values: Option<&Values>, reachable: &BTreeSet<&str>) -> Vec<Diagnostic> {
    component.allowed_outbound_hosts.iter().filter_map(|host| check_one(host, values, reachable)).collect()
}

fn check_one(host: &AllowedHost, values: Option<&Values>, reachable: &BTreeSet<&str>) -> Option<Diagnostic> {
    let literal = host.template.literal();
    // Without its variables nothing can be said about an entry.
    let value = match literal {
        Some(_) => None,
        None => Some(values?.resolve(&host.template).ok()?),
    };
    let text = literal.or(value.as_ref().map(Value::expose))?;
    if is_left_out(host, text) {
        return None;
    }
    let is_secret = value.as_ref().is_some_and(Value::is_secret);
    match AllowList::parse(&[text]) {
        Err(_) if is_secret => {
            let message = format!("`{}` becomes nothing that can be allowed", host.template);
            Some(host.place.error(message, "give its secret variable a host, such as \"api.example.com\""))
        }
        Err(error) => {
            let message = format!("`{text}` cannot be allowed: {}", error.fault);
            Some(host.place.error(message, "write scheme://host:port, such as \"https://api.example.com\""))
        }
        Ok(list) => list.chained().find_map(|chained| match chained {
            Chained::One(name) if !reachable.contains(name) => {
                let message = format!("no trigger names a component `{name}`, so it cannot be called");
                Some(host.place.warning(message, format!("add a private trigger for it, or remove `{text}`")))
            }
            _ => None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nala_manifest::Application;

    use super::*;

    fn found(hosts: &str) -> Vec<String> {
        let text = format!(
            "spin_manifest_version = 2\n[application]\nname = \"x\"\n[variables]\n\
             host = {{ default = \"api.example.com\" }}\nnone = {{ default = \"\" }}\n\
             token = {{ default = \"hunter 2\", secret = true }}\n\
             [[trigger.http]]\nroute = \"/\"\ncomponent = \"a\"\n\
             [component.a]\nsource = \"a.wasm\"\nallowed_outbound_hosts = [{hosts}]\n"
        );
        let application = Application::parse(&text, Path::new(""), None).unwrap();
        let values = application.values(&|_| None).unwrap();
        let component = application.component("a").unwrap();
        check(component, Some(&values), &application.reachable()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn entries_are_read_as_those_who_keep_them_do() {
        let good =
            r#""https://{{ host }}:8443", "https://{{ none }}", "{{ none }}", "http://self", "http://a.spin.internal""#;
        assert_eq!(found(good), Vec::<String>::new());
        let wrong = found("\"https://ok.example\",\n  \"api.example.com\", \"http://{{ host }}/v1\"");
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(
            wrong[0].starts_with("spin.toml:14:3: `api.example.com`") && wrong[0].contains("https://"),
            "{wrong:?}"
        );
        assert!(wrong[1].contains("http://api.example.com/v1") && wrong[1].contains("path"), "{wrong:?}");
        assert!(found("\"http://b.spin.internal\"")[0].contains("warning: no trigger names a component `b`"));
    }

    #[test]
    fn a_secret_is_not_told() {
        let wrong = found("\"https://{{ token }}\"");
        assert!(wrong.len() == 1 && !wrong[0].contains("hunter"), "{wrong:?}");
    }
}
