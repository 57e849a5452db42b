//! The choice of a worker for a request: who may take it, and what is known of them.

use crate::host::output_frame;
use crate::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What its engine has reported; a member is -1 when it is not told.
#[derive(Deserialize)]
pub struct Load {
    pub queued_tokens: f64,
    pub used_tokens: f64,
    /// Part of the KV memory in use, 0 to 1.
    pub kv_usage: f64,
    pub tokens_per_second: f64,
}

/// A worker that may take the request.
#[derive(Deserialize)]
pub struct Candidate {
    pub url: String,
    /// Of a target of a virtual model.
    #[serde(default)]
    pub model: Option<String>,
    /// Of a target of a virtual model.
    #[serde(default)]
    pub weight: Option<f64>,
    pub labels: BTreeMap<String, String>,
    /// Lower is better.
    pub cost: f64,
    /// Requests under way there, over all threads.
    pub in_flight: u32,
    /// None when there is nothing fresh.
    pub load: Option<Load>,
}

#[derive(Deserialize)]
pub struct Pick {
    pub model: String,
    /// `whole`, `prefill` or `decode`; `target` if the candidates are the targets of the virtual model `model`.
    pub leg: String,
    /// Of the request; the body itself is there where the module needs it and it is not too long.
    pub body_bytes: u64,
    pub candidates: Vec<Candidate>,
}

#[derive(Serialize)]
struct Choice {
    choice: usize,
}

/// None: the default policy chooses.
pub(crate) fn send_choice(choice: Option<usize>) -> Result<()> {
    match choice {
        Some(choice) => output_frame(&Choice { choice }, &[]),
        None => Ok(()),
    }
}
