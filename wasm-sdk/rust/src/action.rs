//! What a handler answers with: go on, reject, or modify.

use crate::host::output_frame;
use serde::Serialize;

#[derive(Serialize)]
pub struct Action {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers_set: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers_add: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers_remove: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replaces_body: bool,
    #[serde(skip)]
    body: Vec<u8>,
}

impl Action {
    /// Goes on with everything as it is.
    pub fn pass() -> Self {
        Self::new("continue")
    }

    /// Answers at once; no later module and no handler sees the request.
    pub fn reject(status: u16) -> Self {
        Self::new("reject").status(status)
    }

    /// Goes on with what is changed by the calls that follow.
    pub fn modify() -> Self {
        Self::new("modify")
    }

    /// In the request phase a modification has no status: it is ignored.
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Replaces every value of a name.
    pub fn set_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let pair = (name.into(), value.into());
        if self.action == "reject" { &mut self.headers } else { &mut self.headers_set }.push(pair);
        self
    }

    /// Adds a value beside those that are there.
    pub fn add_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let pair = (name.into(), value.into());
        if self.action == "reject" { &mut self.headers } else { &mut self.headers_add }.push(pair);
        self
    }

    pub fn remove_header(mut self, name: impl Into<String>) -> Self {
        self.headers_remove.push(name.into());
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.replaces_body = self.action == "modify";
        self
    }

    pub fn text(self, text: &str) -> Self {
        self.body(text)
    }

    /// A JSON body and its content type.
    pub fn json(self, value: &serde_json::Value) -> Self {
        self.set_header("content-type", "application/json").body(value.to_string())
    }

    pub(crate) fn send(&self) -> crate::Result<()> {
        if self.action == "continue" {
            return Ok(());
        }
        output_frame(self, &self.body)
    }

    fn new(action: &'static str) -> Self {
        Self {
            action,
            status: None,
            headers: Vec::new(),
            headers_set: Vec::new(),
            headers_add: Vec::new(),
            headers_remove: Vec::new(),
            replaces_body: false,
            body: Vec::new(),
        }
    }
}
