/* Texts of answers, in every format: replaces the words of the setting `words`, also those that are split between pieces. */
WEIR_EXPORT(on_text) {
  weir_slice text = weir_input_body();
  weir_slice words = weir_config("words", "");
  weir_slice word;
  for (weir_slice rest = words; weir_next_part(&rest, &word);) text = weir_replace(text, word, weir_text("***"));
  size_t held = 0;
  if (!weir_is_true(weir_find(weir_head(), "text.is_last"))) {
    for (weir_slice rest = words; weir_next_part(&rest, &word);) {
      size_t length = weir_beginning_at_end(text, word);
      if (length > held) held = length;
    }
  }
  return weir_pass_text(text, held);
}
