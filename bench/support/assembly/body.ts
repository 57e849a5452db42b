/** Reads a request body and replaces it with the same bytes: the cost of both copies and of one pass. */
import { Action, Description, handleRequest, Request } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders([]).needsRequestBody().send()
}

export function on_request(): i32 {
  return handleRequest((request: Request): Action => {
    const body = request.body
    let braces = 0
    for (let i = 0; i < body.length; i++) if (body[i] == 0x7b) braces++
    return braces == 0 ? Action.reject(400) : Action.modify().withBody(body)
  })
}
