//! The parts that both shapes of an answer are written of.

use super::answer::FINGERPRINT;
use crate::json;
use crate::turn::Running;

/// Appends the first fields of an object, with its opening brace.
pub(super) fn head<T, B>(running: &Running<T, B>, id: &str, object: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":");
    json::string(id, out);
    out.extend_from_slice(b",\"object\":");
    json::string(object, out);
    out.extend_from_slice(format!(",\"created\":{},\"model\":", running.created).as_bytes());
    json::string(&running.model, out);
    out.extend_from_slice(b",\"system_fingerprint\":");
    json::string(FINGERPRINT, out);
}

/// Appends the beginning of a call, without its closing quote and braces: what is
/// its arguments is still to come.
pub(super) fn call(id: &str, name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"id\":");
    json::string(id, out);
    out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
    json::string(name, out);
    out.extend_from_slice(b",\"arguments\":\"");
}

/// Appends `"tool_call_errors":[…]`, an addition of ours.
pub(super) fn errors(errors: &[String], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"tool_call_errors\":[");
    for (index, error) in errors.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::string(error, out);
    }
    out.push(b']');
}
