/**
 * How streams of chat and completions end: whether a relayed stream is complete, and the end marker of generated ones.
 * Streams of engines over gRPC have the marker also after an error; others end with the error. @source docs/decisions/0005-failures.md
 */
import {
  apiErrorFormat,
  type ErrorFormat,
  type GenerationEvent,
  type RequestContext,
  type RequestFacts,
  type StreamEnd,
} from '#kernel'

export const DONE = 'data: [DONE]\n\n'

/** Requests whose stream comes from an engine over gRPC. */
const grpcStreams = new WeakSet<RequestFacts>()

/** For the end of the stream. @param event any; `started` names the worker */
export function noteWorker(ctx: RequestContext, event: GenerationEvent): void {
  if (event.type === 'started' && event.worker?.connectionMode === 'grpc') grpcStreams.add(ctx)
}

/** The API's error format, with the end marker after an error that ends a stream of an engine over gRPC. */
export const inferenceErrorFormat: ErrorFormat = Object.freeze({
  ...apiErrorFormat,
  lastEvents: (error, request) => {
    const event = apiErrorFormat.lastEvents(error, request)
    return grpcStreams.has(request) ? event + DONE : event
  },
} satisfies ErrorFormat)

/** JSON has no line breaks, and quotes in a text are escaped, so a model's text cannot look like any of these. */
const ERROR =
  /(?:^|[\r\n])(?:data: ?\{\s{0,8}"(?:error"\s{0,8}:|object"\s{0,8}:\s{0,8}"error")|event: ?error[\r\n])/
const DONE_MARK = /(?:^|[\r\n])data: ?\[DONE\]/
/** Some workers send no `[DONE]`, but a finish reason for each choice. */
const FINISHED = /"finish_reason"\s{0,8}:\s{0,8}"/
/** Part of an answer. Streams of other content are not checked. */
const PIECE = /"choices"\s{0,8}:\s{0,8}\[\s{0,8}\{|"finish_reason"\s{0,8}:\s{0,8}null/

/** The end of nearly all streams, in a line of its own. */
const DONE_LINE = Buffer.from(`\n${DONE}`)

/** @param tail last bytes of the stream */
export function endOfStream(tail: Buffer): StreamEnd {
  if (endsInDone(tail) && !tail.includes('"error"')) return 'complete'
  const text = tail.toString('latin1')
  if (ERROR.test(text)) return 'error'
  return DONE_MARK.test(text) || FINISHED.test(text) || !PIECE.test(text) ? 'complete' : 'cut'
}

/** True for a complete answer without the end mark, which some clients wait for. @param tail last bytes of the stream */
export function lacksDone(tail: Buffer): boolean {
  if (endsInDone(tail)) return false
  const text = tail.toString('latin1')
  return FINISHED.test(text) && !DONE_MARK.test(text)
}

/** Byte by byte, which is faster than the methods of `Buffer` for these few. */
function endsInDone(tail: Buffer): boolean {
  let at = tail.length - DONE_LINE.length
  if (at < 0) return false
  for (let i = 0; i < DONE_LINE.length; i++) if (tail[at++] !== DONE_LINE[i]) return false
  return true
}
