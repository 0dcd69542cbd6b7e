//! Tools, those that misbehave above all, and one that calls them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use nala_wasm::{Capabilities, Grant, Limits, LoadError, Runtime, RuntimeConfig, Source, Toolbox};

use crate::common::{Bench, guest, tight};

fn limits() -> Limits {
    Limits { call_bytes: 1 << 20, ..tight() }
}

fn toolbox(runtime: &Runtime, limits: Limits) -> Arc<Toolbox> {
    let compiled = runtime.compile("tools", Source::File(&guest("tools"))).unwrap();
    let capabilities =
        Capabilities { environment: [("OF".to_owned(), "tool".into())].into(), ..Capabilities::default() };
    let grant = Grant { limits, capabilities, ..Grant::default() };
    let provider = runtime.load_tools(&compiled, grant, None).unwrap();
    Arc::new(Toolbox::new(vec![Arc::new(provider)]).unwrap())
}

fn bench(of_tools: Limits) -> Bench {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let tools = toolbox(&runtime, of_tools);
    let capabilities =
        Capabilities { environment: [("OF".to_owned(), "caller".into())].into(), ..Capabilities::default() };
    Bench::granting(runtime, Grant { tools, capabilities, ..Grant::default() }, "caller")
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_and_called_each_time_in_an_instance_of_its_own() {
    let bench = bench(limits());
    let list = bench.text("/list").await;
    assert!(list.starts_with("Tool { name: \"echo\"") && list.lines().count() == 14, "{list}");
    let echo = bench.text("/call?echo&{%22a%22:%20[1,%202]}").await;
    assert!(
        echo.contains(
            r#"Ok(Answer { content: [Content::Text("{\"a\": [1, 2]}")], structured: None, is-error: false })"#
        ),
        "{echo}"
    );
    for _ in 0..3 {
        assert!(bench.text("/call?state").await.contains("Text(\"0\")"), "nothing is left of the call before");
    }
    // It has its own grant, and not its caller's.
    let environment = bench.text("/call?environment").await;
    assert!(environment.contains("tool") && !environment.contains("caller"), "{environment}");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_far_a_call_has_got_is_told_and_calls_go_on_together() {
    let bench = bench(limits());
    let events = bench.text("/events?progress").await;
    let lines: Vec<&str> = events.lines().collect();
    assert!(lines[0].contains("Progress") && lines[0].contains("part"), "{events}");
    assert!(lines[lines.len() - 2].contains("Answer") && lines[lines.len() - 1] == "end", "{events}");
    assert_eq!(bench.text("/both?progress").await, "2 answers");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_does_wrong_is_an_error_for_its_caller() {
    let (quick, slow) = (Limits { wall: Duration::from_secs(2), ..limits() }, limits());
    let (quick, slow) = (bench(quick), bench(slow));
    for (call, said) in [
        ("none", "UnknownTool(\"there is no tool \\\"none\\\"; there are echo"),
        ("echo&[]", "InvalidArguments(\"the arguments are no JSON object"),
        ("echo&{", "InvalidArguments(\"the arguments are no JSON:"),
        ("forever", "Limit(\"`forever` used up its CPU time (200ms)"),
        ("sleeps", "Limit(\"`sleeps` did not finish within its time (2s"),
        ("memory", "Limit(\"`memory` ran out of memory"),
        ("large", "call_bytes"),
        ("many-parts", "call_bytes"),
        ("no-json", "Failed(\"`no-json` answered something as JSON that is none"),
        ("promises", "Failed(\"`promises` promises a structured answer"),
        ("traps", "Failed(\"`traps` trapped: "),
        ("exits", "Failed(\"`exits` "),
        ("refuses", "InvalidArguments(\"not these\")"),
    ] {
        let begin = Instant::now();
        // On a busy machine the others may take longer than the one that only waits.
        let bench = if call == "sleeps" { &quick } else { &slow };
        let told = bench.text(&format!("/call?{call}")).await;
        assert!(told.starts_with("Err(Error::") && told.contains(said), "{call}: {told}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{call}: {:?}", begin.elapsed());
        let events = bench.text(&format!("/events?{call}")).await;
        assert!(events.contains(said), "{call}: {events}");
    }
    // And lives on.
    assert!(slow.text("/call?echo").await.contains("Ok("));
    slow.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_with_who_asked_for_it() {
    let bench = bench(Limits { wall: Duration::from_secs(60), cpu: Duration::from_secs(60), ..limits() });
    assert_eq!(bench.text("/drop?sleeps").await, "ready false");
    assert_eq!(bench.text("/drop?forever").await, "ready false");
    bench.until_empty().await;
    // The client hangs up while its guest waits for a tool.
    for tool in ["sleeps", "forever"] {
        let path = format!("/call?{tool}");
        let both = async {
            while bench.runtime.metrics().instances.get() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            text = bench.text(&path) => panic!("{tool}: {text}"),
            () = both => {}
        }
        bench.until_empty().await;
    }
    bench.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_have_the_time_of_their_caller_which_has_few_at_a_time() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let tools = toolbox(&runtime, limits());
    let of_caller = Limits { wall: Duration::from_secs(1), handles: 64, ..tight() };
    let bench = Bench::granting(runtime, Grant { tools, limits: of_caller, ..Grant::default() }, "caller");
    // It has less, so that the caller can say so.
    let late = bench.text("/call?sleeps").await;
    assert!(late.contains("Error::Limit") && late.contains("did not finish within its time"), "{late}");
    bench.until_empty().await;
    let many = bench.text("/many?sleeps").await;
    assert!(many.starts_with("16 and then Error::Busy(\"a request may have 16 calls"), "{many}");
    bench.until_empty().await;
}

#[test]
fn what_cannot_be_tools_is_refused_with_the_reason() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let compiled = runtime.compile("hello", Source::File(&guest("hello"))).unwrap();
    let error = runtime.load_tools(&compiled, Grant::default(), None).err().unwrap();
    assert!(matches!(error, LoadError::MissingExport { .. }) && error.to_string().contains("nala:tools/provider"));
    // Too little memory to tell what it has.
    let compiled = runtime.compile("tools", Source::File(&guest("tools"))).unwrap();
    let limits = Limits { memory_bytes: 64 << 10, ..tight() };
    let error = runtime.load_tools(&compiled, Grant { limits, ..Grant::default() }, None).err().unwrap();
    assert!(error.to_string().contains("does not tell its tools"), "{error}");
    let one = || Arc::new(runtime.load_tools(&compiled, Grant::default(), None).unwrap());
    let error = Toolbox::new(vec![one(), one()]).err().unwrap();
    assert!(error.to_string().contains("both have a tool named `echo`"), "{error}");
}
