//! Applications that are deployed while the host serves, through the operator's API.

use std::fs;
use std::path::Path;

use nala_e2e::api::ask;
use nala_e2e::host::Host;
use nala_e2e::keys::key;
use nala_e2e::{guests, paths};
use serde_json::json;

/// An admin key and the keys of two tenants.
pub(crate) struct Keys {
    pub(crate) admin: String,
    pub(crate) acme: String,
    other: String,
}

pub(crate) fn prepare(folder: &Path) -> Keys {
    let ((admin, admin_stored), (acme, acme_stored), (other, other_stored)) = (key(), key(), key());
    let config = format!(
        "[admin]\nkeys = [{admin_stored:?}]\n[tenant.acme]\nkeys = [{acme_stored:?}]\nlimits.component_bytes = \
         \"4MiB\"\n[tenant.other]\nkeys = [{other_stored:?}]\n"
    );
    fs::write(folder.join("nala.toml"), config).unwrap();
    Keys { admin, acme, other }
}

pub(crate) fn serve(folder: &Path) -> Host {
    let (config, state) = (folder.join("nala.toml"), folder.join("state"));
    Host::start([
        "up".as_ref(),
        "--model".as_ref(),
        paths::model().as_os_str(),
        "--config".as_ref(),
        config.as_os_str(),
        "--state-dir".as_ref(),
        state.as_os_str(),
    ])
}

/// A version of an application that says which one it is.
fn version(number: u32, digest: &str) -> Vec<u8> {
    let spin_toml = format!(
        "spin_manifest_version = 2\n[application]\nname = \"shop\"\n\
         [[trigger.http]]\nroute = \"/shop/version\"\nstatic_response = {{ body = \"{number}\" }}\n\
         [[trigger.http]]\nroute = \"/shop/...\"\ncomponent = \"shop\"\n\
         [component.shop]\nsource = \"shop.wasm\"\nai_models = [\"smollm2-135m-instruct-q4_1\"]\n\
         [component.shop.tool.nala]\nrenderer = \"nala:chat-template\"\n"
    );
    json!({ "spin_toml": spin_toml, "components": { "shop": digest }, "note": format!("number {number}") })
        .to_string()
        .into_bytes()
}

#[test]
fn an_application_is_deployed_gone_back_from_and_is_there_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let keys = prepare(folder.path());
    let host = serve(folder.path());
    let admin = |path: &str| format!("http://{}/v1/tenants/acme{path}", host.admin);
    let wasm = fs::read(guests::ask()).unwrap();

    // For those with an admin key only: a tenant's is none.
    for (key, code) in [("", "missing_admin_key"), ("nala_0_0", "invalid_admin_key"), (&keys.acme, "invalid_admin_key")]
    {
        let (status, body) = ask("GET", &admin("/apps"), key, "", &[]);
        assert_eq!((status, body["error"]["code"].as_str()), (401, Some(code)));
    }
    // And not on the listener that tenants reach.
    let (status, _) = ask("GET", &host.url("/v1/tenants/acme/apps"), &keys.admin, "", &[]);
    assert_eq!(status, 401);

    let (status, put) = ask("POST", &admin("/components"), &keys.admin, "application/wasm", &wasm);
    assert_eq!(status, 201, "{put}");
    let digest = put["digest"].as_str().unwrap();
    let deploy = |body: &[u8]| ask("PUT", &admin("/apps/shop"), &keys.admin, "application/json", body);
    let (status, first) = deploy(&version(1, digest));
    assert_eq!((status, first["version"].as_u64()), (201, Some(1)), "{first}");
    let imports = first["components"]["shop"]["facts"]["imports"].as_array().unwrap();
    assert!(imports.iter().any(|import| import.as_str().unwrap().starts_with("nala:llm/")), "{first}");

    // Its tenant has it, another one does not, and what is everybody's is still there.
    let get = |host: &Host, key: &str, path: &str| ask("GET", &host.url(path), key, "", &[]);
    assert_eq!(get(&host, &keys.acme, "/shop/version"), (200, json!(1)));
    assert_eq!(get(&host, &keys.other, "/shop/version").0, 404);
    assert_eq!(get(&host, &keys.acme, "/v1/models").0, 200);
    let (status, answer) =
        ask("POST", &host.url("/shop/ask"), &keys.acme, "text/plain", b"What is the capital of France?");
    assert_eq!(status, 200, "{answer}");

    assert_eq!(deploy(&version(2, digest)).0, 201);
    assert_eq!(get(&host, &keys.acme, "/shop/version"), (200, json!(2)));
    // What cannot be served changes nothing.
    for (body, code) in [
        (version(3, &format!("sha256:{}", "0".repeat(64))), "unknown_component"),
        (
            String::from_utf8(version(3, digest)).unwrap().replace("manifest_version", "manifest_versoin").into_bytes(),
            "cannot_be_served",
        ),
        (
            String::from_utf8(version(3, digest))
                .unwrap()
                .replace("renderer =", r#"clock = \"exact\"\nrenderer ="#)
                .into_bytes(),
            "cannot_be_served",
        ),
        (
            String::from_utf8(version(3, digest)).unwrap().replace("smollm2-135m-instruct-q4_1", "gpt-5").into_bytes(),
            "cannot_be_served",
        ),
        (
            String::from_utf8(version(3, digest))
                .unwrap()
                .replace("source =", "files = [\\\"/etc/passwd\\\"]\\nsource =")
                .into_bytes(),
            "cannot_be_served",
        ),
    ] {
        let (status, refused) = deploy(&body);
        assert_eq!((status, refused["error"]["code"].as_str()), (422, Some(code)), "{refused}");
    }
    let put_alone =
        |app: &str, body: &[u8]| ask("PUT", &admin(&format!("/apps/{app}")), &keys.admin, "application/wasm", body);
    let (status, refused) = put_alone("broken", b"\0asm\x0d\0\x01\0 nonsense");
    assert_eq!((status, refused["error"]["code"].as_str()), (422, Some("cannot_be_served")), "{refused}");
    let (status, refused) = put_alone("broken", &vec![0; 5 << 20]);
    assert_eq!((status, refused["error"]["code"].as_str()), (413, Some("component_too_large")), "{refused}");
    assert_eq!(get(&host, &keys.acme, "/shop/version"), (200, json!(2)));

    let (status, back) = ask("POST", &admin("/apps/shop/rollback"), &keys.admin, "", br#"{"to": 1}"#);
    assert_eq!((status, back["version"].as_u64()), (200, Some(1)), "{back}");
    assert_eq!(get(&host, &keys.acme, "/shop/version"), (200, json!(1)));
    let (_, history) = ask("GET", &admin("/apps/shop"), &keys.admin, "", &[]);
    assert_eq!((history["current"].as_u64(), history["versions"].as_array().map(Vec::len)), (Some(1), Some(2)));

    // Killed without a word, and started again.
    drop(host);
    let host = serve(folder.path());
    assert_eq!(get(&host, &keys.acme, "/shop/version"), (200, json!(1)));
    let admin = |path: &str| format!("http://{}/v1/tenants/acme{path}", host.admin);
    assert_eq!(ask("DELETE", &admin("/apps/shop"), &keys.admin, "", &[]).0, 200);
    assert_eq!(get(&host, &keys.acme, "/shop/version").0, 404);
    let (_, listed) = ask("GET", &admin("/apps"), &keys.admin, "", &[]);
    assert_eq!(listed["apps"], json!([]));
}
