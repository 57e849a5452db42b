/** Takes e-mail addresses, card numbers and telephone numbers out of prompts before a worker sees them. */
import { Action, Description, handleRequest, JsonWriter, metric } from 'weir-gateway/wasm-sdk/assembly'
import { PromptRedaction } from './prompt-redaction'

export function describe(): i32 {
  return new Description().needsHeaders([]).needsRequestBody().failsClosed().send()
}

export function on_request(): i32 {
  return handleRequest((request) => {
    const body = request.json()
    // What cannot be read may hold anything. To fail would be wrong: who sends such bodies could suspend the module.
    if (body === null) return request.body.length == 0 ? Action.pass() : unreadable()
    // Of what is no object the gateway makes nothing.
    if (!body.isObject) return Action.pass()
    const redaction = new PromptRedaction(body)
    if (redaction.count == 0) return Action.pass()
    metric.increment('redactions_total', redaction.count)
    return Action.modify().withBody(redaction.toBytes())
  })
}

function unreadable(): Action {
  const json = new JsonWriter().beginObject()
  json.key('error').beginObject()
  json.key('message').text('the body is no JSON, or is nested too deeply')
  json.key('type').text('invalid_request_error').endObject()
  return Action.reject(400).withJson(json.endObject())
}
