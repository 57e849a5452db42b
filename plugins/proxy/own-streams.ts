/**
 * Streams that the fronts write themselves, told from those that are passed through: a front owes its client the end
 * marker, also behind an error. @source grpc facts 3.2, 8.2 #48; routes facts 9, 10
 */
import { apiErrorFormat, type ErrorFormat, type RequestContext, type RequestFacts } from '#kernel'

export const DONE = 'data: [DONE]\n\n'

const ownStreams = new WeakSet<RequestFacts>()

/** Sends the head of an event stream whose events are the front's own. */
export function openOwnStream(ctx: RequestContext): ReturnType<RequestContext['sse']> {
  ownStreams.add(ctx)
  return ctx.sse()
}

/** The API's errors; a stream of a front ends with one and the end marker, one of a worker with the error alone. */
export const inferenceErrorFormat: ErrorFormat = Object.freeze({
  ...apiErrorFormat,
  lastEvents: (error, request) => {
    const event = apiErrorFormat.lastEvents(error, request)
    return ownStreams.has(request) ? event + DONE : event
  },
} satisfies ErrorFormat)
