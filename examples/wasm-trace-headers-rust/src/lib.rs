//! Gives each request a W3C trace context, and tells the client which trace its answer belongs to.

use weir_sdk::{crypto, Action, Description, Request, Response, Result};

weir_sdk::describe!(Description::new()
    .needs_headers(&["traceparent"])
    .needs_response_headers(&[])
    .reuses_instance());
weir_sdk::on_request!(on_request_handler);
weir_sdk::on_response!(on_response_handler);

fn on_request_handler(request: &Request) -> Result<Action> {
    let span_id = to_hex(&crypto::random_bytes(8)?);
    Ok(Action::modify()
        .set_header("traceparent", format!("00-{}-{span_id}-01", trace_id_of(request)))
        .set_header("x-weir-route", request.route()))
}

fn on_response_handler(request: &Request, _response: &Response) -> Result<Action> {
    Ok(Action::modify().set_header("x-trace-id", trace_id_of(request)))
}

/// The caller's trace, or one made of the request's id: nothing has to be kept from one phase to the next.
fn trace_id_of(request: &Request) -> String {
    match request.headers().get("traceparent").and_then(given_trace_id) {
        Some(id) => id.to_owned(),
        None => to_hex(&crypto::sha256(request.id().as_bytes())[..16]),
    }
}

/// The trace id of a version 00 header (W3C Trace Context 3.2.2), unless it is malformed or all zero.
fn given_trace_id(header: &str) -> Option<&str> {
    let (id, rest) = header.strip_prefix("00-")?.split_at_checked(32)?;
    let is_hex = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_zero = id.bytes().all(|byte| byte == b'0');
    (header.len() == 55 && rest.starts_with('-') && is_hex && !is_zero).then_some(id)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
