/* What the module needs, and its handlers. */
#include "weir_head.h"

WEIR_EXPORT(describe) {
  weir_describe("{\"abi\":1,\"needs\":{\"headers\":[],\"response_headers\":false}}");
  return 0;
}
