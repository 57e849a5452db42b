/** Runs handlers in exports: reads the input, calls the handler and writes its action. */
import { Action } from './action'
import { Input } from './input'
import { Pick, sendChoice } from './pick'
import { Prompt } from './prompt'
import { Request } from './request'
import { ErrorInfo, Response } from './response'
import { StreamAction, StreamEvent } from './stream'
import { TextAction, TextPiece } from './text'
import { ToolAction, ToolCall } from './tool'

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

/** The handler replaces texts by assigning them, or rejects the request with a status and a text, the message of the error. */
export function handlePromptText(handler: (request: Request, prompt: Prompt) => Action): i32 {
  const input = new Input()
  const prompt = new Prompt(input)
  prompt.send(handler(new Request(input), prompt))
  return end()
}

/** The request has only id and tenant. */
export function handleToolCall(handler: (request: Request, call: ToolCall) => ToolAction): i32 {
  const input = new Input()
  handler(new Request(input), new ToolCall(input)).send()
  return end()
}

/** The handler returns the index of a candidate, or -1 for the default policy. The request has only headers. */
export function handlePick(handler: (request: Request, pick: Pick) => i32): i32 {
  const input = new Input()
  sendChoice(handler(new Request(input), new Pick(input)))
  return end(PICKS_PER_COLLECTION)
}

/** Calls between two garbage collections of a warm instance. */
const CALLS_PER_COLLECTION = 32
/** Fewer for OnPick, whose fuel does not cover a larger collection. */
const PICKS_PER_COLLECTION = 2
/** With more memory, it collects after each call, pages of 64 KiB. */
const LARGE_PAGES = 32

let calls = 0

// Creates the heap at instantiation, so that restored instances keep it.
heap.free(heap.alloc(8))

/** Instances that serve one call never collect. */
function end(period: i32 = CALLS_PER_COLLECTION): i32 {
  if (++calls % period == 0 || memory.size() > LARGE_PAGES) __collect()
  return 0
}
