//! Events of streamed responses: drops those with the name of the setting `drop`.

use weir_sdk::{config, Request, Result, StreamAction, StreamEvent};

pub fn handle(_request: &Request, event: &StreamEvent) -> Result<StreamAction> {
    let dropped = config::get("drop").unwrap_or("ping".into());
    Ok(match event.name() {
        Some(name) if name == dropped => StreamAction::discard(),
        _ => StreamAction::pass(),
    })
}
