//! Texts of prompts, in every format: replaces the words of the setting `words`.

use weir_sdk::{config, Action, Prompt, Request, Result};

pub fn handle(_request: &Request, prompt: &mut Prompt) -> Result<Action> {
    let words = config::get("words").unwrap_or_default();
    for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        for one in &mut prompt.texts {
            if one.text().contains(word) {
                let text = one.text().replace(word, "***");
                one.replace(text);
            }
        }
    }
    Ok(Action::pass())
}
