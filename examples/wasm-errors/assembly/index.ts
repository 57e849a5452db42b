/** Gives errors of engines and of the gateway the status and the body that this house has agreed on with its clients. */
import { Action, config, Description, handleError, handleResponse, JsonWriter, Request } from 'weir-gateway/wasm-sdk/assembly'
import { StatusMap } from './status-map'

export function describe(): i32 {
  return new Description().needsHeaders([]).needsResponseHeaders([]).reusesInstance().send()
}

/** The gateway could not get an answer, or made the error itself. */
export function on_error(): i32 {
  return handleError((request, response, error) => {
    const status = new StatusMap(config.text('statuses', '500=503')).of(error.status)
    return status == 0 ? Action.pass() : house(request, status, error.code)
  })
}

/** An engine answered with an error. */
export function on_response(): i32 {
  return handleResponse((request, response) => {
    const status = new StatusMap(config.text('statuses', '500=503')).of(response.status)
    return status == 0 ? Action.pass() : house(request, status, 'engine_error')
  })
}

function house(request: Request, status: i32, code: string): Action {
  const waitSec = config.integer('retry_after_s', 5)
  const message = config.text('message', 'The service is busy. Please try again soon.')
  const action = Action.modify().withStatus(status)
  if (status == 503 && waitSec > 0) action.setHeader('retry-after', waitSec.toString())
  return action.withJson(
    request.route.startsWith('/v1/messages') ? messagesBody(message) : openAiBody(message, code, request.id),
  )
}

function openAiBody(message: string, code: string, requestId: string): JsonWriter {
  const body = new JsonWriter().beginObject().key('error').beginObject()
  body.key('message').text(message).key('type').text('service_error').key('param').nil()
  return body.key('code').text(code).key('request_id').text(requestId).endObject().endObject()
}

function messagesBody(message: string): JsonWriter {
  const body = new JsonWriter().beginObject().key('type').text('error').key('error').beginObject()
  return body.key('type').text('overloaded_error').key('message').text(message).endObject().endObject()
}
