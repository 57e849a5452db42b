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
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
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

    /// Fetches something: the handler is called again and finds what came of it in `Request::fetched`. Headers and a
    /// body are those of the request that is sent. The operator lists where modules may fetch from.
    pub fn fetch(method: &str, url: impl Into<String>) -> Self {
        let mut action = Self::new("fetch");
        action.url = Some(url.into());
        action.method = Some(method.into());
        action
    }

    /// Asks a model: the handler is called again and finds the text of the answer in `Request::fetched`. The question is
    /// such as `json!({"messages": [{"role": "user", "content": "…"}], "max_tokens": 20})`. The operator lists the models.
    pub fn ask(model: &str, question: &serde_json::Value) -> Self {
        Self::fetch("POST", format!("model:{model}")).body(question.to_string())
    }

    /// Text that the handler finds in `Request::state` when it is called again, 64 KiB at most.
    pub fn keep(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// Of a fetch: shorter than what the gateway allows.
    pub fn within(mut self, timeout_ms: u32) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }

    /// In the request phase a modification has no status: it is ignored.
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Replaces every value of a name.
    pub fn set_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let pair = (name.into(), value.into());
        if self.action == "modify" { &mut self.headers_set } else { &mut self.headers }.push(pair);
        self
    }

    /// Adds a value beside those that are there.
    pub fn add_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let pair = (name.into(), value.into());
        if self.action == "modify" { &mut self.headers_add } else { &mut self.headers }.push(pair);
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

    pub(crate) fn passes(&self) -> bool {
        self.action == "continue"
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
            url: None,
            method: None,
            timeout_ms: None,
            state: None,
            body: Vec::new(),
        }
    }
}
