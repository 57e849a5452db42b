//! Responses that are not streams: reports failures of engines as overload, which clients retry.

use weir_sdk::{Action, Request, Response, Result};

pub fn handle(_request: &Request, response: &Response) -> Result<Action> {
    if response.status() != 500 {
        return Ok(Action::pass());
    }
    Ok(Action::modify().status(503).set_header("retry-after", "1"))
}
