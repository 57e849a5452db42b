/** Responses that are not streams: reports failures of engines as overload, which clients retry. */
import { Action, handleResponse } from 'weir-gateway/wasm-sdk/assembly'

export function on_response(): i32 {
  return handleResponse((request, response) => {
    if (response.status != 500) return Action.pass()
    return Action.modify().withStatus(503).setHeader('retry-after', '1')
  })
}
