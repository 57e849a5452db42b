/** The blocks of an answer as the events of a stream. */
import type { NativeObject } from '#kernel'
import type { WireUsage } from '../wire.ts'
import type { BlockSink, DeltaKind } from './blocks.ts'
import { makeMessageId, type Stop } from './message.ts'

export const PING = 'event: ping\ndata: {"type":"ping"}\n\n'

/** Members of a delta up to its text. */
const DELTAS: Readonly<Record<DeltaKind, string>> = {
  text: '"type":"text_delta","text"',
  thinking: '"type":"thinking_delta","thinking"',
  input: '"type":"input_json_delta","partial_json"',
}

export class MessageEvents implements BlockSink {
  #out = ''

  /** The events since the last call. */
  take(): string {
    const out = this.#out
    this.#out = ''
    return out
  }

  start(model: string, usage: WireUsage): void {
    const message = {
      id: makeMessageId(),
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    }
    this.#out += `event: message_start\ndata: {"type":"message_start","message":${JSON.stringify(message)}}\n\n${PING}`
  }

  open(index: number, block: object): void {
    this.#out += `event: content_block_start\ndata: {"type":"content_block_start","index":${index},"content_block":${JSON.stringify(block)}}\n\n`
  }

  native(index: number, block: NativeObject): void {
    const { input } = block
    const hasInput = typeof input === 'object' && input !== null
    this.open(index, hasInput ? { ...block, input: {} } : block)
    if (hasInput) this.delta(index, 'input', JSON.stringify(input))
    this.close(index, null)
  }

  citation(index: number, citation: unknown): void {
    this.#out += `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"citations_delta","citation":${JSON.stringify(citation)}}}\n\n`
  }

  delta(index: number, kind: DeltaKind, delta: string): void {
    this.#out += `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{${DELTAS[kind]}:${JSON.stringify(delta)}}}\n\n`
  }

  close(index: number, signature: string | null): void {
    // Thinking that the worker has not signed stays unsigned.
    if (signature !== null && signature !== '')
      this.#out += `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"signature_delta","signature":${JSON.stringify(signature)}}}\n\n`
    this.#out += `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`
  }

  end({ reason, sequence, members }: Stop, usage: WireUsage): void {
    const delta = { stop_reason: reason, stop_sequence: sequence, ...members?.delta }
    const event = { type: 'message_delta', delta, usage, ...members?.event }
    this.#out += `event: message_delta\ndata: ${JSON.stringify(event)}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n`
  }
}
