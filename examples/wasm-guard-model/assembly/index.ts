/** Asks a guard model, such as Llama Guard, about each prompt and tool call, and rejects what it finds unsafe. */
import { Action, config, Description, Fetched, handleRequest, handleToolCall, JsonWriter, metric, ToolAction } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description()
    .needsHeaders([])
    .needsNoClientIp()
    .needsRequestBody()
    .failsClosed()
    .setting('model', 'text', true, 'The guard model, which answers safe or unsafe')
    .send()
}

export function on_request(): i32 {
  return handleRequest((request) => {
    if (request.method != 'POST') return Action.pass()
    const fetched = request.fetched
    if (fetched === null) return ask(request.text())
    const refusal = refusalOf(fetched)
    return refusal === null ? Action.pass() : rejection(fetched.status == 200 ? 400 : 503, refusal)
  })
}

export function on_tool_call(): i32 {
  return handleToolCall((request, call) => {
    const fetched = request.fetched
    if (fetched === null) return ToolAction.fetch(ask('Run the tool ' + call.name + ' with ' + call.text()))
    const refusal = refusalOf(fetched)
    return refusal === null ? ToolAction.pass() : ToolAction.reject(refusal)
  })
}

function ask(text: string): Action {
  const json = new JsonWriter().beginObject()
  json.key('messages').beginArray().beginObject()
  json.key('role').text('user')
  json.key('content').text(text).endObject().endArray()
  json.key('max_tokens').integer(20)
  return Action.ask(config.text('model', ''), json.endObject())
}

/** Null if the guard model finds it safe. */
function refusalOf(fetched: Fetched): string | null {
  if (fetched.error !== null || fetched.status != 200) {
    metric.increment('unanswered_total', 1)
    return 'The guard model could not be asked.'
  }
  if (fetched.text().trim().startsWith('safe')) return null
  metric.increment('refused_total', 1)
  return 'The guard model found this unsafe.'
}

function rejection(status: i32, message: string): Action {
  const json = new JsonWriter().beginObject()
  json.key('error').beginObject()
  json.key('message').text(message)
  json.key('type').text(status == 400 ? 'invalid_request_error' : 'server_error').endObject()
  return Action.reject(status).withJson(json.endObject())
}
