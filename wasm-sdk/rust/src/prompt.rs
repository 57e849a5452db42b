//! The texts of a request to a model, and what a handler puts in their place.

use crate::input::Input;
use crate::{Action, Result};
use serde::Deserialize;

#[derive(Deserialize)]
pub struct PromptText {
    /// Such as `user`, `assistant`, `system` or `tool`; none for descriptions of tools, inputs of embeddings and others.
    pub role: Option<String>,
    /// Where it is in the request to the worker, such as `messages.2.content.0.text`.
    pub place: String,
    text: String,
    #[serde(skip)]
    replacement: Option<String>,
}

impl PromptText {
    pub fn text(&self) -> &str {
        self.replacement.as_deref().unwrap_or(&self.text)
    }

    pub fn replace(&mut self, text: impl Into<String>) {
        self.replacement = Some(text.into());
    }
}

/// In the order of the request; each text of a role once.
pub struct Prompt {
    pub texts: Vec<PromptText>,
    /// The prompt is that of a question of a module, which may not ask again.
    pub is_question: bool,
}

impl Prompt {
    pub(crate) fn read(input: &Input) -> Result<Self> {
        Ok(Self { texts: serde_json::from_slice(input.body())?, is_question: input.prompt().is_question })
    }

    pub(crate) fn send(&self, action: Action) -> Result<()> {
        if !action.passes() {
            return action.send();
        }
        let list: Vec<_> = self.texts.iter().map(|one| &one.replacement).collect();
        if list.iter().all(|text| text.is_none()) {
            return Ok(());
        }
        Action::modify().text(&serde_json::to_string(&list)?).send()
    }
}
