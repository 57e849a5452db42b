/** An exchange that sends nothing and fails asynchronously, like other failures. */
import type { Exchange, UpstreamFailure, UpstreamHandler } from '#kernel'

export function failedExchange(handler: UpstreamHandler, failure: UpstreamFailure): Exchange {
  let isAborted = false
  process.nextTick(() => {
    if (!isAborted) handler.onResponseError(failure)
  })
  return {
    pause() {},
    resume() {},
    abort() {
      isAborted = true
    },
  }
}
