//! Whether `allowed_outbound_hosts` can be read, once variables are in their places.

use std::collections::BTreeSet;

use nala_egress::{AllowList, Chained};
use nala_manifest::variables::{Value, Values};
use nala_manifest::{AllowedHost, Application, Component, Diagnostic, TriggerRoute};

use crate::application::is_left_out;

/// The components that others may call by their names.
pub(super) struct Callable<'a> {
    reachable: BTreeSet<&'a str>,
    /// Those whose own routes go through middleware, which a call by name does not. With a
    /// private trigger beside them that is meant.
    guarded: BTreeSet<&'a str>,
}

impl<'a> Callable<'a> {
    pub(super) fn of(application: &'a Application) -> Self {
        let mut guarded = BTreeSet::new();
        let mut private = BTreeSet::new();
        for trigger in &application.triggers {
            let Some(id) = trigger.answer.component() else { continue };
            if trigger.route == TriggerRoute::Private {
                private.insert(id);
            } else if !trigger.middleware.is_empty() {
                guarded.insert(id);
            }
        }
        Self { reachable: application.reachable(), guarded: guarded.difference(&private).copied().collect() }
    }

    /// What is to be said about an entry, which is `text` in full.
    fn warning(&self, chained: Chained<'_>, text: &str) -> Option<(String, String)> {
        let past = match chained {
            Chained::One(name) if !self.reachable.contains(name) => {
                let message = format!("no trigger names a component `{name}`, so it cannot be called");
                return Some((message, format!("add a private trigger for it, or remove `{text}`")));
            }
            Chained::One(name) => self.guarded.get(name),
            Chained::Any => self.guarded.first(),
        }?;
        let message = format!("`{text}` reaches `{past}` itself, and not through the middleware of its trigger");
        let help = format!(
            "allow \"http://self\" and ask http://self.alt/ for its route to go through it; if `{past}` may be \
             called past it, say so by a private trigger for it"
        );
        Some((message, help))
    }
}

/// Reads each entry of a component. `values` are those of the variables, if all have one.
pub(super) fn check(component: &Component, values: Option<&Values>, callable: &Callable<'_>) -> Vec<Diagnostic> {
    component.allowed_outbound_hosts.iter().filter_map(|host| check_one(host, values, callable)).collect()
}

fn check_one(host: &AllowedHost, values: Option<&Values>, callable: &Callable<'_>) -> Option<Diagnostic> {
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
        // What it names is not to be told.
        Ok(_) if is_secret => None,
        Ok(list) => {
            let (message, help) = list.chained().find_map(|chained| callable.warning(chained, text))?;
            Some(host.place.warning(message, help))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nala_manifest::Application;

    use super::*;

    fn found(hosts: &str) -> Vec<String> {
        found_beside("", hosts)
    }

    /// With more triggers behind the first.
    fn found_beside(triggers: &str, hosts: &str) -> Vec<String> {
        let text = format!(
            "spin_manifest_version = 2\n[application]\nname = \"x\"\n[variables]\n\
             host = {{ default = \"api.example.com\" }}\nnone = {{ default = \"\" }}\n\
             token = {{ default = \"hunter 2\", secret = true }}\n\
             name = {{ default = \"hunter\", secret = true }}\n\
             [[trigger.http]]\nroute = \"/\"\ncomponent = \"a\"\n{triggers}\
             [component.a]\nsource = \"a.wasm\"\nallowed_outbound_hosts = [{hosts}]\n\
             [component.b]\nsource = \"b.wasm\"\n"
        );
        let application = Application::parse(&text, Path::new(""), None).unwrap();
        let values = application.values(&|_| None).unwrap();
        let component = application.component("a").unwrap();
        check(component, Some(&values), &Callable::of(&application)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn entries_are_read_as_those_who_keep_them_do() {
        let good =
            r#""https://{{ host }}:8443", "https://{{ none }}", "{{ none }}", "http://self", "http://a.spin.internal""#;
        assert_eq!(found(good), Vec::<String>::new());
        let wrong = found("\"https://ok.example\",\n  \"api.example.com\", \"http://{{ host }}/v1\"");
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(
            wrong[0].starts_with("spin.toml:15:3: `api.example.com`") && wrong[0].contains("https://"),
            "{wrong:?}"
        );
        assert!(wrong[1].contains("http://api.example.com/v1") && wrong[1].contains("path"), "{wrong:?}");
        assert!(found("\"http://b.spin.internal\"")[0].contains("warning: no trigger names a component `b`"));
    }

    #[test]
    fn who_goes_past_a_middleware_is_told() {
        let middleware = "[[trigger.http]]\nroute = \"/b\"\ncomponent = \"b\"\n\
                          dependencies.middleware = [{ path = \"m.wasm\" }]\n";
        let private = "[[trigger.http]]\nroute = { private = true }\ncomponent = \"b\"\n";
        for (hosts, warnings) in
            [("\"http://b.spin.internal\"", 1), ("\"http://*.spin.internal\"", 1), ("\"http://a.spin.internal\"", 0)]
        {
            let found = found_beside(middleware, hosts);
            assert_eq!(found.len(), warnings, "{found:?}");
            let through = "not through the middleware";
            assert!(found.iter().all(|one| one.contains("`b` itself") && one.contains(through)), "{found:?}");
            assert_eq!(found_beside(&format!("{middleware}{private}"), hosts), Vec::<String>::new());
        }
        assert_eq!(found_beside(middleware, "\"http://self\""), Vec::<String>::new());
    }

    #[test]
    fn a_secret_is_not_told() {
        let wrong = found("\"https://{{ token }}\"");
        assert!(wrong.len() == 1 && !wrong[0].contains("hunter"), "{wrong:?}");
        assert_eq!(found("\"http://{{ name }}.spin.internal\""), Vec::<String>::new());
    }
}
