use std::path::Path;

use proptest::prelude::*;
use semver::Version;

use super::*;
use crate::{Application, Component, Error};

fn manifest(component: &str) -> String {
    format!(
        "spin_manifest_version = 2\n[application]\nname = \"x\"\n[[trigger.http]]\nroute = \"/...\"\n\
         component = \"a\"\n[component.b]\nsource = \"b\"\n[component.c]\nsource = \"c\"\nai_models = [\"m\"]\n\
         [component.a]\nsource = \"a\"\n{component}"
    )
}

fn component(text: &str) -> Component {
    let application = Application::parse(&manifest(text), Path::new("/app"), None).unwrap();
    application.component("a").unwrap().clone()
}

fn error(text: &str) -> String {
    match Application::parse(&manifest(text), Path::new("/app"), None) {
        Err(Error::Invalid(found)) => found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        other => panic!("{text}: {other:?}"),
    }
}

fn read<'c>(component: &'c Component, name: &str) -> &'c Dependency {
    &component.dependencies[&parse_name(name).unwrap()]
}

#[test]
fn every_form_is_read() {
    let digest = "0".repeat(64);
    let component = component(&format!(
        r#"[component.a.dependencies]
"x:version" = "^1.2"
"x:registry/api@0.1.0" = {{ registry = "reg.example:8080", package = "y:impl", version = "=1.0.0", export = "y:impl/api" }}
"x:local/api" = {{ path = "deps/l.wasm", export = "other", inherit_configuration = true }}
"x:web" = {{ url = "https://example.com/w.wasm", digest = "sha256:{digest}", inherit_configuration = ["files", "ai_models"] }}
plain-name = {{ component = "b", inherit_configuration = false }}
"#
    ));
    let version = read(&component, "x:version");
    let Provider::Registry(package) = &version.from else { panic!("{version:?}") };
    assert_eq!((package.registry.as_deref(), package.package.as_str()), (None, "x:version"));
    assert!(package.version.matches(&Version::new(1, 9, 0)) && !package.version.matches(&Version::new(2, 0, 0)));
    assert_eq!(version.inherits, Inheritance::Only(BTreeSet::new()));
    let registry = read(&component, "x:registry/api@0.1.0");
    let Provider::Registry(package) = &registry.from else { panic!("{registry:?}") };
    assert_eq!((package.registry.as_deref(), package.package.as_str()), (Some("reg.example:8080"), "y:impl"));
    assert_eq!(registry.export.as_deref(), Some("y:impl/api"));
    let local = read(&component, "x:local/api");
    assert_eq!(local.from, Provider::Path("/app/deps/l.wasm".into()));
    assert_eq!((local.export.as_deref(), &local.inherits), (Some("other"), &Inheritance::All));
    let web = read(&component, "x:web");
    assert!(matches!(&web.from, Provider::Url(download) if download.url == "https://example.com/w.wasm"));
    let some = BTreeSet::from([Configuration::AiModels, Configuration::Files]);
    assert_eq!(web.inherits, Inheritance::Only(some));
    assert_eq!(read(&component, "plain-name").from, Provider::Component("b".to_owned()));
    assert_eq!(read(&component, "plain-name").place.line, 19);
}

#[test]
fn all_dependencies_inherit_but_versions() {
    let component = component(
        "dependencies_inherit_configuration = true\n[component.a.dependencies]\n\"x:y\" = \"1\"\n\
         z = { path = \"z\" }",
    );
    assert_eq!(read(&component, "x:y").inherits, Inheritance::Only(BTreeSet::new()));
    assert_eq!(read(&component, "z").inherits, Inheritance::All);
}

