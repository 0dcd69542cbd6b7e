//! The conformance suite of the Model Context Protocol: against the server with its fixture,
//! and against the client.

use std::fs;
use std::time::{Duration, Instant};

use nala_e2e::guests;
use nala_e2e::host::Host;
use nala_e2e::paths;
use nala_e2e::scripts::{conforms, conforms_as_client};

/// A server for what the fixture has.
fn serve(folder: &std::path::Path) -> Host {
    for guest in ["mcp", "mcp_fixture"] {
        fs::copy(guests::guest("components", guest), folder.join(format!("{guest}.wasm"))).unwrap();
    }
    let manifest = fs::read_to_string(paths::root().join("components/mcp-fixture/spin.toml")).unwrap();
    let manifest = manifest.replace("../target/wasm32-wasip2/release/", "");
    fs::write(folder.join("spin.toml"), manifest).unwrap();
    Host::application(folder, &[])
}

#[test]
fn conformance_of_the_mcp_server() {
    let folder = tempfile::tempdir().unwrap();
    let host = serve(folder.path());
    for requirements in ["2026-07-28", "2025-11-25"] {
        let began = Instant::now();
        let said = conforms(&host.url("/mcp"), requirements);
        println!("{requirements}, in {:.1} s\n{said}", began.elapsed().as_secs_f64());
        assert!(said.contains("tools-call-with-progress"), "{said}");
        // It says nothing of a server that it could not ask.
        assert!(began.elapsed() > Duration::from_millis(500), "{said}");
    }
}

#[test]
fn conformance_of_the_mcp_client() {
    // Made with all tests, of host/mcp/examples.
    let client = paths::host_binary().with_file_name("examples").join("conformance");
    for (requirements, scenario) in [("2026-07-28", "http-custom-headers"), ("2025-11-25", "sse-retry")] {
        let began = Instant::now();
        let said = conforms_as_client(&client, requirements);
        println!("{requirements}, in {:.1} s\n{said}", began.elapsed().as_secs_f64());
        assert!(said.contains(scenario) && said.contains("✓ auth/scope-step-up"), "{said}");
    }
}
