/** Gateways with the messages plugin, over chat workers and workers with the Messages format. */
import type { FleetOptions } from './fleet.ts'
import { type Fleet, openFleet } from './fleet.ts'

export const CHAT = 'POST /v1/chat/completions'
export const MESSAGES = 'POST /v1/messages'
export const COUNT = 'POST /v1/messages/count_tokens'

/** A worker with the Messages format, like the vendor's own service. */
export const VENDOR = {
  spec: { runtime_type: 'external', provider: 'anthropic', api_key: 'vendor-key' },
}

/** An engine with chat that also describes a Messages route. */
export const NATIVE = { describes: ['/v1/messages'] }

export interface MessagesFleet extends Fleet {
  create(body?: Record<string, unknown>, headers?: Record<string, string>): Promise<Response>
}

export async function openMessages(
  options: FleetOptions & { readonly messages?: Record<string, unknown> } = {},
): Promise<MessagesFleet> {
  const fleet = await openFleet({
    ...options,
    plugins: { messages: options.messages ?? {}, ...options.plugins },
    kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 1 }, ...options.kernel },
  })
  return {
    ...fleet,
    create: (body = {}, headers) => fleet.post('/v1/messages', { ...HELLO, ...body }, headers),
  }
}

export const HELLO = {
  model: 'test-model',
  max_tokens: 64,
  messages: [{ role: 'user', content: 'Hello' }],
} as const

export interface WireEvent {
  readonly type: string
  readonly [member: string]: unknown
}

/** Every event of a stream; throws if `name` differs from the type in the data. */
export function readEvents(text: string): WireEvent[] {
  return text
    .split('\n\n')
    .filter((frame) => frame !== '' && !frame.startsWith(':'))
    .map((frame) => {
      const [event, data, ...rest] = frame.split('\n')
      if (rest.length > 0 || !event.startsWith('event: ') || !data.startsWith('data: '))
        throw new Error(`not the format's frame: ${frame}`)
      const value = JSON.parse(data.slice(6)) as WireEvent
      if (value.type !== event.slice(7)) throw new Error(`${event} over ${value.type}`)
      return value
    })
}

type Block = {
  type: string
  text?: string
  thinking?: string
  signature?: string
  input?: unknown
  [m: string]: unknown
}

/** The message that the events add up to; throws if the event order is invalid. */
export function accumulate(events: readonly WireEvent[]) {
  const messageEvents = events.filter(({ type }) => type !== 'ping')
  const blocks: Block[] = []
  const inputs: string[] = []
  let open = -1
  const first = messageEvents[0] as unknown as { type: string; message: Record<string, unknown> }
  if (first?.type !== 'message_start') throw new Error(`begins with ${first?.type}`)
  let final: Record<string, unknown> | null = null
  for (const [at, event] of messageEvents.slice(1).entries()) {
    const isLast = at === messageEvents.length - 2
    const { index } = event as unknown as { index: number }
    switch (event.type) {
      case 'content_block_start':
        if (open !== -1 || index !== blocks.length) throw new Error(`block ${index} begins in block ${open}`)
        open = index
        blocks.push({ ...(event.content_block as Block) })
        inputs[index] = ''
        break
      case 'content_block_delta': {
        if (index !== open) throw new Error(`delta of ${index} in block ${open}`)
        const delta = event.delta as Record<string, string>
        const block = blocks[index]
        if (delta.type === 'text_delta') block.text += delta.text
        else if (delta.type === 'thinking_delta') block.thinking += delta.thinking
        else if (delta.type === 'signature_delta') block.signature = delta.signature
        else if (delta.type === 'input_json_delta') inputs[index] += delta.partial_json
        else if (delta.type === 'citations_delta')
          block.citations = [...((block.citations as unknown[]) ?? []), delta.citation]
        else throw new Error(`delta ${delta.type}`)
        break
      }
      case 'content_block_stop':
        if (index !== open) throw new Error(`block ${index} ends in block ${open}`)
        open = -1
        if (blocks[index].type === 'tool_use' || inputs[index] !== '')
          blocks[index].input = inputs[index] === '' ? {} : JSON.parse(inputs[index])
        break
      case 'message_delta':
        if (open !== -1) throw new Error('message_delta in a block')
        final = { ...(event.delta as object), usage: event.usage }
        break
      case 'message_stop':
        if (!isLast || final === null) throw new Error('message_stop out of place')
        break
      default:
        throw new Error(`event ${event.type}`)
    }
  }
  if (messageEvents.at(-1)?.type !== 'message_stop')
    throw new Error(`ends with ${messageEvents.at(-1)?.type}`)
  return {
    start: first.message,
    content: blocks,
    ...(final as { stop_reason: string; stop_sequence: unknown; usage: Record<string, number> }),
  }
}
