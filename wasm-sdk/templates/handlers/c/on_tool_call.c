/* Tool calls: rejects those of the tool that the setting `forbidden` names. */
WEIR_EXPORT(on_tool_call) {
  weir_slice name = weir_string(weir_find(weir_head(), "tool.name"));
  if (!weir_equal(name, weir_config("forbidden", "delete"))) return 0;
  weir_action action = weir_reject(0);
  weir_set_body(&action, weir_concat(weir_concat(weir_text("the tool "), name), weir_text(" may not be used here")));
  return weir_send(action);
}
