//! The call of a tool that the gateway is about to run, and what becomes of it.

use crate::host::output_frame;
use crate::input::Input;
use crate::Result;
use serde::Serialize;
use std::rc::Rc;

pub struct ToolCall {
    pub(crate) input: Rc<Input>,
}

impl ToolCall {
    /// As its server knows it; the type of a built-in tool.
    pub fn name(&self) -> &str {
        &self.input.tool().name
    }

    /// Whether the model asks for a tool of a kind that the operator has mapped onto a server.
    pub fn is_built_in(&self) -> bool {
        self.input.tool().kind == "built_in"
    }

    /// Of the server in the request; none for built-in tools.
    pub fn label(&self) -> Option<&str> {
        self.input.tool().label.as_deref()
    }

    /// Address of the server, or its label again where it stands in the configuration.
    pub fn server(&self) -> &str {
        &self.input.tool().server
    }

    /// None where the request names none.
    pub fn model(&self) -> Option<&str> {
        self.input.tool().model.as_deref()
    }

    /// The arguments, a JSON object, as text.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.input.body())
    }

    /// The arguments.
    pub fn arguments(&self) -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(self.input.body())?)
    }
}

#[derive(Serialize)]
pub struct ToolAction {
    #[serde(skip)]
    fetch: Option<crate::Action>,
    action: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replaces_body: bool,
    #[serde(skip)]
    body: Vec<u8>,
}

impl ToolAction {
    /// The tool runs as the model asked.
    pub fn pass() -> Self {
        Self { fetch: None, action: "continue", replaces_body: false, body: Vec::new() }
    }

    /// The tool does not run; the model reads the text in place of a result.
    pub fn reject(text: impl Into<String>) -> Self {
        Self { fetch: None, action: "reject", replaces_body: false, body: text.into().into_bytes() }
    }

    /// The tool runs with these arguments, a JSON object; the client is shown what the model wrote.
    pub fn with_arguments(arguments: &serde_json::Value) -> Self {
        Self { fetch: None, action: "modify", replaces_body: true, body: arguments.to_string().into_bytes() }
    }

    /// Fetches something before it decides, see `Action::fetch`: the handler is called again.
    pub fn fetch(action: crate::Action) -> Self {
        Self { fetch: Some(action), ..Self::pass() }
    }

    pub(crate) fn send(&self) -> Result<()> {
        if let Some(fetch) = &self.fetch {
            return fetch.send();
        }
        if self.action == "continue" {
            return Ok(());
        }
        output_frame(self, &self.body)
    }
}
