/** Requires a team of every request, and passes its trimmed name on to the worker. */
import { Action, config, Description, handleRequest, JsonWriter } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders(['x-team']).reusesInstance().send()
}

export function on_request(): i32 {
  return handleRequest((request) => {
    const team = request.headers.get('x-team')
    if (team !== null) return Action.modify().setHeader('x-team', team.trim())
    const message = config.text('message', 'the header x-team is missing')
    const body = new JsonWriter().beginObject().key('error').beginObject().key('message').text(message)
    return Action.reject(400).withJson(body.endObject().endObject())
  })
}
