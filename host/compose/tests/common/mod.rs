//! Small components out of WIT, and what the composed ones need.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part of this module")]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;

use nala_compose::{ComposeError, Dependency, Main};
use nala_manifest::dependencies::{Configuration, DependencyName, Inheritance};
use wit_component::{ComponentEncoder, DecodedWasm, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve};

/// More than any of these has.
pub const MOST: u64 = 1 << 20;

/// The packages that the tests use.
const PACKAGES: &str = "
package test:root;

package x:lib@1.2.0 {
    interface types { record point { x: u32, y: u32 } }
    interface shapes { use types.{point}; area: func(of: point) -> u32; }
    interface math { add: func(a: u32, b: u32) -> u32; }
    interface bag { resource things { constructor(); } }
    interface full { use bag.{things}; fill: func(of: borrow<things>); }
}
package x:lib@1.3.0 {
    interface math { add: func(a: u32, b: u32) -> u32; sub: func(a: u32, b: u32) -> u32; }
}
package x:lib@2.0.0 {
    interface math { add: func(a: u64, b: u64) -> u64; }
}
package other:calc {
    interface math { add: func(a: u32, b: u32) -> u32; }
}
package wasi:cli@0.2.0 {
    interface environment { get-environment: func() -> list<tuple<string, string>>; }
}
package wasi:cli@0.2.6 {
    interface environment {
        get-environment: func() -> list<tuple<string, string>>;
        initial-cwd: func() -> option<string>;
    }
}
package wasi:filesystem@0.2.6 {
    interface types { resource descriptor { sync-data: func(); } }
    interface preopens { use types.{descriptor}; get-directories: func() -> list<tuple<descriptor, string>>; }
}
package wasi:keyvalue@0.2.0-draft2 {
    interface store {
        variant error { no-such-store, access-denied, other(string) }
        resource bucket { get: func(key: string) -> result<list<u8>, error>; }
        open: func(identifier: string) -> result<bucket, error>;
    }
    interface atomics { use store.{bucket, error}; increment: func(of: borrow<bucket>) -> result<s64, error>; }
}
package nala:llm@0.1.0 {
    interface types { enum mood { good, bad } }
    interface model { use types.{mood}; ask: func(mood: mood) -> string; }
}
";

/// A component with the world, whose functions trap.
pub fn component(world: &str) -> Vec<u8> {
    component_with("", world)
}

/// The same, with interfaces of its own package.
pub fn component_with(interfaces: &str, world: &str) -> Vec<u8> {
    let root = format!("package test:root;\n{interfaces}\nworld it {{ {world} }}");
    let text = PACKAGES.replace("package test:root;", &root);
    let mut resolve = Resolve::default();
    let package = resolve.push_str("test.wit", &text).unwrap();
    let world = resolve.select_world(&[package], Some("it")).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Legacy(LiftLowerAbi::Sync));
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let mut encoder = ComponentEncoder::default();
    encoder.merge_imports_based_on_semver(false);
    encoder.validate(true).module(&module).unwrap().encode().unwrap()
}

/// What a component imports and exports, by name.
pub fn world_of(bytes: &[u8]) -> (BTreeSet<String>, BTreeSet<String>) {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(bytes).unwrap() else {
        panic!("no component");
    };
    let world = resolve.worlds.get(world).unwrap();
    let names = |keys: Vec<_>| keys.into_iter().map(|key| resolve.name_world_key(key)).collect();
    (names(world.imports.keys().collect()), names(world.exports.keys().collect()))
}

pub fn name(text: &str) -> DependencyName {
    text.parse().unwrap()
}

pub fn nothing() -> Inheritance {
    Inheritance::Only(BTreeSet::new())
}

pub fn only(these: &[Configuration]) -> Inheritance {
    Inheritance::Only(these.iter().copied().collect())
}

/// A component with one dependency.
pub fn with_one(main: &[u8], dependency: &[u8], called: &str, inherits: &Inheritance) -> Result<Vec<u8>, ComposeError> {
    let name = name(called);
    let dependency = Dependency { name: &name, bytes: dependency, export: None, inherits };
    nala_compose::compose(&Main { name: "app", bytes: main }, &[dependency], MOST)
}

/// What is said and advised.
pub fn told(error: &ComposeError) -> String {
    format!("{error}\n{}", error.help())
}

pub fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
