//! Write modules for the gateway: a module looks at requests, answers, errors and stream events, and says what to do.
//!
//! ```ignore
//! use weir_sdk::{Action, Request, Result};
//!
//! fn handle(request: &Request) -> Result<Action> {
//!     Ok(match request.headers().get("x-api-key") {
//!         Some(_) => Action::pass(),
//!         None => Action::reject(401).text("a key is needed"),
//!     })
//! }
//!
//! weir_sdk::on_request!(handle);
//! ```
//!
//! An error that a handler returns fails the call; what that does to the request is said by `Description::fails_closed`.

mod action;
mod description;
mod exports;
mod headers;
mod host;
mod input;
mod kernel;
mod pick;
mod prompt;
mod stream;
mod text;
mod tool;

pub use action::Action;
pub use anyhow::Error;
pub use description::Description;
pub use exports::{run_error, run_pick, run_prompt_text, run_request, run_response, run_stream_event, run_text, run_tool_call};
pub use headers::Headers;
pub use host::{config, crypto, kv, log, metric, now_ms};
pub use input::{ErrorInfo, Fetched, Request, Response};
pub use pick::{Candidate, Load, Pick};
pub use prompt::{Prompt, PromptText};
pub use serde_json;
pub use stream::{StreamAction, StreamEvent};
pub use text::{TextAction, TextPiece};
pub use tool::{ToolAction, ToolCall};

/// Version of the interface that this crate speaks.
pub const ABI_VERSION: u32 = 1;

pub type Result<T> = std::result::Result<T, Error>;
