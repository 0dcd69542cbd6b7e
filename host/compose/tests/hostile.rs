//! Whatever bytes are composed, there is a result.

#![allow(clippy::indexing_slicing, reason = "tests fail by panicking")]

mod common;

use common::{component, nothing, with_one};
use nala_manifest::dependencies::Inheritance;
use proptest::prelude::*;

fn good() -> (Vec<u8>, Vec<u8>) {
    let main = component("import x:lib/shapes@1.2.0; import x:lib/math@1.2.0; export run: func();");
    let library = component(
        "import wasi:filesystem/preopens@0.2.6; import wasi:keyvalue/store@0.2.0-draft2; export x:lib/shapes@1.2.0; \
         export x:lib/math@1.2.0;",
    );
    (main, library)
}

/// Composes in all ways; what comes out is a component.
fn compose(main: &[u8], library: &[u8]) {
    for inherits in [nothing(), Inheritance::All] {
        if let Ok(composed) = with_one(main, library, "x:lib", &inherits) {
            assert!(composed.starts_with(b"\0asm\x0d\0\x01\0"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn broken_components_are_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        is_cut in prop::bool::weighted(0.1),
    ) {
        let (main, library) = good();
        let broken = |mut bytes: Vec<u8>| {
            for (index, byte) in &changes {
                let at = index.index(bytes.len());
                bytes[at] = *byte;
            }
            if is_cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        };
        compose(&broken(main.clone()), &library);
        compose(&main, &broken(library));
    }

    #[test]
    fn other_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (main, library) = good();
        let with_header = [&b"\0asm\x0d\0\x01\0"[..], &bytes].concat();
        for bytes in [&bytes, &with_header] {
            compose(bytes, &library);
            compose(&main, bytes);
        }
    }
}

#[test]
fn deep_and_wide_types_end_with_a_result() {
    let (main, _) = good();
    let mut deep = String::from("(type $t0 (list u8))");
    for level in 1..5000 {
        deep.push_str(&format!("(type $t{level} (list $t{}))", level - 1));
    }
    let wide: String = (0..5000).map(|n| format!("(import \"f{n}\" (func))")).collect();
    // Components in components, each in a section of its own (4).
    let mut nested = b"\0asm\x0d\0\x01\0".to_vec();
    for _ in 0..2000 {
        let mut size = Vec::new();
        let mut left = nested.len();
        while left >= 0x80 {
            size.push((left & 0x7f) as u8 | 0x80);
            left >>= 7;
        }
        size.push(left as u8);
        nested = [&b"\0asm\x0d\0\x01\0\x04"[..], &size, &nested].concat();
    }
    let parsed = [deep, wide].map(|text| wat::parse_str(format!("(component {text})")).unwrap());
    for bytes in parsed.iter().chain([&nested]) {
        compose(&main, bytes);
        compose(bytes, &main);
    }
}
