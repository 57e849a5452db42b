//! Tool calls: rejects those of the tool that the setting `forbidden` names.

use weir_sdk::{config, Request, Result, ToolAction, ToolCall};

pub fn handle(_request: &Request, call: &ToolCall) -> Result<ToolAction> {
    let forbidden = config::get("forbidden").unwrap_or("delete".into());
    if call.name() != forbidden {
        return Ok(ToolAction::pass());
    }
    Ok(ToolAction::reject(format!("the tool {} may not be used here", call.name())))
}
