//! What components are granted by values: environment, variables, clocks; and
//! that they are told so where they are not.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{Bench, guest};
use nala_wasm::{Capabilities, Clocks, Grant, Limits, Runtime, RuntimeConfig, Secret, Source};

fn secrets(values: &[(&str, &str)]) -> BTreeMap<String, Secret> {
    values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_granted_nothing_is_loaded_and_told_so() {
    let bench = Bench::granted(Capabilities::default());
    assert_eq!(bench.text("/environment").await, "[]");
    assert_eq!(bench.text("/variables").await, "Ok([]) Ok([])");
    let told = bench.text("/variable?token").await;
    assert!(told.starts_with(r#"Err(Error::Undefined("\"token\""#), "{told}");
    assert!(told.contains(r#"Err(Error::Provider("\"token\""#) && told.ends_with("Ok(None) Ok(None)"), "{told}");
    assert_eq!(bench.text("/files?folders").await, "[]");
    for path in ["/key-value?default", "/wasi-key-value?default"] {
        assert_eq!(bench.text(path).await, "Error::AccessDenied", "{path}");
    }
    assert_eq!(bench.text("/fetch?http://example.com/").await, "ErrorCode::HttpRequestDenied");
    let bench = Bench::granted_within(Limits::default(), Capabilities::default(), "capabilities_async");
    let told = bench.text("/variable?token").await;
    assert!(told.contains("Undefined"), "{told}");
    assert_eq!(bench.text("/key-value?default").await, "Error::AccessDenied");
    assert_eq!(bench.text("/fetch?http://example.com/").await, "ErrorCode::HttpRequestDenied");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_what_is_granted() {
    let environment = secrets(&[("MODE", "a=b"), ("TOKEN", "hunter2")]);
    let bench = Bench::granted(Capabilities { environment, ..Capabilities::default() });
    assert_eq!(bench.text("/environment").await, r#"[("MODE", "a=b"), ("TOKEN", "hunter2")]"#);
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let compiled = runtime.compile("caps", Source::File(&guest("capabilities"))).unwrap();
    let capabilities = Capabilities { environment: secrets(&[("A=B", "hunter2")]), ..Capabilities::default() };
    let error = runtime.load(&compiled, Grant { capabilities, ..Grant::default() }).err().unwrap().to_string();
    assert!(error.starts_with("caps: \"A=B\"") && !error.contains("hunter2"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_are_the_same_by_all_interfaces() {
    let capabilities = Capabilities { variables: secrets(&[("api_key", "s3cret")]), ..Capabilities::default() };
    let bench = Bench::granted(capabilities.clone());
    let told = bench.text("/variable?api_key").await;
    assert_eq!(told, r#"Ok("s3cret") Ok("s3cret") Ok(Some("s3cret")) Ok(Some("s3cret"))"#);
    let told = bench.text("/variable?API-KEY").await;
    assert!(told.starts_with("Err(Error::InvalidName(") && told.contains("Err(Error::InvalidKey("), "{told}");
    assert!(told.ends_with("Ok(None) Ok(None)"), "{told}");
    assert_eq!(bench.text("/variables").await, r#"Ok([("api_key", "s3cret")]) Ok([("api_key", "s3cret")])"#);
    let bench = Bench::granted_within(Limits::default(), capabilities, "capabilities_async");
    assert_eq!(bench.text("/variable?api_key").await, r#"Ok("s3cret")"#);
    assert!(bench.text("/variable?").await.contains("InvalidName"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_others_components_goes_by_grains() {
    let clocks = Clocks::Coarse(Duration::from_millis(5));
    let bench = Bench::granted(Capabilities { clocks, ..Capabilities::default() });
    let told = bench.text("/clock").await;
    assert!(told.starts_with("5000000 5000000 ") && told.ends_with(" true"), "{told}");
    let steps: Vec<u64> = told.split(' ').skip(2).take(2).map(|step| step.parse().unwrap()).collect();
    assert!(steps.iter().all(|step| step % 5_000_000 == 0), "{told}");
    // Eight waits end with eight grains, of which the first had begun.
    let waited = |text: String| text.parse::<u64>().unwrap();
    let nanoseconds = waited(bench.text("/waits?4").await);
    assert!(nanoseconds >= 8 * 5_000_000, "{nanoseconds}");
    let others = Bench::granted_within(
        Limits::default(),
        Capabilities { clocks, ..Capabilities::default() },
        "capabilities_async",
    );
    let nanoseconds = waited(others.text("/waits?4").await);
    assert!(nanoseconds >= 8 * 5_000_000, "{nanoseconds}");
    let exact = Bench::granted(Capabilities::default());
    let told = exact.text("/clock").await;
    let steps: Vec<u64> = told.split(' ').skip(2).take(2).map(|step| step.parse().unwrap()).collect();
    assert!(told.starts_with("1 1 ") && steps.iter().all(|step| *step < 1_000_000), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_are_denied_at_use() {
    let bench = Bench::granted(Capabilities::default());
    let told = bench.text("/sockets").await;
    assert_eq!(told, r#"Err("access-denied") Err("access-denied") Err("permanent-resolver-failure")"#);
    let bench = Bench::granted_within(Limits::default(), Capabilities::default(), "capabilities_async");
    assert_eq!(bench.text("/sockets").await, "Err(ErrorCode::AccessDenied)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_may_log_more_than_is_kept() {
    let bench = Bench::granted(Capabilities::default());
    assert_eq!(bench.text("/log?20000").await, "logged");
}
