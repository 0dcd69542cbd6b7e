//! What components are told about the machine and its models: by hand, while the host
//! serves behind its walls, and for tenants.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nala_e2e::api::ask;
use nala_e2e::host::Host;
use nala_e2e::keys::key;
use nala_e2e::{guests, paths};
use serde_json::{Value, json};

/// A component that calls tools, one that generates, and the tools.
const MANIFEST: &str = r#"
spin_manifest_version = 2
[application]
name = "desk"
[[trigger.http]]
route = "/..."
component = "caller"
[[trigger.http]]
route = "/v1/..."
component = "openai"

[component.caller]
source = "caller.wasm"
[component.caller.tool.nala]
tools = ["telemetry"]

[component.openai]
source = "openai.wasm"
ai_models = ["small"]
[component.openai.tool.nala]
renderer = "nala:chat-template"

[component.telemetry]
source = "tool_telemetry.wasm"
[component.telemetry.tool.nala]
telemetry = true
"#;

fn write(folder: &Path, manifest: &str) {
    for component in ["tool_telemetry", "openai"] {
        fs::copy(guests::guest("components", component), folder.join(format!("{component}.wasm"))).unwrap();
    }
    fs::copy(guests::guest("host/wasm/guests", "caller"), folder.join("caller.wasm")).unwrap();
    fs::write(folder.join("spin.toml"), manifest).unwrap();
}

