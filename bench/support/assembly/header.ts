/** Adds one header to a request: the minimum that a module can do. */
import { Action, Description, handleRequest, Request } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders([]).needsNoClientIp().send()
}

export function on_request(): i32 {
  return handleRequest((_request: Request): Action => Action.modify().setHeader('x-bench', 'yes'))
}
