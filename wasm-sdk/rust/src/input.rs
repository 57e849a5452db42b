//! The input of one call: head and body are read when somebody asks for them.

use crate::kernel;
use crate::{Headers, Result};
use serde::Deserialize;
use std::cell::OnceCell;
use std::rc::Rc;

const FRAME_HEAD_BYTES: usize = 4;

#[derive(Deserialize)]
struct Head {
    now_ms: i64,
    request: RequestHead,
    response: Option<ResponseHead>,
    error: Option<ErrorInfo>,
    event: Option<EventHead>,
    text: Option<TextHead>,
    prompt: Option<PromptHead>,
    tool: Option<ToolHead>,
    pick: Option<crate::Pick>,
    fetched: Option<Fetched>,
    #[serde(default)]
    state: String,
}

#[derive(Deserialize)]
struct RequestHead {
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
struct ResponseHead {
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
pub(crate) struct TextHead {
    pub kind: String,
    pub choice: u64,
    pub call_id: Option<String>,
    pub call_name: Option<String>,
    pub is_last: bool,
}

#[derive(Deserialize)]
pub(crate) struct PromptHead {
    pub is_question: bool,
}

#[derive(Deserialize)]
pub(crate) struct ToolHead {
    pub kind: String,
    pub name: String,
    pub label: Option<String>,
    pub server: String,
    pub model: Option<String>,
}

/// What came of a fetch that the module asked for in the call before.
#[derive(Deserialize)]
pub struct Fetched {
    error: Option<String>,
    status: u16,
    #[serde(default)]
    headers: Headers,
    body_bytes: usize,
    #[serde(skip)]
    body: OnceCell<Vec<u8>>,
}

impl Fetched {
    /// None when there is an answer; otherwise `invalid`, `not_allowed`, `unreachable`, `timeout`, `too_large` or `busy`.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// 0 without an answer; a redirect is an answer as any other.
    pub fn status(&self) -> u16 {
        self.status
    }

    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// It lies behind the body of the request or answer.
    pub fn body(&self) -> &[u8] {
        self.body.get_or_init(|| {
            let end = unsafe { kernel::input_length() } as usize;
            read_input(end.saturating_sub(self.body_bytes), end)
        })
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

/// What a section that its phase has is missed with: the gateway always gives it.
const LACKS: &str = "the input lacks what this phase has";

pub(crate) struct Input {
    /// Where the head ends.
    body_start: usize,
    end: usize,
    head: OnceCell<Head>,
    body: OnceCell<Vec<u8>>,
}

impl Input {
    pub fn open() -> Result<Rc<Self>> {
        let end = unsafe { kernel::input_length() } as usize;
        if end < FRAME_HEAD_BYTES {
            return Err(crate::Error::msg("the input is no frame"));
        }
        let bytes = [0, 1, 2, 3].map(|at| unsafe { kernel::input_load_u8(at) });
        let length = u32::from_le_bytes(bytes) as usize;
        if length > end - FRAME_HEAD_BYTES {
            return Err(crate::Error::msg("the input is no frame"));
        }
        let body_start = FRAME_HEAD_BYTES + length;
        Ok(Rc::new(Self { body_start, end, head: OnceCell::new(), body: OnceCell::new() }))
    }

    fn head(&self) -> &Head {
        self.head.get_or_init(|| {
            let head = serde_json::from_slice(&read_input(FRAME_HEAD_BYTES, self.body_start));
            head.unwrap_or_else(|error| panic!("the head of the input cannot be read: {error}"))
        })
    }

    fn response(&self) -> &ResponseHead {
        self.head().response.as_ref().expect(LACKS)
    }

    pub fn error(&self) -> &ErrorInfo {
        self.head().error.as_ref().expect(LACKS)
    }

    pub fn event(&self) -> &EventHead {
        self.head().event.as_ref().expect(LACKS)
    }

    pub fn text(&self) -> &TextHead {
        self.head().text.as_ref().expect(LACKS)
    }

    pub fn prompt(&self) -> &PromptHead {
        self.head().prompt.as_ref().expect(LACKS)
    }

    pub fn tool(&self) -> &ToolHead {
        self.head().tool.as_ref().expect(LACKS)
    }

    pub fn pick(&self) -> &crate::Pick {
        self.head().pick.as_ref().expect(LACKS)
    }

    pub fn state(&self) -> &str {
        &self.head().state
    }

    /// Of a streamed answer, where the module needs them.
    pub fn response_headers(&self) -> Option<&Headers> {
        self.head().response.as_ref().map(|response| &response.headers)
    }

    /// Behind it lies what was fetched.
    pub fn body(&self) -> &[u8] {
        self.body.get_or_init(|| {
            let most = self.end - self.body_start;
            let fetched = self.head().fetched.as_ref().map_or(0, |fetched| fetched.body_bytes.min(most));
            read_input(self.body_start, self.end - fetched)
        })
    }

    /// Like `body`, of a stream or a text: there, the result of a fetch is the first member, so that other heads stay unread.
    pub fn rest(&self) -> &[u8] {
        if unsafe { kernel::input_load_u8(FRAME_HEAD_BYTES as u64 + 2) } == b'f' {
            return self.body();
        }
        self.body.get_or_init(|| read_input(self.body_start, self.end))
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
    pub(crate) input: Rc<Input>,
    /// The body of the input is the request's.
    pub(crate) has_body: bool,
}

impl Request {
    fn head(&self) -> &RequestHead {
        &self.input.head().request
    }

    pub fn id(&self) -> &str {
        &self.head().id
    }

    pub fn method(&self) -> &str {
        &self.head().method
    }

    pub fn path(&self) -> &str {
        &self.head().path
    }

    /// Without the question mark; empty when there is none.
    pub fn query(&self) -> &str {
        &self.head().query
    }

    /// Path as the route declares it, such as `/v1/responses/:response_id`.
    pub fn route(&self) -> &str {
        &self.head().route
    }

    /// None for callers without a key.
    pub fn tenant(&self) -> Option<&str> {
        self.head().tenant.as_deref()
    }

    pub fn client_ip(&self) -> &str {
        &self.head().client_ip
    }

    /// When the call began, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.input.head().now_ms
    }

    pub fn headers(&self) -> &Headers {
        &self.head().headers
    }

    /// What came of the fetch that the module asked for; none when it has not asked yet.
    pub fn fetched(&self) -> Option<&Fetched> {
        self.input.head().fetched.as_ref()
    }

    /// What was kept with the fetch; empty before.
    pub fn state(&self) -> &str {
        self.input.state()
    }

    /// Body in the request phase; empty unless `describe` says that the module needs it.
    pub fn body(&self) -> &[u8] {
        if self.has_body {
            self.input.body()
        } else {
            &[]
        }
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(self.body())?)
    }
}

/// The answer as a module sees it, in the response and error phases.
pub struct Response {
    pub(crate) input: Rc<Input>,
}

impl Response {
    pub fn status(&self) -> u16 {
        self.input.response().status
    }

    pub fn headers(&self) -> &Headers {
        &self.input.response().headers
    }

    /// True when the answer is an event stream; its body is not given.
    pub fn is_stream(&self) -> bool {
        self.input.response().is_stream
    }

    /// Body of an unstreamed answer; empty unless `describe` says that the module needs it.
    pub fn body(&self) -> &[u8] {
        self.input.body()
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(self.body())?)
    }
}
