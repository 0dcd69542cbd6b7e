//! Which dependency answers which import, and what is said where none does.

#![allow(clippy::panic, reason = "helpers of tests fail by panicking")]

mod common;

use common::{MOST, component, name, nothing, set, told, with_one, world_of};
use nala_compose::{ComposeError, Dependency, Main, compose};

const RUN: &str = "export run: func();";

fn main_with(imports: &str) -> Vec<u8> {
    component(&format!("{imports} {RUN}"))
}

/// What remains to be imported.
fn left(composed: Result<Vec<u8>, ComposeError>) -> Vec<String> {
    let (imports, exports) = world_of(&composed.unwrap_or_else(|error| panic!("{}", told(&error))));
    assert_eq!(exports, set(&["run"]));
    imports.into_iter().collect()
}

#[test]
fn a_plain_name_is_the_import_of_that_name() {
    let main = main_with("import sum: func(a: u32) -> u32; import tool: interface { use-it: func(); }");
    let sum = component("export sum: func(a: u32) -> u32;");
    let tool = component("export tool: interface { use-it: func(); }");
    assert_eq!(left(with_one(&main, &sum, "sum", &nothing())), ["tool"]);
    let (one, other, inherits) = (name("sum"), name("tool"), nothing());
    let both = [
        Dependency { name: &one, bytes: &sum, export: None, inherits: &inherits },
        Dependency { name: &other, bytes: &tool, export: None, inherits: &inherits },
    ];
    assert!(left(compose(&Main { name: "app", bytes: &main }, &both, MOST)).is_empty());
}

#[test]
fn a_package_is_all_of_its_interfaces() {
    let main = main_with("import x:lib/shapes@1.2.0; import x:lib/math@1.2.0; import other:calc/math;");
    let library = component("export x:lib/shapes@1.2.0; export x:lib/math@1.2.0;");
    // What is only types is imported by both, and by nobody answered.
    let remaining = ["other:calc/math", "x:lib/types@1.2.0"];
    assert_eq!(left(with_one(&main, &library, "x:lib", &nothing())), remaining);
    assert_eq!(left(with_one(&main, &library, "x:lib@1.0.0", &nothing())), remaining);
    let half = component("export x:lib/shapes@1.2.0;");
    let error = with_one(&main, &half, "x:lib", &nothing()).unwrap_err();
    assert!(matches!(&error, ComposeError::MissingExport { import, .. } if import == "x:lib/math@1.2.0"), "{error}");
    assert!(told(&error).contains("`x:lib/shapes@1.2.0`"), "{}", told(&error));
}

#[test]
fn versions_that_fit_each_other_are_matched() {
    let main = main_with("import x:lib/math@1.2.0;");
    let newer = component("export x:lib/math@1.3.0;");
    for called in ["x:lib", "x:lib/math", "x:lib/math@1.0.0", "x:lib@1.9.0"] {
        assert!(left(with_one(&main, &newer, called, &nothing())).is_empty(), "{called}");
    }
    // Two versions that do not fit each other are two imports.
    let main = main_with("import x:lib/math@1.2.0; import x:lib/math@2.0.0;");
    assert_eq!(left(with_one(&main, &newer, "x:lib@1.2.0", &nothing())), ["x:lib/math@2.0.0"]);
    let error = with_one(&main, &newer, "x:lib", &nothing()).unwrap_err();
    assert!(matches!(&error, ComposeError::MissingExport { import, .. } if import == "x:lib/math@2.0.0"), "{error}");
    // An older one lacks what the import has.
    let main = main_with("import x:lib/math@1.3.0;");
    let error = with_one(&main, &component("export x:lib/math@1.2.0;"), "x:lib", &nothing()).unwrap_err();
    assert!(matches!(error, ComposeError::Mismatch { .. }) && error.to_string().contains("sub"), "{error}");
}

#[test]
fn an_export_of_another_name_answers_if_it_is_named() {
    let main = main_with("import x:lib/math@1.2.0;");
    let library = component("export other:calc/math; export sum: func();");
    let (called, inherits) = (name("x:lib/math"), nothing());
    let with = |export| {
        let dependency = Dependency { name: &called, bytes: &library, export, inherits: &inherits };
        compose(&Main { name: "app", bytes: &main }, &[dependency], MOST)
    };
    assert!(left(with(Some("other:calc/math"))).is_empty());
    let error = told(&with(None).unwrap_err());
    for part in ["`x:lib/math`", "`x:lib/math@1.2.0`", "`other:calc/math`", "export = \"other:calc/math\""] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let error = told(&with(Some("nothing")).unwrap_err());
    assert!(error.contains("does not export `nothing`"), "{error}");
    let error = with(Some("sum")).unwrap_err();
    assert!(matches!(&error, ComposeError::Mismatch { export, .. } if export == "sum"), "{error}");
}

