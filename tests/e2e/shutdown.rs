//! Ending in good order.

use nala_e2e::chat;
use nala_e2e::host::Host;
use nala_e2e::raw::Raw;

#[test]
fn a_running_stream_is_finished_and_new_ones_are_refused() {
    let host = Host::up();
    let mut request = chat::request("Write a short story about a dog.", 60);
    request["stream"] = true.into();
    let mut raw = Raw::post(&host.address, "/v1/chat/completions", &request.to_string());
    raw.read_until("content\":\"");
    host.terminate();
    let address = host.address.clone();
    let rest = raw.read_until("data: [DONE]");
    assert!(rest.contains("finish_reason\":\""), "{rest}");
    let status = host.wait();
    assert!(status.success(), "{status}");
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens any more");
}
