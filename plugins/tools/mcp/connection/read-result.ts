/** Parses a tool result: text for the model, and whether the tool reports a failure. */
import { isObject } from '#kernel'
import { ToolServerError } from './tool-server-error.ts'

/** A tool result. */
export interface ToolOutput {
  /** Text for the model. */
  readonly text: string
  /** The tool reports a failure, which the text describes. */
  readonly isError: boolean
  /** Structured content of the result; null if absent or too large. */
  readonly structured: unknown
  readonly images: readonly { readonly mimeType: string; readonly data: string }[]
}

const MAX_NAME = 256
const CUT_MARK = '\n[output cut off here]'

/**
 * Joins text blocks by line feeds; images, audio and binary resources become a note of their type and size, because base64
 * in a prompt costs many tokens without information; other blocks become compact JSON; structured content is used only if there
 * are no blocks.
 * @param maxBytes longer text is truncated and marked
 * @throws ToolServerError if the value is not a tool result
 */
export function readResult(result: unknown, maxBytes: number): ToolOutput {
  if (typeof result !== 'object' || result === null)
    throw new ToolServerError('mcp_protocol_error', 0, 'the result is not an object')
  const { content, structuredContent, isError } = result as Record<string, unknown>
  const blocks = Array.isArray(content) ? content : []
  if (content !== undefined && !Array.isArray(content))
    throw new ToolServerError('mcp_protocol_error', 0, 'the result has no content')
  const parts = blocks.map(toText)
  if (parts.length === 0 && structuredContent !== undefined) parts.push(JSON.stringify(structuredContent))
  const text = parts.join('\n')
  return {
    text: cut(text, maxBytes),
    isError: isError === true,
    structured: text.length <= maxBytes ? (structuredContent ?? null) : null,
    images: text.length <= maxBytes ? imagesOf(blocks, maxBytes) : [],
  }
}

function toText(block: unknown): string {
  if (!isObject(block)) return JSON.stringify(block) ?? 'null'
  const { type, text, data, mimeType, resource } = block
  if (type === 'text' && typeof text === 'string') return text
  if ((type === 'image' || type === 'audio') && typeof data === 'string')
    return binaryNote(type, mimeType, data)
  if (type === 'resource' && isObject(resource) && typeof resource.blob === 'string')
    return binaryNote(`resource ${nameOf(resource.uri)}`, resource.mimeType, resource.blob)
  return JSON.stringify(block)
}

/** A server may send anything in its place. */
function nameOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_NAME) : 'unknown'
}

function binaryNote(what: string, mimeType: unknown, base64: string): string {
  return `[${what}: ${nameOf(mimeType)}, ${Buffer.byteLength(base64, 'base64')} bytes]`
}

/** None if all together exceed the limit. */
function imagesOf(blocks: readonly unknown[], maxBytes: number): ToolOutput['images'] {
  const images = blocks.flatMap(toImage)
  return images.reduce((sum, { data }) => sum + data.length, 0) <= maxBytes ? images : []
}

function toImage(block: unknown): { mimeType: string; data: string }[] {
  const { type, data, mimeType } = (block ?? {}) as Record<string, unknown>
  const isImage = type === 'image' && typeof data === 'string' && typeof mimeType === 'string'
  return isImage && /^image\/[a-z0-9.+-]{1,40}$/.test(mimeType) ? [{ mimeType, data }] : []
}

/** Truncates without splitting a character. */
function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text
  const bytes = Buffer.from(text)
  let end = maxBytes
  while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + CUT_MARK
}
