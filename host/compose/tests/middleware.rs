//! What goes before a component, and what is said where it cannot.

#![allow(clippy::panic, reason = "helpers of tests fail by panicking")]

mod common;

use common::{MOST, component_with, name, nothing, set, told, world_of};
use nala_compose::{ComposeError, Dependency, Main, behind};

/// Components of a package that has the names of `wasi:http` and one type less.
fn http(world: &str) -> Vec<u8> {
    let packages = "
package wasi:http@0.3.0 {
    interface types { resource request {} resource response {} }
    interface handler { use types.{request, response}; handle: func(request: request) -> response; }
}
package wasi:http@0.2.0 {
    interface incoming-handler { handle: func(request: u32) -> u32; }
}
";
    component_with(packages, world)
}

const HANDLER: &str = "export wasi:http/handler@0.3.0;";
const NEXT: &str = "import wasi:http/handler@0.3.0;";

fn before(main: &[u8], middleware: &[(&str, &[u8])]) -> Result<Vec<u8>, ComposeError> {
    let (names, inherits): (Vec<_>, _) = (middleware.iter().map(|(id, _)| name(id)).collect(), nothing());
    let all: Vec<Dependency<'_>> = names
        .iter()
        .zip(middleware)
        .map(|(name, (_, bytes))| Dependency { name, bytes, export: None, inherits: &inherits })
        .collect();
    behind(&Main { name: "app", bytes: main }, &all, MOST)
}

#[test]
fn what_remains_is_a_handler_with_the_imports_of_all() {
    let main = http(&format!("{HANDLER} export run: func(); import x:lib/math@1.2.0;"));
    let one = http(&format!("{NEXT} {HANDLER} export more: func();"));
    let other = http(&format!("{HANDLER} {NEXT}"));
    let composed = before(&main, &[("one", &one), ("other", &other), ("one", &one)]).unwrap_or_else(|e| panic!("{e}"));
    let (imports, exports) = world_of(&composed);
    assert_eq!(imports, set(&["wasi:http/types@0.3.0", "x:lib/math@1.2.0"]));
    assert_eq!(exports, set(&["wasi:http/handler@0.3.0"]));
}

#[test]
fn middleware_is_denied_what_it_does_not_inherit() {
    let main = http(&format!("{HANDLER} import wasi:cli/environment@0.2.6;"));
    let curious = http(&format!("{NEXT} {HANDLER} import wasi:cli/environment@0.2.0;"));
    let composed = before(&main, &[("curious", &curious)]).unwrap_or_else(|e| panic!("{}", told(&e)));
    let (imports, _) = world_of(&composed);
    assert_eq!(imports, set(&["wasi:http/types@0.3.0", "wasi:cli/environment@0.2.6"]), "that of the app is left");
    let knowing = http(&format!("{NEXT} {HANDLER} import nala:llm/model@0.1.0;"));
    let error = before(&main, &[("knowing", &knowing)]).unwrap_err();
    assert!(matches!(&error, ComposeError::NotInherited { import, .. } if import.starts_with("nala:llm")), "{error}");
}

#[test]
fn what_hands_nothing_on_is_refused() {
    let main = http(HANDLER);
    let error = told(&before(&main, &[("wall", &http(&format!("{HANDLER} import x:lib/math@1.2.0;")))]).unwrap_err());
    for part in ["the middleware `wall` hands no requests on", "`x:lib/math@1.2.0`", "`wasi:http/handler`"] {
        assert!(error.contains(part), "{error}");
    }
    let error = told(&before(&main, &[("sink", &http(NEXT))]).unwrap_err());
    assert!(error.contains("`sink` exports no handler of requests"), "{error}");
    let error =
        told(&before(&main, &[("first", &http(&format!("{NEXT} {HANDLER}"))), ("sink", &http(NEXT))]).unwrap_err());
    assert!(error.contains("`first`") && error.contains("`sink` does not answer"), "{error}");
}

#[test]
fn middleware_goes_before_its_own_kind() {
    let middleware = http(&format!("{NEXT} {HANDLER}"));
    let old = http("export wasi:http/incoming-handler@0.2.0;");
    let error = told(&before(&old, &[("new", &middleware)]).unwrap_err());
    for part in ["`new`", "`wasi:http/handler@0.3.0`", "`app`", "`wasi:http/incoming-handler@0.2.0`", "same release"]
        .map(|part| part.trim_matches('`'))
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    let of_old = http("import wasi:http/incoming-handler@0.2.0; export wasi:http/incoming-handler@0.2.0;");
    assert!(before(&old, &[("old", &of_old)]).is_ok());
    let error = told(&before(b"\0asm\x0d\0\x01\0", &[("new", &middleware)]).unwrap_err());
    assert!(error.contains("exports no handler"), "{error}");
}
