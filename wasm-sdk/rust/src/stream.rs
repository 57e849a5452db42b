//! One server-sent event of a streamed answer, and what goes on in its place.

use crate::host::output_frame;
use crate::input::Input;
use crate::{Headers, Result};
use serde::Serialize;
use std::rc::Rc;

pub struct StreamEvent {
    pub(crate) input: Rc<Input>,
}

impl StreamEvent {
    /// 0-based in the stream.
    pub fn index(&self) -> u64 {
        self.input.event().index
    }

    /// Value of the `event:` field.
    pub fn name(&self) -> Option<&str> {
        self.input.event().name.as_deref()
    }

    /// The stream has ended: there is no data, but events may still be added.
    pub fn is_end(&self) -> bool {
        self.input.event().is_end
    }

    /// What the action of the event before kept; empty at first.
    pub fn state(&self) -> &str {
        self.input.state()
    }

    pub fn data(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.input.rest())
    }

    /// The data as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        Ok(serde_json::from_slice(self.input.rest())?)
    }

    /// Headers of the answer, where the module needs them.
    pub fn response_headers(&self) -> Option<&Headers> {
        self.input.response_headers()
    }
}

#[derive(Serialize)]
struct OutgoingEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Of the body.
    data_bytes: usize,
}

#[derive(Serialize, Default)]
pub struct StreamAction {
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<OutgoingEvent>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// Data of the events, one behind the other.
    #[serde(skip)]
    body: Vec<u8>,
    #[serde(skip)]
    fetch: Option<crate::Action>,
}

impl StreamAction {
    /// The event goes on byte for byte.
    pub fn pass() -> Self {
        Self::default()
    }

    /// Fetches first, see `Action::fetch`: the handler is called again with the same event. `keep` of the action sets `state()`.
    pub fn fetch(action: crate::Action) -> Self {
        Self { fetch: Some(action), ..Self::default() }
    }

    /// The event does not go on; `emit` may put others in its place.
    pub fn discard() -> Self {
        Self { events: Some(Vec::new()), ..Self::default() }
    }

    /// Sends an event in place of the one that came; call it again for more.
    pub fn emit(mut self, name: Option<&str>, data: impl AsRef<str>) -> Self {
        let data = data.as_ref().as_bytes();
        let event = OutgoingEvent { name: name.map(str::to_owned), data_bytes: data.len() };
        self.events.get_or_insert_with(Vec::new).push(event);
        self.body.extend_from_slice(data);
        self
    }

    /// Text that the next call of this stream finds in `state()`, 64 KiB at most; without it the text stays.
    pub fn keep(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    pub(crate) fn send(&self) -> Result<()> {
        if let Some(fetch) = &self.fetch {
            return fetch.send();
        }
        if self.events.is_none() && self.state.is_none() {
            return Ok(());
        }
        output_frame(self, &self.body)
    }
}
