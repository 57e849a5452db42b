//! Texts of answers, in every format: replaces the words of the setting `words`, also those that are split between pieces.

use weir_sdk::{config, Request, Result, TextAction, TextPiece};

pub fn handle(_request: &Request, piece: &TextPiece) -> Result<TextAction> {
    let words = config::get("words").unwrap_or_default();
    let words: Vec<&str> = words.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let mut text = piece.text().into_owned();
    for word in &words {
        text = text.replace(word, "***");
    }
    let held = if piece.is_last() { 0 } else { beginning_at_end(&text, &words) };
    let rest = text.split_off(text.len() - held);
    Ok(TextAction::pass(text).hold(&rest))
}

/// Length of the longest end of the text that a word begins with, bytes.
fn beginning_at_end(text: &str, words: &[&str]) -> usize {
    let ends = text.char_indices().map(|(at, _)| &text[at..]);
    ends.filter(|end| words.iter().any(|word| word.starts_with(end))).map(str::len).max().unwrap_or(0)
}
