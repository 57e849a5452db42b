/* Events of streamed responses: drops those with the name of the setting `drop`. */
WEIR_EXPORT(on_stream_event) {
  weir_slice name = weir_string(weir_find(weir_head(), "event.name"));
  if (!weir_equal(name, weir_config("drop", "ping"))) return 0;
  return weir_send_events(weir_drop_event());
}
