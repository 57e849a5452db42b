/* Responses that are not streams: reports failures of engines as overload, which clients retry. */
WEIR_EXPORT(on_response) {
  if (weir_integer(weir_find(weir_head(), "response.status"), 0) != 500) return 0;
  weir_action action = weir_modify();
  action.status = 503;
  weir_set_header(&action, "retry-after", weir_text("1"));
  return weir_send(action);
}