#[test]
fn a_name_that_answers_nothing_is_told_with_all_imports() {
    let main = main_with("import x:lib/math@1.2.0; import sum: func();");
    let library = component("export x:lib/math@1.2.0;");
    for called in ["x:library", "x:lib/maths", "x:lib/math@2.0.0", "summ"] {
        let error = with_one(&main, &library, called, &nothing()).unwrap_err();
        assert_eq!(error.dependency(), Some(&name(called)));
        let text = told(&error);
        assert!(
            text.contains("imports `sum`, `x:lib/math@1.2.0`") || text.contains("`x:lib/math@1.2.0`, `sum`"),
            "{text}"
        );
    }
    let error = with_one(&component(RUN), &library, "x:lib", &nothing()).unwrap_err();
    assert!(error.to_string().ends_with("which imports nothing"), "{error}");
}

#[test]
fn an_import_has_one_answer() {
    let main = main_with("import x:lib/math@1.2.0;");
    let library = component("export x:lib/math@1.2.0;");
    let (whole, interface, inherits) = (name("x:lib"), name("x:lib/math"), nothing());
    let both = [&whole, &interface].map(|name| Dependency { name, bytes: &library, export: None, inherits: &inherits });
    let error = compose(&Main { name: "app", bytes: &main }, &both, MOST).unwrap_err();
    assert!(
        error.to_string().contains("`x:lib` and `x:lib/math` would both answer the import `x:lib/math@1.2.0`"),
        "{error}"
    );
}

#[test]
fn the_same_component_twice_is_one_instance() {
    let main = main_with("import x:lib/bag@1.2.0; import x:lib/full@1.2.0;");
    let library = component("export x:lib/bag@1.2.0; export x:lib/full@1.2.0;");
    let (bag, full, inherits) = (name("x:lib/bag"), name("x:lib/full"), nothing());
    let with = |other: &[u8]| {
        let both = [
            Dependency { name: &bag, bytes: &library, export: None, inherits: &inherits },
            Dependency { name: &full, bytes: other, export: None, inherits: &inherits },
        ];
        compose(&Main { name: "app", bytes: &main }, &both, MOST)
    };
    assert!(left(with(&library)).is_empty());
    // Things of one are no things of another.
    let other = component("export x:lib/bag@1.2.0; export x:lib/full@1.2.0; export more: func();");
    let error = with(&other).unwrap_err();
    assert!(matches!(error, ComposeError::Join { .. } | ComposeError::Mismatch { .. }), "{error}");
}

#[test]
fn what_is_no_component_is_told() {
    let (main, library) = (main_with("import x:lib/math@1.2.0;"), component("export x:lib/math@1.2.0;"));
    let module = wat::parse_str("(module)").unwrap();
    for wrong in [&module[..], b"", b"\0asm", b"no Wasm at all", &library[..library.len() - 1]] {
        let error = with_one(&main, wrong, "x:lib", &nothing()).unwrap_err();
        assert!(matches!(error, ComposeError::Unreadable { .. }), "{error}");
        let error = with_one(wrong, &library, "x:lib", &nothing()).unwrap_err();
        assert!(matches!(error, ComposeError::Main { .. }) && error.dependency().is_none(), "{error}");
    }
}

#[test]
fn sizes_are_bounded() {
    let (main, library) = (main_with("import x:lib/math@1.2.0;"), component("export x:lib/math@1.2.0;"));
    let (called, inherits) = (name("x:lib"), nothing());
    let dependency = Dependency { name: &called, bytes: &library, export: None, inherits: &inherits };
    let within = |most| compose(&Main { name: "app", bytes: &main }, &[dependency], most);
    let parts = (main.len() + library.len()) as u64;
    let composed = within(MOST).unwrap().len() as u64;
    assert!(composed > parts);
    assert_eq!(within(composed).unwrap().len() as u64, composed);
    for most in [0, parts - 1, parts, composed - 1] {
        let error = within(most).unwrap_err();
        assert!(matches!(error, ComposeError::TooLarge { .. }), "{error}");
    }
}
