//! What a dependency has of what its component has.

mod common;

use common::{component, name, nothing, only, set, told, with_one, world_of};
use nala_compose::ComposeError;
use nala_manifest::dependencies::{Configuration, Inheritance};

const RUN: &str = "export run: func();";
const ENVIRONMENT: &str = "wasi:cli/environment@0.2.6";
const STORE: &str = "wasi:keyvalue/store@0.2.0-draft2";

#[test]
fn what_is_not_inherited_is_not_even_imported() {
    let main = component(&format!("import x:lib/math@1.2.0; {RUN}"));
    let library = component(
        "import wasi:cli/environment@0.2.6; import wasi:filesystem/preopens@0.2.6; \
         import wasi:keyvalue/store@0.2.0-draft2; import wasi:keyvalue/atomics@0.2.0-draft2; \
         export x:lib/math@1.2.0;",
    );
    let imports = |inherits: &Inheritance| {
        let composed = with_one(&main, &library, "x:lib", inherits);
        world_of(&composed.unwrap_or_else(|error| panic!("{}", told(&error)))).0
    };
    let (files, preopens) = ("wasi:filesystem/types@0.2.6", "wasi:filesystem/preopens@0.2.6");
    let atomics = "wasi:keyvalue/atomics@0.2.0-draft2";
    // Handles of files are the host's; there are none.
    assert_eq!(imports(&nothing()), set(&[files]));
    assert_eq!(imports(&only(&[Configuration::Environment])), set(&[ENVIRONMENT, files]));
    assert_eq!(imports(&only(&[Configuration::KeyValueStores])), set(&[files, STORE, atomics]));
    assert_eq!(imports(&only(&[Configuration::Files])), set(&[files, preopens]));
    assert_eq!(imports(&only(&[Configuration::Variables])), set(&[files]));
    assert_eq!(imports(&Inheritance::All), set(&[ENVIRONMENT, files, preopens, STORE, atomics]));
}

#[test]
fn what_both_have_is_imported_once_and_denied_to_one() {
    let main = component(&format!("import wasi:cli/environment@0.2.0; import x:lib/math@1.2.0; {RUN}"));
    let library = component("import wasi:cli/environment@0.2.6; export x:lib/math@1.2.0;");
    let imports = |inherits: &Inheritance| world_of(&with_one(&main, &library, "x:lib", inherits).unwrap()).0;
    assert_eq!(imports(&nothing()), set(&["wasi:cli/environment@0.2.0"]));
    assert_eq!(imports(&Inheritance::All), set(&[ENVIRONMENT]));
}

#[test]
fn what_cannot_be_denied_is_refused_with_its_key() {
    let main = component(&format!("import x:lib/math@1.2.0; {RUN}"));
    let library = component("import nala:llm/model@0.1.0; export x:lib/math@1.2.0;");
    let error = with_one(&main, &library, "x:lib", &only(&[Configuration::Files])).unwrap_err();
    assert_eq!(error.dependency(), Some(&name("x:lib")));
    let text = told(&error);
    for part in ["`x:lib`", "`nala:llm/model@0.1.0`", "inherit_configuration = [\"ai_models\"]"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for inherits in [only(&[Configuration::AiModels]), Inheritance::All] {
        let composed = with_one(&main, &library, "x:lib", &inherits).unwrap();
        assert_eq!(world_of(&composed).0, set(&["nala:llm/model@0.1.0", "nala:llm/types@0.1.0"]));
    }
}

#[test]
fn what_is_unknown_is_for_those_who_inherit_everything() {
    let main = component(&format!("import x:lib/math@1.2.0; {RUN}"));
    let unknown = [
        "import other:calc/math;",
        "import sum: func();",
        "import tool: interface { use-it: func(); }",
        "import x:lib/bag@1.2.0;",
    ];
    let every = only(&[
        Configuration::AiModels,
        Configuration::AllowedOutboundHosts,
        Configuration::Environment,
        Configuration::Files,
        Configuration::KeyValueStores,
        Configuration::SqliteDatabases,
        Configuration::Variables,
    ]);
    for import in unknown {
        let library = component(&format!("{import} export x:lib/math@1.2.0;"));
        let error = with_one(&main, &library, "x:lib", &every).unwrap_err();
        assert!(matches!(error, ComposeError::NotInherited { key: None, .. }), "{import}: {error}");
        assert!(told(&error).contains("inherit_configuration = true"), "{}", told(&error));
        let composed = with_one(&main, &library, "x:lib", &Inheritance::All).unwrap();
        assert_eq!(world_of(&composed).0.len(), 1, "{import}");
    }
}

#[test]
fn what_a_denied_interface_would_pass_on_does_not_fit() {
    // The main component's bucket is the host's; the dependency knows none of those.
    let world = "interface hand { use wasi:keyvalue/store@0.2.0-draft2.{bucket}; take: func(it: borrow<bucket>); }";
    let package = |of: &str| common::component_with(world, of);
    let main = package(&format!("import hand; {RUN}"));
    let library = package("export hand;");
    let error = with_one(&main, &library, "test:root/hand", &nothing()).unwrap_err();
    assert!(matches!(error, ComposeError::Join { .. } | ComposeError::Mismatch { .. }), "{error}");
    with_one(&main, &library, "test:root/hand", &only(&[Configuration::KeyValueStores])).unwrap();
}
