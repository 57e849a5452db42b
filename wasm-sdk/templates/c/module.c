/* Requires a team of every request, and passes its trimmed name on to the worker. */
#include "weir_head.h"

WEIR_EXPORT(describe) {
  weir_describe("{\"abi\":1,\"needs\":{\"headers\":[\"x-team\"],\"response_headers\":false}}");
  return 0;
}

WEIR_EXPORT(on_request) {
  weir_slice team = weir_header(weir_find(weir_head(), "request.headers"), "x-team");
  if (team.data != 0) {
    weir_action action = weir_modify();
    weir_set_header(&action, "x-team", weir_trim(team));
    return weir_send(action);
  }
  weir_slice message = weir_quote(weir_config("message", "the header x-team is missing"));
  weir_action action = weir_reject(400);
  weir_set_header(&action, "content-type", weir_text("application/json"));
  weir_set_body(&action, weir_concat(weir_concat(weir_text("{\"error\":{\"message\":"), message), weir_text("}}")));
  return weir_send(action);
}
