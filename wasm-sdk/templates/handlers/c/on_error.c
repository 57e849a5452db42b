/* Errors of the gateway and of engines: adds the error code and a contact. */
WEIR_EXPORT(on_error) {
  weir_action action = weir_modify();
  weir_set_header(&action, "x-error-code", weir_string(weir_find(weir_head(), "error.code")));
  weir_set_header(&action, "x-support", weir_config("support", "none"));
  return weir_send(action);
}
