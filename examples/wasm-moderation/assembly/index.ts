/** Asks a service of yours whether a prompt may go on, and refuses what it flags. */
import { Action, config, Description, Fetched, handleRequest, JsonWriter, metric } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description()
    .needsHeaders([])
    .needsRequestBody()
    .failsClosed()
    .setting('url', 'text', true, 'Where prompts are sent, such as https://moderation.example.com/check')
    .setting('token', 'text', false, 'Sent as a bearer token')
    .setting('when_unreachable', 'text', false, 'pass or refuse; default refuse')
    .send()
}

export function on_request(): i32 {
  return handleRequest((request) => {
    if (request.method != 'POST') return Action.pass()
    const fetched = request.fetched
    return fetched === null ? ask(request.id, request.text()) : judge(fetched)
  })
}

function ask(id: string, prompt: string): Action {
  const json = new JsonWriter().beginObject()
  json.key('id').text(id)
  json.key('input').text(prompt)
  const fetch = Action.fetch(config.text('url', ''), 'POST').withJson(json.endObject())
  const token = config.get('token')
  return token === null ? fetch : fetch.setHeader('authorization', 'Bearer ' + token)
}

function judge(fetched: Fetched): Action {
  const answer = fetched.status == 200 ? fetched.json() : null
  if (answer === null || !answer.find('flagged').isBool) {
    metric.increment('unanswered_total', 1)
    if (config.text('when_unreachable', 'refuse') == 'pass') return Action.pass()
    return refusal(503, 'the prompt could not be checked')
  }
  if (!answer.find('flagged').bool()) return Action.pass()
  metric.increment('flagged_total', 1)
  return refusal(400, 'the prompt was refused')
}

function refusal(status: i32, message: string): Action {
  const json = new JsonWriter().beginObject()
  json.key('error').beginObject()
  json.key('message').text(message)
  json.key('type').text(status == 400 ? 'invalid_request_error' : 'server_error').endObject()
  return Action.reject(status).withJson(json.endObject())
}
