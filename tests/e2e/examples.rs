//! The examples of agents: what they say of themselves holds with the real model.

use std::fs;

use nala_e2e::guests;
use nala_e2e::host::Host;
use serde_json::{Value, json};

const AGENTS: [(&str, &str); 4] =
    [("react", "react"), ("plan", "plan_execute"), ("tree", "tree_of_thoughts"), ("best", "best_of_n")];

fn serve(folder: &std::path::Path) -> Host {
    let mut manifest = String::from("spin_manifest_version = 2\n[application]\nname = \"agents\"\n");
    for (route, guest) in AGENTS {
        fs::copy(guests::guest("components", guest), folder.join(format!("{guest}.wasm"))).unwrap();
        manifest += &format!(
            "[[trigger.http]]\nroute = \"/{route}\"\ncomponent = \"{route}\"\n\
             [component.{route}]\nsource = \"{guest}.wasm\"\nai_models = [\"small\"]\n\
             [component.{route}.tool.nala]\nrenderer = \"nala:chat-template\"\ntools = [\"calculator\"]\n"
        );
    }
    fs::copy(guests::guest("components", "tool_calculator"), folder.join("calculator.wasm")).unwrap();
    manifest += "[component.calculator]\nsource = \"calculator.wasm\"\n";
    fs::write(folder.join("spin.toml"), manifest).unwrap();
    Host::application(folder, &[])
}

#[test]
fn examples_of_agents_do_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let host = serve(folder.path());
    let ask = |route: &str, job: &Value| -> Value {
        let text = ureq::post(host.url(route)).send(job.to_string()).unwrap().into_body().read_to_string().unwrap();
        serde_json::from_str(&text).unwrap()
    };

    let react = ask("/react", &json!({ "question": "What is 37 * 43? Use calculate[37 * 43].", "steps": 3 }));
    let steps = react["steps"].as_array().unwrap();
    assert!(steps.len() <= 2 && react["answer"].is_string(), "the last step answers: {react}");
    assert!(steps.iter().all(|step| step["action"] == "calculate" && step["observation"] != ""), "{react}");

    let plan = ask("/plan", &json!({ "task": "Bake bread.", "tokens": 12 }));
    let (steps, results) = (plan["plan"].as_array().unwrap(), plan["results"].as_array().unwrap());
    assert!((2..=4).contains(&steps.len()) && steps.len() == results.len(), "{plan}");
    assert!(results.iter().all(|result| result != "") && plan["summary"] != "", "{plan}");

    let job = json!({ "problem": "Make 24 of 4, 6, 8 and 2.", "depth": 2, "breadth": 3, "keep": 2 });
    let tree = ask("/tree", &job);
    let levels: Vec<&Vec<Value>> =
        tree["levels"].as_array().unwrap().iter().map(|level| level.as_array().unwrap()).collect();
    assert_eq!(levels.iter().map(|level| level.len()).collect::<Vec<_>>(), [3, 6], "{tree}");
    for level in levels {
        let worth: Vec<f64> = level.iter().map(|thought| thought["worth"].as_f64().unwrap()).collect();
        assert!(worth.is_sorted_by(|a, b| a >= b) && worth.iter().all(|worth| *worth <= 0.0), "{tree}");
    }
    assert_eq!(tree["best"].as_array().unwrap().len(), 2, "{tree}");

    let best = ask("/best", &json!({ "question": "Name a fruit and praise it.", "n": 4, "tokens": 12 }));
    let marks: Vec<u64> = best["answers"].as_array().unwrap().iter().map(|a| a["mark"].as_u64().unwrap()).collect();
    assert!(marks.len() == 4 && marks.iter().all(|mark| (1..=9).contains(mark)), "{best}");
    let chosen = usize::try_from(best["best"].as_u64().unwrap()).unwrap();
    assert_eq!(marks.iter().position(|mark| mark == marks.iter().max().unwrap()), Some(chosen), "{best}");
    let texts: std::collections::BTreeSet<&str> =
        best["answers"].as_array().unwrap().iter().map(|a| a["text"].as_str().unwrap()).collect();
    assert!(texts.len() > 1, "they are drawn: {best}");
}
