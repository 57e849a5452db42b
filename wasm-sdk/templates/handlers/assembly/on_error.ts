/** Errors of the gateway and of engines: adds the error code and a contact. */
import { Action, config, handleError } from 'weir-gateway/wasm-sdk/assembly'

export function on_error(): i32 {
  return handleError((request, response, error) => {
    return Action.modify().setHeader('x-error-code', error.code).setHeader('x-support', config.text('support', 'none'))
  })
}
