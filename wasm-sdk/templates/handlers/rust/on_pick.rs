//! Choice of a worker: the one with the fewest requests in the zone of the setting `zone`.

use weir_sdk::{config, Pick, Request, Result};

pub fn handle(_request: &Request, pick: &Pick) -> Result<Option<usize>> {
    let zone = config::get("zone").unwrap_or("local".into());
    let here = pick.candidates.iter().enumerate().filter(|(_, one)| one.labels.get("zone") == Some(&zone));
    Ok(here.min_by_key(|(_, one)| one.in_flight).map(|(place, _)| place))
}
