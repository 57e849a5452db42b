/** Reads the result of a call: the text that models and clients get, and the images that models with vision get beside it. */
import { isObject } from '#kernel'
import { charsetOf, decodeText } from '#shared'
import type { AskedQuestion } from './call-tool.ts'
import { ToolServerError } from './tool-server-error.ts'

interface ToolImage {
  readonly mimeType: string
  /** Base64. */
  readonly data: string
}

/** A tool result. */
export interface ToolOutput {
  /** Text for the model; it names each image. */
  readonly text: string
  /** The tool reports a failure, which the text describes. */
  readonly isError: boolean
  /** Structured content of the result, any JSON value; null if absent or too large. */
  readonly structured: unknown
  readonly images: readonly ToolImage[]
  /** Ended the call instead of a result. */
  readonly question?: AskedQuestion
}

/** One block of a result. */
interface Part {
  readonly text: string
  readonly image: ToolImage | null
  /** Whether the text is content of the tool, not a note or a link. */
  readonly isContent: boolean
}

const CUT_MARK = '\n[output cut off here]'
/** Of names and addresses in notes. */
const MAX_NAME = 256

/**
 * Joins text blocks and texts of resources by line feeds. Images, audio and other bytes become a note of their type and
 * size, because base64 in a prompt costs many tokens without information; unknown blocks become compact JSON. Structured content
 * is added if no block has content as text, because servers repeat it there.
 * @param maxBytes of the text, which is truncated and marked, and of all images together; further images are notes only
 * @throws ToolServerError if the value is not a tool result
 */
export function readResult(result: unknown, maxBytes: number): ToolOutput {
  if (!isObject(result)) throw new ToolServerError('mcp_protocol_error', 0, 'the result is not an object')
  const { content = [], structuredContent, isError } = result
  if (!Array.isArray(content))
    throw new ToolServerError('mcp_protocol_error', 0, 'the content of the result is not a list')
  const parts = content.map(toPart)
  const images: ToolImage[] = []
  let imageBytes = 0
  const texts = parts.map(({ text, image }) => {
    if (image === null) return text
    if (imageBytes + image.data.length > maxBytes) return `${text} [too large to show]`
    imageBytes += image.data.length
    images.push(image)
    return text
  })
  if (structuredContent !== undefined && !parts.some(({ isContent }) => isContent))
    texts.push(JSON.stringify(structuredContent))
  const text = texts.join('\n')
  return {
    text: cut(text, maxBytes),
    isError: isError === true,
    structured: text.length <= maxBytes ? (structuredContent ?? null) : null,
    images,
  }
}

function toPart(block: unknown): Part {
  if (!isObject(block)) return asContent(JSON.stringify(block))
  const { type, text, data, mimeType, resource } = block
  if (type === 'text' && typeof text === 'string') return asContent(text)
  if (type === 'resource' && isObject(resource)) return toResourcePart(resource)
  if (type === 'resource_link') return toLinkPart(block)
  const isMedia = typeof mimeType === 'string' || type === 'image' || type === 'audio'
  if (isMedia && typeof data === 'string') return toMediaPart(nameOf(type), mimeType, data)
  return asContent(JSON.stringify(block))
}

function toResourcePart(resource: Readonly<Record<string, unknown>>): Part {
  const { uri, mimeType, text, blob } = resource
  const name = `resource ${nameOf(uri)}`
  if (typeof text === 'string') return asContent(`[${name}]\n${text}`)
  if (typeof blob === 'string') return toMediaPart(name, mimeType ?? 'application/octet-stream', blob)
  return asContent(JSON.stringify(resource))
}

function toLinkPart({ uri, name, mimeType, size, description }: Readonly<Record<string, unknown>>): Part {
  const facts = [
    `link to resource ${nameOf(uri)}`,
    ...[name, mimeType].flatMap((value) => (typeof value === 'string' ? nameOf(value) : [])),
    ...(typeof size === 'number' ? [`${size} bytes`] : []),
  ]
  return asNote(`[${facts.join(', ')}]${typeof description === 'string' ? `\n${description}` : ''}`)
}

/** The text of bytes that are text, an image, or a note. */
function toMediaPart(name: string, mimeType: unknown, data: string): Part {
  const type = nameOf(mimeType)
  const essence = type.split(';')[0].trim().toLowerCase()
  const base64 = data.replace(/\s+/g, '')
  const about = `[${name}: ${type}, ${Buffer.byteLength(base64, 'base64')} bytes]`
  if (!BASE64.test(base64)) return asNote(`[${name}: ${type}, invalid base64]`)
  if (IMAGE.test(essence)) return { ...asNote(about), image: { mimeType: essence, data: base64 } }
  const text = HAS_NO_TEXT.test(essence) ? null : textOf(base64, type)
  return text === null ? asNote(about) : asContent(`[${name}]\n${text}`)
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
/** SVG is XML, which vision models do not accept as an image. */
const IMAGE = /^image\/(?!.*\+xml$)[a-z0-9.+-]{1,40}$/
const HAS_NO_TEXT = /^(?:audio|video|font)\/|^unknown$/

/** Null unless the bytes are text in the declared character set; types of text are too many for a list. */
function textOf(base64: string, type: string): string | null {
  try {
    const text = decodeText(Buffer.from(base64, 'base64'), charsetOf(type))
    return text.includes('\0') ? null : text
  } catch {
    return null
  }
}

function asContent(text: string): Part {
  return { text, image: null, isContent: true }
}

function asNote(text: string): Part {
  return { text, image: null, isContent: false }
}

/** A server may send anything in its place. */
function nameOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_NAME) : 'unknown'
}

/** Truncates without splitting a character. */
function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text
  const bytes = Buffer.from(text)
  let end = maxBytes
  while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + CUT_MARK
}
