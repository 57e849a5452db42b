/** The blocks of an answer as one list, for replies that are not streamed. */
import { randomBytes } from 'node:crypto'
import type { NativeObject } from '#kernel'
import { parseCallArguments } from '#shared'
import type { MessageResponse, WireResponseBlock, WireUsage } from '../wire.ts'
import type { BlockSink, ServerToolResult } from './blocks.ts'
import type { Stop } from './stop-and-usage.ts'
import { toClientId, toServerCallId } from './tool-ids.ts'

type Writable<T> = { -readonly [Member in keyof T]: T[Member] }
type Block = {
  [Kind in WireResponseBlock['type']]: Writable<Extract<WireResponseBlock, { type: Kind }>>
}[WireResponseBlock['type']]

export class WholeBlocks implements BlockSink {
  readonly blocks: Block[] = []
  /** Of all texts, for estimates of the usage. */
  characters = 0
  #input = ''

  openThinking(): void {
    this.blocks.push({ type: 'thinking', thinking: '', signature: '' })
  }

  openText(): void {
    this.blocks.push({ type: 'text', text: '' })
  }

  openCall(_index: number, id: string, name: string, members?: NativeObject): void {
    this.#input = ''
    this.blocks.push({ ...members, type: 'tool_use', id: toClientId(id), name, input: {} })
  }

  openServerCall(_index: number, id: string, name: string, server: string): void {
    this.#input = ''
    this.blocks.push({ type: 'mcp_tool_use', id: toServerCallId(id), name, server_name: server, input: {} })
  }

  extraContent(_index: number, data: NativeObject): void {
    this.blocks.push({ type: 'text', text: '', extra_content: data })
  }

  serverResult(_index: number, result: ServerToolResult): void {
    this.blocks.push(toResultBlock(result))
  }

  citation(_index: number, citation: unknown): void {
    const block = this.blocks.at(-1)
    if (block?.type !== 'text') return
    block.citations ??= []
    block.citations.push(citation)
  }

  native(_index: number, block: NativeObject): void {
    // None of the kinds above: those have events of their own.
    this.blocks.push(block as unknown as Block)
  }

  thinking(_index: number, delta: string): void {
    const block = this.blocks.at(-1)
    if (block?.type === 'thinking') block.thinking += delta
    this.characters += delta.length
  }

  text(_index: number, delta: string): void {
    const block = this.blocks.at(-1)
    if (block?.type === 'text') block.text += delta
    this.characters += delta.length
  }

  input(_index: number, delta: string): void {
    this.#input += delta
    this.characters += delta.length
  }

  close(_index: number, signature: string | null): void {
    const block = this.blocks.at(-1)
    if (block?.type === 'thinking') block.signature = signature ?? ''
    else if (block?.type === 'tool_use' || block?.type === 'mcp_tool_use')
      block.input = parseCallArguments(this.#input)
  }
}

export function toResultBlock({ id, isError, text }: ServerToolResult) {
  return {
    type: 'mcp_tool_result' as const,
    tool_use_id: toServerCallId(id),
    is_error: isError,
    content: [{ type: 'text' as const, text }],
  }
}

export function makeMessageId(): string {
  return `msg_${randomBytes(12).toString('hex')}`
}

export function toMessage(
  model: string,
  blocks: WireResponseBlock[],
  { reason, sequence }: Stop,
  usage: WireUsage,
): MessageResponse {
  return {
    id: makeMessageId(),
    type: 'message',
    role: 'assistant',
    model,
    // A text without citations has no `citations`: some clients refuse a null.
    content: blocks,
    stop_reason: reason,
    stop_sequence: sequence,
    usage,
  }
}
