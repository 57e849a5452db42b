/** Reads what a tool gave: text for the model, and whether it calls itself failed. */
import { ToolServerError } from './tool-server-error.ts'

/** What a tool gave. */
export interface ToolOutput {
  /** Text for the model. */
  readonly text: string
  /** The tool says that it failed; the text says why. */
  readonly isError: boolean
  /** The tool's own structure beside its text; null when it gave none or too much. */
  readonly structured: unknown
  readonly images: readonly { readonly mimeType: string; readonly data: string }[]
}

const CUT_MARK = '\n[output cut off here]'

/**
 * Text blocks joined by line feeds; other blocks (images, resources, links) as compact JSON; a structure only when there
 * is no block at all.
 * @param maxBytes the rest is cut off, with a mark
 * @throws ToolServerError when this is no tool result
 */
export function readResult(result: unknown, maxBytes: number): ToolOutput {
  if (typeof result !== 'object' || result === null)
    throw new ToolServerError('mcp_protocol_error', 0, 'the result is no object')
  const { content, structuredContent, isError } = result as Record<string, unknown>
  const blocks = Array.isArray(content) ? content : []
  if (content !== undefined && !Array.isArray(content))
    throw new ToolServerError('mcp_protocol_error', 0, 'the result holds no content')
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

/** Never splits a character. */
function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text
  const bytes = Buffer.from(text)
  let end = maxBytes
  while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + CUT_MARK
}
