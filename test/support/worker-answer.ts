/** Scripted responses of a worker, from plain JSON to a connection that breaks within a stream. */
import type { ServerResponse } from 'node:http'

/** One step of a streamed body. Text and bytes are one write each. */
export type StreamStep =
  | string
  | Buffer
  /** Pause in milliseconds. */
  | { readonly waitMs: number }
  /** Pause until the promise settles. */
  | { readonly until: Promise<unknown> }
  /** Closes the connection; `reset` sends RST instead of FIN. */
  | { readonly drop: 'close' | 'reset' }
  /** Keeps the connection open and sends nothing more. */
  | { readonly hang: true }

export interface AnswerOptions {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** Delay of the response head, in milliseconds. */
  readonly delayMs?: number
}

/** The response to one request. Use the functions below. */
export type Answer =
  | ({ readonly kind: 'whole'; readonly body: Buffer } & AnswerOptions)
  | ({ readonly kind: 'stream'; readonly steps: Iterable<StreamStep> } & AnswerOptions)
  | { readonly kind: 'bytes'; readonly bytes: Buffer; readonly thenClose: boolean }
  | { readonly kind: 'drop'; readonly how: 'close' | 'reset' }
  | { readonly kind: 'hang' }

/** A response with a JSON body. */
export function jsonAnswer(value: unknown, options: AnswerOptions = {}): Answer {
  return rawAnswer(JSON.stringify(value), {
    ...options,
    headers: { 'content-type': 'application/json', ...options.headers },
  })
}

/** A response with any body. */
export function rawAnswer(body: string | Buffer, options: AnswerOptions = {}): Answer {
  return { kind: 'whole', body: Buffer.from(body as string), ...options }
}

/** A chunked response of any content type. */
export function streamAnswer(steps: Iterable<StreamStep>, options: AnswerOptions = {}): Answer {
  return { kind: 'stream', steps, ...options }
}

/** An event stream; each string is the data of one event. */
export function sseAnswer(steps: readonly StreamStep[], options: AnswerOptions = {}): Answer {
  return streamAnswer(
    steps.map((step) => (typeof step === 'string' ? `data: ${step}\n\n` : step)),
    { ...options, headers: { 'content-type': 'text/event-stream', ...options.headers } },
  )
}

/** Raw bytes for the socket, for responses that are not HTTP. */
export function bytesAnswer(bytes: string | Buffer, thenClose = true): Answer {
  return { kind: 'bytes', bytes: Buffer.from(bytes as string), thenClose }
}

/** Closes the connection without a response. */
export function dropAnswer(how: 'close' | 'reset' = 'close'): Answer {
  return { kind: 'drop', how }
}

/** Accepts the request and never responds. */
export function hangAnswer(): Answer {
  return { kind: 'hang' }
}

/** Sends a scripted response through a response of node:http. */
export async function giveAnswer(answer: Answer, response: ServerResponse): Promise<void> {
  if (answer.kind === 'hang') return
  if (answer.kind === 'drop') return breakOff(response, answer.how)
  if (answer.kind === 'bytes') {
    response.socket?.write(answer.bytes)
    if (answer.thenClose) response.socket?.end()
    return
  }
  if (answer.delayMs !== undefined) await wait(answer.delayMs)
  const headers = answer.headers ?? {}
  if (answer.kind === 'whole') {
    response.writeHead(answer.status ?? 200, {
      'content-length': String(answer.body.length),
      ...(headers as Record<string, string>),
    })
    response.end(answer.body)
    return
  }
  response.writeHead(answer.status ?? 200, headers as Record<string, string>)
  response.flushHeaders()
  await giveSteps(answer.steps, response)
}

async function giveSteps(steps: Iterable<StreamStep>, response: ServerResponse): Promise<void> {
  for (const step of steps) {
    if (response.destroyed) return
    if (typeof step === 'string' || Buffer.isBuffer(step)) {
      if (!response.write(step)) await drained(response)
    } else if ('waitMs' in step) await wait(step.waitMs)
    else if ('until' in step) await step.until
    else if ('drop' in step) return afterFlush(response, step.drop)
    else return
  }
  response.end()
}

/** Closes the socket once its buffer is empty, so that earlier writes arrive. */
function afterFlush(response: ServerResponse, how: 'close' | 'reset'): void {
  const check = () => {
    if ((response.socket?.writableLength ?? 0) === 0) breakOff(response, how)
    else setImmediate(check)
  }
  setImmediate(check)
}

function breakOff(response: ServerResponse, how: 'close' | 'reset'): void {
  if (how === 'reset') response.socket?.resetAndDestroy()
  else response.socket?.destroy()
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}

function wait(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs).unref())
}
