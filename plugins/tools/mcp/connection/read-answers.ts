/**
 * Parses what a tool server sends: its tool list and the results of calls. Invalid parts of a list are dropped or replaced,
 * so that one invalid tool does not affect others.
 */
import { isObject, type ListedTool } from '#kernel'
import { ToolServerError } from './tool-server-error.ts'

const MAX_NAME = 256
const MAX_DESCRIPTION = 8_192
const MAX_SCHEMA_BYTES = 65_536
const MAX_ANNOTATION_BYTES = 4_096
const ANY_OBJECT = Object.freeze({ type: 'object', properties: {} })

/** Tools of one page; invalid entries are dropped. */
export function readTools(page: unknown): ListedTool[] {
  const { tools } = page as { tools?: unknown }
  return Array.isArray(tools) ? tools.flatMap(readTool) : []
}

/** Cursor of the next page; null at the end. */
export function readCursor(page: unknown): string | null {
  const { nextCursor } = page as { nextCursor?: unknown }
  return typeof nextCursor === 'string' && nextCursor.length <= 4_096 ? nextCursor : null
}

/** Whether the server declares the tool as read-only; not verified. */
export function isReadOnly(tool: ListedTool): boolean {
  return tool.annotations?.readOnlyHint === true
}

function readTool(entry: unknown): ListedTool[] {
  if (!isObject(entry)) return []
  const { name, description, inputSchema, annotations } = entry
  if (typeof name !== 'string' || name === '' || name.length > MAX_NAME) return []
  return [
    {
      name,
      description: typeof description === 'string' ? description.slice(0, MAX_DESCRIPTION) : null,
      inputSchema: readSchema(inputSchema),
      annotations:
        isObject(annotations) && JSON.stringify(annotations).length <= MAX_ANNOTATION_BYTES
          ? annotations
          : null,
    },
  ]
}

/** Replaces a missing or invalid schema by one without properties. Some services require the member `properties`. */
function readSchema(schema: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(schema) || schema.type !== 'object') return ANY_OBJECT
  if (schema.properties !== undefined && !isObject(schema.properties)) return ANY_OBJECT
  if (JSON.stringify(schema).length > MAX_SCHEMA_BYTES) return ANY_OBJECT
  return schema.properties === undefined ? { ...schema, properties: {} } : schema
}

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
