/* Texts of prompts, in every format: replaces the words of the setting `words`. */
WEIR_EXPORT(on_prompt_text) {
  weir_slice words = weir_config("words", "");
  weir_slice word;
  weir_slice list = weir_text("[");
  bool is_first = true;
  for (weir_json entry = weir_first(weir_parse(weir_input_body())); entry.at != 0; entry = weir_next(entry)) {
    weir_slice given = weir_string(weir_find(entry, "text"));
    weir_slice text = given;
    for (weir_slice rest = words; weir_next_part(&rest, &word);) text = weir_replace(text, word, weir_text("***"));
    if (!is_first) list = weir_concat(list, weir_text(","));
    is_first = false;
    // A text that stays is null.
    list = weir_concat(list, weir_equal(given, text) ? weir_text("null") : weir_quote(text));
  }
  weir_action action = weir_modify();
  weir_set_body(&action, weir_concat(list, weir_text("]")));
  return weir_send(action);
}
