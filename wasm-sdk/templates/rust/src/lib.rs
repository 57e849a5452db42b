//! Requires a team of every request, and passes its trimmed name on to the worker.

use weir_sdk::{config, serde_json::json, Action, Description, Request, Result};

weir_sdk::describe!(Description::new().needs_headers(&["x-team"]).reuses_instance());
weir_sdk::on_request!(handle_request);

fn handle_request(request: &Request) -> Result<Action> {
    if let Some(team) = request.headers().get("x-team") {
        return Ok(Action::modify().set_header("x-team", team.trim()));
    }
    let message = config::get("message").unwrap_or("the header x-team is missing".into());
    Ok(Action::reject(400).json(&json!({ "error": { "message": message } })))
}
