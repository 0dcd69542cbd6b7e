//! From `wasi:http` to a handler and back.

use wasip2::http::types::{ErrorCode, Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam};

use super::response::Body;
use super::{BodyWriter, IntoResponse, Request, Response};
use crate::Error;

/// Runs a handler; what [`handler!`](crate::handler) exports.
pub fn serve<R: IntoResponse>(request: IncomingRequest, out: ResponseOutparam, handle: impl FnOnce(Request) -> R) {
    let response = handle(Request::incoming(request)).into_response();
    match send(response, out) {
        Ok(()) | Err(Error::Gone) => {}
        Err(error) => eprintln!("the response broke off: {error}"),
    }
}

fn send(response: Response, out: ResponseOutparam) -> Result<(), Error> {
    let (head, body) = match head(&response) {
        Ok(parts) => parts,
        Err(reason) => {
            eprintln!("the handler made a response that HTTP cannot carry: {reason}");
            ResponseOutparam::set(out, Err(ErrorCode::InternalError(Some(reason))));
            return Ok(());
        }
    };
    ResponseOutparam::set(out, Ok(head));
    let stream = body.write().map_err(|()| Error::Gone)?;
    let mut writer = BodyWriter::new(stream);
    match response.body {
        Body::Bytes(bytes) => writer.write(bytes)?,
        Body::Stream(write) => match write(&mut writer) {
            Err(error) if error != Error::Gone => break_off(&error),
            result => result?,
        },
    }
    // The stream is the body's child and has to go first.
    drop(writer);
    OutgoingBody::finish(body, None).map_err(|_| Error::Gone)
}

/// Ends the instance, so that the client does not take a part for the whole: a
/// body that is merely dropped would look finished.
fn break_off(error: &Error) -> ! {
    eprintln!("the response broke off: {error}");
    std::process::exit(1)
}

fn head(response: &Response) -> Result<(OutgoingResponse, OutgoingBody), String> {
    let fields = Fields::new();
    for (name, value) in &response.headers {
        fields.append(name, value.as_bytes()).map_err(|error| format!("header {name:?}: {error}"))?;
    }
    // A 204 has no body whose length could be told (RFC 9110, section 8.6).
    if let Body::Bytes(bytes) = &response.body
        && response.status != 204
    {
        fields
            .append("content-length", bytes.len().to_string().as_bytes())
            .map_err(|error| format!("header content-length: {error}"))?;
    }
    let head = OutgoingResponse::new(fields);
    head.set_status_code(response.status).map_err(|()| format!("{} is not a status", response.status))?;
    let body = head.body().map_err(|()| "the body was taken before".to_owned())?;
    Ok((head, body))
}
