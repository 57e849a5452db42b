//! Errors of the gateway and of engines: adds the error code and a contact.

use weir_sdk::{config, Action, ErrorInfo, Request, Response, Result};

pub fn handle(_request: &Request, _response: &Response, error: &ErrorInfo) -> Result<Action> {
    let support = config::get("support").unwrap_or("none".into());
    Ok(Action::modify().set_header("x-error-code", error.code.as_str()).set_header("x-support", support))
}
