/** Sends the prompt and reads the response as it arrives. */
import type { Delta, Format, Json, Prompt } from './formats.ts'

/** Later events are counted, and not kept. */
export const MAX_EVENTS = 2_000

export interface Exchange {
  readonly isRunning: boolean
  readonly text: string
  readonly reasoning: string
  /** Data of the events, or the body of a response that is not streamed. */
  readonly events: readonly string[]
  readonly eventCount: number
  readonly usage: { readonly input: number; readonly output: number } | null
  readonly error: string | null
  readonly status: number | null
  readonly requestId: string | null
  /** From sending the request. Milliseconds. */
  readonly firstTokenMs: number | null
  readonly totalMs: number | null
}

export const NOTHING: Exchange = {
  isRunning: false,
  text: '',
  reasoning: '',
  events: [],
  eventCount: 0,
  usage: null,
  error: null,
  status: null,
  requestId: null,
  firstTokenMs: null,
  totalMs: null,
}

interface SendOptions {
  readonly format: Format
  readonly prompt: Prompt
  /** Empty for a gateway without keys. */
  readonly key: string
  readonly signal: AbortSignal
  /** Called at most once per frame of the browser. */
  readonly onChange: (exchange: Exchange) => void
}

export async function send({ format, prompt, key, signal, onChange }: SendOptions): Promise<void> {
  const startMs = performance.now()
  const events: string[] = []
  let state: Exchange = { ...NOTHING, isRunning: true }
  let isScheduled = false
  const change = (next: Partial<Exchange>) => {
    state = { ...state, ...next }
    if (isScheduled) return
    isScheduled = true
    requestAnimationFrame(() => {
      isScheduled = false
      onChange({ ...state, events: [...events] })
    })
  }
  const take = (data: string) => {
    if (events.length < MAX_EVENTS) events.push(data)
    const delta = readDelta(format, data)
    const hasText = Boolean(delta.text || delta.reasoning)
    change({
      eventCount: state.eventCount + 1,
      text: state.text + (delta.text ?? ''),
      reasoning: state.reasoning + (delta.reasoning ?? ''),
      usage: mergedUsage(state.usage, delta.usage),
      error: delta.error || state.error,
      firstTokenMs: state.firstTokenMs ?? (hasText ? performance.now() - startMs : null),
    })
  }
  change({})
  try {
    const response = await fetch(format.path, {
      method: 'POST',
      // The session of the console is no credential of the serving routes.
      credentials: 'omit',
      headers: { 'content-type': 'application/json', ...(key !== '' && { authorization: `Bearer ${key}` }) },
      body: JSON.stringify(format.body(prompt)),
      signal,
    })
    change({ status: response.status, requestId: response.headers.get('x-request-id') })
    if (response.headers.get('content-type')?.startsWith('text/event-stream'))
      for await (const data of eventsOf(response.body as ReadableStream<Uint8Array>)) take(data)
    else take(await response.text())
  } catch (error) {
    change({ error: signal.aborted ? 'Stopped.' : (error as Error).message })
  }
  change({ isRunning: false, totalMs: performance.now() - startMs })
}

/** Messages reports input first and output last. */
function mergedUsage(before: Exchange['usage'], usage: Delta['usage']): Exchange['usage'] {
  if (usage === undefined) return before
  return { input: usage.input || (before?.input ?? 0), output: usage.output || (before?.output ?? 0) }
}

function readDelta(format: Format, data: string): Delta {
  if (data === '[DONE]') return {}
  try {
    const event = JSON.parse(data) as Json
    return event === null || typeof event !== 'object' ? {} : format.read(event)
  } catch {
    return { error: data.slice(0, 500) }
  }
}

/** Data of the events of a stream. @source WHATWG HTML, server-sent events; this gateway sends no comments inside events */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    rest += value ?? ''
    const blocks = rest.split(/\r?\n\r?\n/)
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const data = block
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
        .join('\n')
      if (data !== '') yield data
    }
    if (done) return
  }
}
