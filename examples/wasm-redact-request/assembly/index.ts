/** Takes e-mail addresses, card numbers and telephone numbers out of prompts before a worker sees them. */
import { Action, Description, handleRequest, metric } from 'weir/wasm-sdk/assembly'
import { PromptRedaction } from './prompt-redaction'

export function describe(): i32 {
  return new Description().needsHeaders([]).needsRequestBody().failsClosed().send()
}

export function on_request(): i32 {
  return handleRequest((request) => {
    // What is no JSON is the gateway's to refuse.
    const body = request.json()
    if (body === null || !body.isObject) return Action.pass()
    const redaction = new PromptRedaction(body)
    if (redaction.count == 0) return Action.pass()
    metric.increment('redactions_total', redaction.count)
    return Action.modify().withBody(redaction.toBytes())
  })
}
