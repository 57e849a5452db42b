/** Parses a tool result: text for the model, and whether the tool reports a failure. */
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

const CUT_MARK = '\n[output cut off here]'

/**
 * Joins text blocks by line feeds; other blocks (images, resources, links) become compact JSON; structured content is used
 * only if there are no blocks.
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
    images: text.length <= maxBytes ? blocks.flatMap(toImage) : [],
  }
}

function toText(block: unknown): string {
  const { type, text } = (block ?? {}) as Record<string, unknown>
  return type === 'text' && typeof text === 'string' ? text : (JSON.stringify(block) ?? 'null')
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
