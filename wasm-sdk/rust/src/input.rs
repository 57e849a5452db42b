//! The input of one call: the head is read at once, the body when somebody asks for it.

use crate::kernel;
use crate::{Headers, Result};
use serde::Deserialize;
use std::cell::OnceCell;

const FRAME_HEAD_BYTES: usize = 4;

#[derive(Deserialize)]
pub(crate) struct Head {
    pub now_ms: i64,
    pub request: RequestHead,
    pub response: Option<ResponseHead>,
    pub error: Option<ErrorInfo>,
    pub event: Option<EventHead>,
    pub tool: Option<ToolHead>,
    pub pick: Option<crate::Pick>,
    pub fetched: Option<FetchedHead>,
    #[serde(default)]
    pub state: String,
}

#[derive(Deserialize)]
pub(crate) struct RequestHead {
    id: String,
    method: String,
    path: String,
    query: String,
    route: String,
    tenant: Option<String>,
    client_ip: String,
    #[serde(default)]
    headers: Headers,
}

#[derive(Deserialize)]
pub(crate) struct ResponseHead {
    status: u16,
    #[serde(default)]
    headers: Headers,
    is_stream: bool,
}

#[derive(Deserialize)]
pub(crate) struct EventHead {
    pub index: u64,
    pub name: Option<String>,
    pub is_end: bool,
}

#[derive(Deserialize)]
pub(crate) struct ToolHead {
    pub kind: String,
    pub name: String,
    pub label: Option<String>,
    pub server: String,
    pub model: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct FetchedHead {
    error: Option<String>,
    status: u16,
    #[serde(default)]
    headers: Headers,
    body_bytes: usize,
}

/// What came of a fetch that the module asked for in the call before.
pub struct Fetched {
    head: FetchedHead,
    body: Body,
}

impl Fetched {
    /// None when there is an answer; otherwise `invalid`, `not_allowed`, `unreachable`, `timeout`, `too_large` or `busy`.
    pub fn error(&self) -> Option<&str> {
        self.head.error.as_deref()
    }

    /// 0 without an answer; a redirect is an answer as any other.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    pub fn headers(&self) -> &Headers {
        &self.head.headers
    }

    pub fn body(&self) -> &[u8] {
        self.body.bytes()
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(self.body())?)
    }
}

/// What went wrong, in the error phase.
#[derive(Deserialize)]
pub struct ErrorInfo {
    /// What is wrong, such as `no_healthy_worker`.
    pub code: String,
    pub message: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub status: u16,
}

pub(crate) struct Input;

/// Bytes of the input behind the head.
pub(crate) struct Body {
    start: usize,
    end: usize,
    bytes: OnceCell<Vec<u8>>,
}

impl Input {
    pub fn read() -> Result<(Head, Body)> {
        let end = unsafe { kernel::input_length() } as usize;
        if end < FRAME_HEAD_BYTES {
            return Err(crate::Error::msg("the input is no frame"));
        }
        let length = read_input(0, FRAME_HEAD_BYTES);
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        if length > end - FRAME_HEAD_BYTES {
            return Err(crate::Error::msg("the input is no frame"));
        }
        let start = FRAME_HEAD_BYTES + length;
        let head: Head = serde_json::from_slice(&read_input(FRAME_HEAD_BYTES, start))?;
        // What was fetched is behind the body.
        let end = end - head.fetched.as_ref().map_or(0, |fetched| fetched.body_bytes.min(end - start));
        Ok((head, Body { start, end, bytes: OnceCell::new() }))
    }
}

impl FetchedHead {
    pub fn with_body(self) -> Fetched {
        let end = unsafe { kernel::input_length() } as usize;
        let start = end.saturating_sub(self.body_bytes);
        Fetched { head: self, body: Body { start, end, bytes: OnceCell::new() } }
    }
}

impl Body {
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get_or_init(|| read_input(self.start, self.end))
    }
}

fn read_input(from: usize, to: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(to - from);
    let mut at = from;
    while at + 8 <= to {
        bytes.extend_from_slice(&unsafe { kernel::input_load_u64(at as u64) }.to_le_bytes());
        at += 8;
    }
    while at < to {
        bytes.push(unsafe { kernel::input_load_u8(at as u64) });
        at += 1;
    }
    bytes
}

/// The request as a module sees it.
pub struct Request {
    pub(crate) head: RequestHead,
    pub(crate) body: Option<Body>,
    pub(crate) now_ms: i64,
    pub(crate) fetched: Option<Fetched>,
    pub(crate) state: String,
}

impl Request {
    pub fn id(&self) -> &str {
        &self.head.id
    }

    pub fn method(&self) -> &str {
        &self.head.method
    }

    pub fn path(&self) -> &str {
        &self.head.path
    }

    /// Without the question mark; empty when there is none.
    pub fn query(&self) -> &str {
        &self.head.query
    }

    /// Path as the route declares it, such as `/v1/responses/:response_id`.
    pub fn route(&self) -> &str {
        &self.head.route
    }

    /// None for callers without a key.
    pub fn tenant(&self) -> Option<&str> {
        self.head.tenant.as_deref()
    }

    pub fn client_ip(&self) -> &str {
        &self.head.client_ip
    }

    /// When the call began, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    pub fn headers(&self) -> &Headers {
        &self.head.headers
    }

    /// What came of the fetch that the module asked for; none when it has not asked yet.
    pub fn fetched(&self) -> Option<&Fetched> {
        self.fetched.as_ref()
    }

    /// What was kept with the fetch; empty before.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Body in the request phase; empty unless `describe` says that the module needs it.
    pub fn body(&self) -> &[u8] {
        self.body.as_ref().map_or(&[], Body::bytes)
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(self.body())?)
    }
}

impl ResponseHead {
    pub fn headers(&self) -> &Headers {
        &self.headers
    }
}

/// The answer as a module sees it, in the response and error phases.
pub struct Response {
    pub(crate) head: ResponseHead,
    pub(crate) body: Body,
}

impl Response {
    pub fn status(&self) -> u16 {
        self.head.status
    }

    pub fn headers(&self) -> &Headers {
        &self.head.headers
    }

    /// True when the answer is an event stream; its body is not given.
    pub fn is_stream(&self) -> bool {
        self.head.is_stream
    }

    /// Body of an unstreamed answer; empty unless `describe` says that the module needs it.
    pub fn body(&self) -> &[u8] {
        self.body.bytes()
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(self.body())?)
    }
}
