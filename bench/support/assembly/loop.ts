/** Never ends for requests with the header `x-bench-loop`; passes all others. */
import { Action, Description, handleRequest, Request } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders(['x-bench-loop']).send()
}

export function on_request(): i32 {
  return handleRequest((request: Request): Action => {
    let turns = 0
    if (request.headers.has('x-bench-loop')) while (turns >= 0) turns = (turns + 1) & 0xff
    return Action.pass()
  })
}
