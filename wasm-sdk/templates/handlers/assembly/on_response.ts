/** Answers that are no stream: overloaded engines are reported as such. */
import { Action, handleResponse } from 'weir-gateway/wasm-sdk/assembly'

export function on_response(): i32 {
  return handleResponse((request, response) => {
    if (response.status != 500) return Action.pass()
    return Action.modify().withStatus(503).setHeader('retry-after', '1')
  })
}
