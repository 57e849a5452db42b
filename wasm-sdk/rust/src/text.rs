//! One piece of a text of an answer, and what is passed on in its place.

use crate::host::output_frame;
use crate::input::Input;
use crate::Result;
use serde::Serialize;
use std::borrow::Cow;
use std::rc::Rc;

pub struct TextPiece {
    pub(crate) input: Rc<Input>,
}

impl TextPiece {
    /// What the last call of this text held back, followed by the new text. Tool arguments are JSON text as the model wrote it.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.input.rest())
    }

    /// `text`, `reasoning`, `refusal`, `tool_arguments`, `tool_output` or `citation`.
    pub fn kind(&self) -> &str {
        &self.input.text().kind
    }

    /// Index of the choice, 0-based.
    pub fn choice(&self) -> u64 {
        self.input.text().choice
    }

    /// Id of the call that arguments or output belong to.
    pub fn call_id(&self) -> Option<&str> {
        self.input.text().call_id.as_deref()
    }

    /// Name of the called tool.
    pub fn call_name(&self) -> Option<&str> {
        self.input.text().call_name.as_deref()
    }

    /// The text ends with this piece: nothing can be held back.
    pub fn is_last(&self) -> bool {
        self.input.text().is_last
    }
}

#[derive(Serialize)]
pub struct TextAction {
    held_bytes: usize,
    /// The text that is passed on, and the held-back text behind it; none passes the whole text on.
    #[serde(skip)]
    body: Option<Vec<u8>>,
    #[serde(skip)]
    fetch: Option<crate::Action>,
}

impl TextAction {
    /// Passes the whole text on unchanged.
    pub fn unchanged() -> Self {
        Self { held_bytes: 0, body: None, fetch: None }
    }

    /// Passes a text on in place of the piece's text.
    pub fn pass(text: impl Into<String>) -> Self {
        Self { body: Some(text.into().into_bytes()), ..Self::unchanged() }
    }

    /// Text of at most 64 KiB that the next piece of this text begins with.
    pub fn hold(mut self, held: &str) -> Self {
        self.held_bytes = held.len();
        self.body.get_or_insert_default().extend_from_slice(held.as_bytes());
        self
    }

    /// Fetches before the text is passed on, see `Action::fetch`: the handler is called again with the same text.
    pub fn fetch(action: crate::Action) -> Self {
        Self { fetch: Some(action), ..Self::unchanged() }
    }

    pub(crate) fn send(&self) -> Result<()> {
        if let Some(fetch) = &self.fetch {
            return fetch.send();
        }
        match &self.body {
            None => Ok(()),
            Some(body) => output_frame(self, body),
        }
    }
}
