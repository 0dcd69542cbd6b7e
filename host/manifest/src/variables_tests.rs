use std::path::Path;

use super::*;
use crate::{Application, Error};

const VARIABLES: &str = r#"
[variables]
host = { default = "example.com" }
api_key = { required = true, secret = true, description = "d" }
old_key = { default = "hunter2", secret = true }
"#;

const COMPONENT: &str = r#"
[component.a.variables]
url = "https://{{ host }}/{{host}}"
token = "Bearer {{ api_key }}"
plain = "}} {"
"#;

fn manifest(variables: &str, component: &str) -> String {
    format!(
        "spin_manifest_version = 2\n{variables}\n[application]\nname = \"x\"\n[[trigger.http]]\nroute = \"/...\"\n\
         component = \"a\"\n[component.a]\nsource = \"a\"\n{component}"
    )
}

fn application() -> Application {
    Application::parse(&manifest(VARIABLES, COMPONENT), Path::new(""), None).unwrap()
}

/// What each component sees.
fn resolve(
    application: &Application,
    given: &impl Fn(&str) -> Option<OsString>,
) -> Result<BTreeMap<String, BTreeMap<String, Value>>, MissingVariables> {
    let values = application.values(given)?;
    Ok(application.components.iter().map(|(id, component)| (id.clone(), values.seen_by(component))).collect())
}

#[test]
fn a_component_sees_what_its_templates_make() {
    let given = |name: &str| (name == "api_key").then(|| OsString::from("s3cret {{ host }}"));
    let resolved = resolve(&application(), &given).unwrap();
    let a = &resolved["a"];
    assert_eq!(a["url"].expose(), "https://example.com/example.com");
    assert_eq!(a["token"].expose(), "Bearer s3cret {{ host }}");
    assert_eq!(a["plain"].expose(), "}} {");
    assert_eq!((a["url"].is_secret(), a["token"].is_secret()), (false, true));
}

#[test]
fn a_secret_is_never_shown() {
    let application = application();
    let given = |name: &str| (name == "api_key").then(|| OsString::from("s3cret"));
    let resolved = resolve(&application, &given).unwrap();
    let values = application.values(&given).unwrap();
    let shown = format!("{application:?} {resolved:?} {resolved:#?} {values:?} {}", resolved["a"]["token"]);
    for secret in ["s3cret", "hunter2"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(shown.contains("[secret]"), "{shown}");
    assert!(shown.contains("https://example.com/"), "{shown}");
}

#[test]
fn a_mistake_beside_a_secret_does_not_show_it() {
    let variables = "variables.a = { default = \"hunter2\", secret = true, descripton = \"\" }";
    let error = Application::parse(&manifest(variables, ""), Path::new(""), None).unwrap_err().to_string();
    assert!(error.contains("variables.a = { default = *********, secret = true, descripton"), "{error}");
}

#[test]
fn what_is_missing_is_told_with_the_ways_to_give_it() {
    let missing = resolve(&application(), &|_| None).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "spin.toml:5:1: the variable `api_key` has no value: give --variable api_key=VALUE, \
         or set SPIN_VARIABLE_API_KEY"
    );
    // A given value is not replaced by the default when it is not usable.
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt;
        let odd = |_: &str| Some(OsString::from_vec(vec![0xff]));
        let missing = resolve(&application(), &odd).unwrap_err();
        assert_eq!(missing.0.len(), 3);
        assert!(missing.to_string().contains("no Unicode"), "{missing}");
    }
}

#[test]
fn mistakes_in_variables_are_told_at_their_places() {
    for (variables, component, message, line, column) in [
        ("variables.A = { default = \"\" }", "", "upper-case", 2, 11),
        ("variables.a-b = { default = \"\" }", "", "not by `-`", 2, 11),
        ("variables.a = { }", "", "neither required", 2, 15),
        ("variables.a = { default = \"\", required = true }", "", "never be taken", 2, 15),
        ("variables.a = { default = 1 }", "", "must be a string", 2, 27),
        ("variables.a = { defalt = \"\", required = true }", "", "unknown key `defalt`", 2, 17),
        ("variables.a = \"x\"", "", "must be a table", 2, 15),
        ("", "variables = { x = \"a {{ b }}\" }", "no variable `b`", 10, 22),
        ("", "variables = { x = \"a {{ b\" }", "no `}}` ends", 10, 22),
        ("variables.ab = { default = \"\" }", "variables.x = \"{{ ab }}{{ AB }}\"", "`AB` cannot be", 10, 24),
        ("", "variables.X = \"\"", "upper-case", 10, 11),
        ("", "allowed_outbound_hosts = [\"https://b\", \"https://{{ b }}\"]", "no variable `b`", 10, 49),
    ] {
        let text = manifest(variables, component);
        match Application::parse(&text, Path::new(""), None) {
            Err(Error::Invalid(found)) => {
                let first = found.iter().next().unwrap();
                assert!(first.message.contains(message), "{variables} {component}: {first}");
                assert_eq!((first.line, first.column), (line, column), "{first}");
                assert!(!first.help.is_empty());
            }
            other => panic!("{variables} {component}: {other:?}"),
        }
    }
}

#[test]
fn a_likely_name_is_suggested() {
    let text = manifest(VARIABLES, "variables.x = \"{{ api_kye }}\"");
    let error = Application::parse(&text, Path::new(""), None).unwrap_err().to_string();
    assert!(error.contains("did you mean `api_key`?"), "{error}");
}

#[test]
fn the_environment_is_asked_by_spins_names() {
    assert_eq!(environment_name("api_key2"), "SPIN_VARIABLE_API_KEY2");
    assert_eq!(from_environment("nobody_sets_this_variable"), None);
}
