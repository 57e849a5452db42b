/**
 * How streamed generations end: those of engines over gRPC with the end marker, also behind an error.
 * What is passed on, or told anew from another format, ends with the error alone. @source docs/decisions/0006-broken-streams.md
 */
import type { GenerationEvent } from '#kernel'
import { apiErrorFormat, type ErrorFormat, type RequestContext, type RequestFacts } from '#kernel'

export const DONE = 'data: [DONE]\n\n'

const ofEngines = new WeakSet<RequestFacts>()

/** Sends the head of the event stream of a generation. @param first its first event */
export function openGenerationStream(
  ctx: RequestContext,
  first: GenerationEvent,
): ReturnType<RequestContext['sse']> {
  if (first.type === 'started' && first.worker.connectionMode === 'grpc') ofEngines.add(ctx)
  return ctx.sse()
}

/** The API's errors, and the end marker behind one that ends the stream of an engine. */
export const inferenceErrorFormat: ErrorFormat = Object.freeze({
  ...apiErrorFormat,
  lastEvents: (error, request) => {
    const event = apiErrorFormat.lastEvents(error, request)
    return ofEngines.has(request) ? event + DONE : event
  },
} satisfies ErrorFormat)