#[test]
fn mistakes_are_told() {
    for (entry, message) in [
        ("\"x:y\" = \"one\"", "`one` is no version"),
        ("\"x:y\" = 1", "must be a version or a table"),
        ("\"x:Y\" = \"1\"", "upper-case"),
        ("\"x:y@1\" = \"1\"", "cannot be the name of a dependency"),
        ("\"x/y\" = \"1\"", "named `namespace:name`"),
        ("a_b = { path = \"x\" }", "not by `_`"),
        ("plain = \"1.0\"", "does not say which package"),
        ("plain = { version = \"1.0\" }", "does not say which package"),
        ("\"x:y\" = { }", "has no `version`"),
        ("\"x:y\" = { path = \"p\", export = \"e\" }", "a whole package"),
        ("\"x:y\" = { version = \"1\", export = \"e\" }", "a whole package"),
        ("\"x:y\" = { path = \"p\", version = \"1\" }", "unknown key `version`"),
        ("\"x:y\" = { path = \"\" }", "`path` is empty"),
        ("\"x:y\" = { url = \"https://x\" }", "has no `digest`"),
        ("\"x:y\" = { url = \"https://x\", digest = \"sha256:0\" }", "is no digest"),
        ("\"x:y\" = { url = \"file:///x\", digest = \"sha256:0\" }", "cannot be fetched by `file`"),
        ("\"x:y\" = { version = \"1\", package = \"y\" }", "`y` is no package"),
        ("\"x:y\" = { version = \"1\", registry = \"https://r\" }", "is no registry"),
        ("\"x:y\" = { path = \"p\", inherit_configuration = [\"ai_model\"] }", "did you mean `ai_models`?"),
        ("\"x:y\" = { path = \"p\", inherit_configuration = \"all\" }", "must be a boolean"),
        ("x = { component = \"nobody\" }", "no component `nobody`"),
        ("x = { component = \"c\" }", "it has ai_models"),
        ("x = { component = \"a\" }", "it has dependencies"),
        ("\"x:y\" = \"1\"\n\"x:y/z\" = \"1\"", "would answer the same imports"),
        ("\"x:y@1.2.0\" = \"1\"\n\"x:y@1.3.0\" = \"1\"", "would answer the same imports"),
    ] {
        let error = error(&format!("[component.a.dependencies]\n{entry}"));
        assert!(error.contains(message), "{entry}: {error}");
    }
    let both = error(
        "dependencies_inherit_configuration = false\n[component.a.dependencies]\n\
         x = { path = \"p\", inherit_configuration = true }",
    );
    assert!(both.contains("cannot stand beside"), "{both}");
}

#[test]
fn what_differs_by_interface_or_incompatible_version_stands_together() {
    component("dependencies = { \"x:y/a\" = \"1\", \"x:y/b\" = \"1\", \"x:z@1.0.0\" = \"1\", \"x:z@2.0.0\" = \"2\" }");
    component("dependencies = { \"x:y@0.1.0\" = \"0.1\", \"x:y@0.2.0\" = \"0.2\" }");
    component("dependencies = { \"x:y@1.0.0-a\" = \"1\", \"x:y@1.0.0-b\" = \"1\" }");
}

#[test]
fn middleware_is_read_and_checked() {
    let text = manifest("").replacen(
        "component = \"a\"\n",
        "component = \"a\"\ndependencies.middleware = [{ component = \"b\" }, { path = \"m.wasm\" }]\n",
        1,
    );
    let application = Application::parse(&text, Path::new("/app"), None).unwrap();
    let middleware = &application.triggers[0].middleware;
    assert_eq!(middleware[0].from, Provider::Component("b".to_owned()));
    assert_eq!(middleware[1].from, Provider::Path("/app/m.wasm".into()));
    for (from, to, message) in [
        ("component = \"b\" }", "component = \"c\" }", "it has ai_models"),
        ("component = \"b\" }", "component = \"q\" }", "no component `q`"),
        ("component = \"b\" }", "version = \"1\" }", "does not say which package"),
        ("component = \"b\" }", "path = \"b\", export = \"x\" }", "unknown key `export`"),
        ("dependencies.middleware", "dependencies.middlewear", "did you mean `middleware`?"),
    ] {
        let error = Application::parse(&text.replacen(from, to, 1), Path::new(""), None).unwrap_err().to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
}

#[test]
fn middleware_that_nothing_would_go_through_is_refused() {
    let private = |dependencies: &str| {
        let route = "route = \"/...\"\n";
        let text = manifest("");
        assert!(text.contains(route), "{text}");
        text.replacen(route, &format!("route = {{ private = true }}\n{dependencies}\n"), 1)
            + "\n[[trigger.http]]\nroute = \"/...\"\ncomponent = \"b\"\n"
    };
    let parse = |text: String| Application::parse(&text, Path::new(""), None).map_err(|error| error.to_string());
    let error = parse(private("dependencies.middleware = [{ path = \"m.wasm\" }]")).unwrap_err();
    assert!(error.contains("a private trigger goes through no middleware"), "{error}");
    assert!(error.contains("spin.toml:6:") && error.contains("remove `dependencies`"), "{error}");
    assert_eq!(parse(private("dependencies.middleware = []")).map(drop), Ok(()));
}

proptest! {
    #[test]
    fn a_name_is_read_as_it_is_written(text in "[a-z]{1,3}(:[a-z]{1,3}(/[a-z]{1,3})?(@[0-9]\\.[0-9]\\.[0-9](-a)?)?)?") {
        prop_assert_eq!(parse_name(&text).unwrap().to_string(), text);
    }

    #[test]
    fn no_name_causes_a_panic(text in "[a-z:/@0-9.é-]{0,12}") {
        if let Ok(name) = parse_name(&text) {
            prop_assert_eq!(parse_name(&name.to_string()), Ok(name));
        }
    }
}
