/** Allows each caller so many requests in a window of time; the counters are shared by all threads of the gateway. */
import { Action, config, Description, handleRequest, JsonWriter, kv, log, metric, Request } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders([]).reusesInstance().send()
}

export function on_request(): i32 {
  return handleRequest((request) => {
    const limit = config.integer('limit', 60)
    const windowMs = config.integer('window_s', 60) * 1000
    assert(limit > 0 && windowMs > 0, 'limit and window_s must be above 0')

    const window = request.nowMs / windowMs
    const count = kv.increment(`${callerOf(request)}:${window}`, 1, windowMs)
    if (count == i64.MIN_VALUE) {
      log.warn('the request could not be counted and goes on')
      return Action.pass()
    }
    if (count <= limit) return Action.pass()
    metric.increment('limited_total')
    return refuse((window + 1) * windowMs - request.nowMs, limit)
  })
}

/** The host keeps the counters of each tenant apart; callers without a key are distinguished by their address. */
function callerOf(request: Request): string {
  return request.tenant === null ? request.clientIp : 'tenant'
}

function refuse(waitMs: i64, limit: i64): Action {
  const waitSec = (waitMs + 999) / 1000
  const body = new JsonWriter().beginObject().key('error').beginObject()
  body.key('message').text(`more than ${limit} requests; try again in ${waitSec} s`)
  body.key('type').text('rate_limit_error').key('param').nil().key('code').text('rate_limit_exceeded')
  return Action.reject(429)
    .setHeader('retry-after', waitSec.toString())
    .setHeader('x-ratelimit-limit-requests', limit.toString())
    .setHeader('x-ratelimit-remaining-requests', '0')
    .withJson(body.endObject().endObject())
}
