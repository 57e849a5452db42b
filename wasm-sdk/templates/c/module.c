/* Answers every request at once while its setting `closed` says something. */
#include "weir.h"

WEIR_EXPORT(describe) {
  weir_describe("{\"abi\":1,\"needs\":{\"headers\":[]},\"on_failure\":\"closed\"}");
  return 0;
}

WEIR_EXPORT(on_request) {
  weir_slice text = weir_take_block(weir_config_get(weir_block(weir_text("closed"))));
  if (text.length > 0) weir_answer(weir_text("{\"action\":\"reject\",\"status\":503}"), text);
  return 0;
}