/// What a tool answers that is called by hand.
fn by_hand(folder: &Path, tool: &str) -> Value {
    let call = ["tool", "call", tool, "{}", "--format", "json"];
    let output = Command::new(paths::host_binary()).args(call).current_dir(folder).output().unwrap();
    let answer = serde_json::from_slice(&output.stdout);
    answer.unwrap_or_else(|_| panic!("{tool}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// What a component is answered that calls a tool for a request.
fn called(url: &str, key: &str, call: &str) -> String {
    let (status, told) = ask("GET", &format!("{url}/call?{call}"), key, "", &[]);
    assert_eq!(status, 200, "{told}");
    told.as_str().unwrap().replace("\\\"", "\"")
}

/// A number of `/proc/meminfo`, in bytes.
fn meminfo(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_machine_is_told_as_the_kernel_has_it() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), MANIFEST);
    let info = &by_hand(folder.path(), "machine_info")["structuredContent"];
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap();
    let line = cpuinfo.lines().find(|line| line.starts_with("flags") || line.starts_with("Features")).unwrap();
    let flags: Vec<&str> = line.split_whitespace().collect();
    let told = info["features"].as_array().unwrap();
    assert!(!told.is_empty() && told.iter().all(|feature| flags.contains(&feature.as_str().unwrap())), "{info}");
    for feature in ["avx2", "avx512f", "amx_int8", "asimddp", "i8mm", "sve2"] {
        assert_eq!(told.contains(&json!(feature)), flags.contains(&feature), "{feature}: {info}");
    }
    assert_eq!(info["memory_bytes"], meminfo("MemTotal"), "{info}");
    let online = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    assert_eq!(info["logical_cpus"], online, "{info}");

    let load = &by_hand(folder.path(), "machine_load")["structuredContent"];
    let used = meminfo("MemTotal") - meminfo("MemAvailable");
    let told = load["memory_used_bytes"].as_u64().unwrap();
    assert!(told.abs_diff(used) < 2 << 30, "{told} and {used}");
    let busy = load["cpu_busy_percent"].as_f64().unwrap();
    assert!((0.0..=100.0).contains(&busy) && load["over_seconds"].as_f64().unwrap() >= 0.2, "{load}");

    // A machine has sensors that can be read, or a reason.
    let energy = by_hand(folder.path(), "energy_use");
    let known = energy["structuredContent"]["joules"].as_f64().is_some_and(|joules| joules >= 0.0);
    assert!(known || energy.to_string().contains("The energy is not known: "), "{energy}");
    let doctor = Command::new(paths::host_binary()).args(["doctor", "--format", "json"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(doctor["energy"]["state"] == "measured", known, "{doctor}");
}

#[test]
fn a_model_is_seen_to_run_from_behind_the_walls() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), MANIFEST);
    let host = Host::application(folder.path(), &[]);
    let url = host.url("");
    let idle = called(&url, "", "model_status");
    assert!(idle.contains(r#""name":"small","state":"loaded""#) && idle.contains(r#""running":0"#), "{idle}");
    let request = json!({
        "model": "small", "stream": true, "max_tokens": 1500, "temperature": 0,
        "messages": [{ "role": "user", "content": "Count from one to a thousand, in words." }],
        "logit_bias": { "2": -100, "0": -100 },
    });
    let response = ureq::post(host.url("/v1/chat/completions")).content_type("application/json");
    let mut answer = BufReader::new(response.send(request.to_string()).unwrap().into_body().into_reader());
    let mut line = String::new();
    while !line.contains("\"content\"") {
        line.clear();
        assert!(answer.read_line(&mut line).unwrap() > 0, "it ended before its first token");
    }
    let running = called(&url, "", "model_status&{%22seconds%22:0.5}");
    assert!(running.contains(r#""running":1"#), "{running}");
    let rate = running.split_once(r#""generated_per_second":"#).unwrap().1.split(',').next().unwrap();
    assert!(rate.parse::<f64>().unwrap() > 0.0, "{running}");
    drop(answer);
    let end = Instant::now() + Duration::from_secs(20);
    while !called(&url, "", "model_status").contains(r#""running":0"#) {
        assert!(Instant::now() < end, "its client has left, and it still runs");
    }

    // And what only the system knows can be read there.
    let load = called(&url, "", "machine_load");
    assert!(load.contains(r#""load_averages":["#) && load.contains(r#""cpu_busy_percent":"#), "{load}");
    assert!(!load.contains(r#""cpu_busy_percent":null"#), "{load}");
    if Path::new("/proc/pressure/cpu").exists() {
        assert!(!load.contains(r#""pressure_percent":{"cpu":null"#), "{load}");
    }
    assert!(called(&url, "", "machine_info").contains(&format!(r#""memory_bytes":{}"#, meminfo("MemTotal"))));
}

#[test]
fn without_the_grant_nothing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &MANIFEST.replace("telemetry = true", ""));
    let host = Host::application(folder.path(), &[]);
    for tool in ["machine_info", "machine_load", "model_status", "energy_use"] {
        let told = called(&host.url(""), "", tool);
        assert!(told.contains("This is not allowed") && told.contains("is-error: true"), "{tool}: {told}");
        assert!(told.contains("telemetry = true"), "it says what to do: {told}");
    }
}

#[test]
fn what_a_tenant_deploys_is_told_what_the_operator_lets_it_know() {
    let folder = tempfile::tempdir().unwrap();
    let ((admin, admin_stored), (acme, acme_stored)) = (key(), key());
    let config = |telemetry: bool| {
        let tenant = format!("[tenant.acme]\nkeys = [{acme_stored:?}]\ntelemetry = {telemetry}\n");
        fs::write(folder.path().join("nala.toml"), format!("[admin]\nkeys = [{admin_stored:?}]\n{tenant}")).unwrap();
    };
    config(false);
    let (file, state) = (folder.path().join("nala.toml"), folder.path().join("state"));
    let model = paths::model();
    let args = ["up".as_ref(), "--model".as_ref(), model.as_os_str()];
    let rest = ["--config".as_ref(), file.as_os_str(), "--state-dir".as_ref(), state.as_os_str()];
    let host = Host::start(args.into_iter().chain(rest));
    let api = |path: &str| format!("http://{}/v1/tenants/acme{path}", host.admin);
    let put = |wasm: &Path| {
        let bytes = fs::read(wasm).unwrap();
        let (status, put) = ask("POST", &api("/components"), &admin, "application/wasm", &bytes);
        assert_eq!(status, 201, "{put}");
        put["digest"].as_str().unwrap().to_owned()
    };
    let caller = put(&guests::guest("host/wasm/guests", "caller"));
    let telemetry = put(&guests::guest("components", "tool_telemetry"));
    let manifest = "spin_manifest_version = 2\n[application]\nname = \"desk\"\n\
        [[trigger.http]]\nroute = \"/desk/...\"\ncomponent = \"caller\"\n\
        [component.caller]\nsource = \"c.wasm\"\ntool.nala.tools = [\"telemetry\"]\n\
        [component.telemetry]\nsource = \"t.wasm\"\ntool.nala.telemetry = true\n";
    let body = json!({ "spin_toml": manifest, "components": { "caller": caller, "telemetry": telemetry } }).to_string();
    let deploy = || ask("PUT", &api("/apps/desk"), &admin, "application/json", body.as_bytes());
    let (status, refused) = deploy();
    assert_eq!((status, refused["error"]["code"].as_str()), (422, Some("cannot_be_served")), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("may not read what the machine does") && text.contains("nala.toml"), "{text}");

    // The file is read again while the host serves.
    config(true);
    let end = Instant::now() + Duration::from_secs(30);
    let deployed = loop {
        let (status, answer) = deploy();
        if status == 201 {
            break answer;
        }
        assert!(Instant::now() < end, "{answer}");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert_eq!(deployed["components"]["telemetry"]["facts"]["granted"]["telemetry"], true, "{deployed}");
    // The caller knows its paths without the application's.
    let call = |tool: &str| {
        let (status, told) = ask("GET", &host.url(&format!("/desk/call?{tool}")), &acme, "", &[]);
        assert_eq!(status, 200, "{told}");
        told.as_str().unwrap().replace("\\\"", "\"")
    };
    let told = call("machine_load");
    assert!(told.contains(r#""load_averages":["#), "{told}");
    let used = told.split_once(r#""memory_used_bytes":"#).unwrap().1.split(',').next().unwrap();
    assert_eq!(used.parse::<u64>().unwrap() % (64 << 20), 0, "in round figures: {told}");
    // It is granted no model, and so hears of none.
    let models = call("model_status");
    assert!(models.contains("There are no models") && !models.contains("smollm"), "{models}");

    // And taken away from what was deployed before.
    config(false);
    let end = Instant::now() + Duration::from_secs(30);
    while !call("machine_load").contains("This is not allowed") {
        assert!(Instant::now() < end, "{}", call("machine_load"));
        std::thread::sleep(Duration::from_millis(200));
    }
}
