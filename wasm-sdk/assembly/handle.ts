/** Runs a handler in the body of an export: reads the input, calls it, hands its action to the host. */
import { Action } from './action'
import { ErrorInfo } from './error-info'
import { Input } from './input'
import { Pick, sendChoice } from './pick'
import { Request } from './request'
import { Response } from './response'
import { StreamAction } from './stream-action'
import { StreamEvent } from './stream-event'
import { TextAction } from './text-action'
import { TextPiece } from './text-piece'
import { ToolAction } from './tool-action'
import { ToolCall } from './tool-call'

export function handleRequest(handler: (request: Request) => Action): i32 {
  handler(new Request(new Input())).send()
  return end()
}

export function handleResponse(handler: (request: Request, response: Response) => Action): i32 {
  const input = new Input()
  handler(new Request(input), new Response(input)).send()
  return end()
}

export function handleError(handler: (request: Request, response: Response, error: ErrorInfo) => Action): i32 {
  const input = new Input()
  handler(new Request(input), new Response(input), new ErrorInfo(input)).send()
  return end()
}

export function handleStreamEvent(handler: (request: Request, event: StreamEvent) => StreamAction): i32 {
  const input = new Input()
  handler(new Request(input), new StreamEvent(input)).send()
  return end()
}

export function handleText(handler: (request: Request, piece: TextPiece) => TextAction): i32 {
  const input = new Input()
  handler(new Request(input), new TextPiece(input)).send()
  return end()
}

/** Of the request only its id and its tenant are known. */
export function handleToolCall(handler: (request: Request, call: ToolCall) => ToolAction): i32 {
  const input = new Input()
  handler(new Request(input), new ToolCall(input)).send()
  return end()
}

/** The handler gives the place of a candidate, or -1: the default policy chooses. Of the request only headers are known. */
export function handlePick(handler: (request: Request, pick: Pick) => i32): i32 {
  const input = new Input()
  sendChoice(handler(new Request(input), new Pick(input)))
  return end(PICKS_PER_COLLECTION)
}

/** Calls after which a used instance frees what they left behind. */
const CALLS_PER_COLLECTION = 32
/** Fewer for OnPick: its fuel does not allow to free what many calls left behind. */
const PICKS_PER_COLLECTION = 2
/** Memory, in pages of 64 KiB, from which on it does so after each call. */
const LARGE_PAGES = 32

let calls = 0

// The heap is made when the module is instantiated: an instance that is put back after each call keeps it.
heap.free(heap.alloc(8))

/** An instance that serves one call never pays for this. */
function end(period: i32 = CALLS_PER_COLLECTION): i32 {
  if (++calls % period == 0 || memory.size() > LARGE_PAGES) __collect()
  return 0
}
