/** Files of text, which need no worker that reads files. */
import { answerErrors } from '../answers/answer-errors.ts'

const TEXT_URL = /^data:(?:text\/[^;,]+|application\/(?:json|xml|yaml|x-yaml))((?:;[^;,]*)*),/i
const CHARSET = /;\s*charset="?([\w.:-]+)/i
const UTF_8 = 'utf-8'

/** Label of a charset in the parameters of a content type; UTF-8 without one. */
export function charsetOf(parameters: string): string {
  return CHARSET.exec(parameters)?.[1] ?? UTF_8
}

/**
 * @param data a data URL
 * @returns null for a file of another kind
 * @throws unreadable_text (400)
 */
export function textOfFile(data: string, filename?: string): string | null {
  const head = TEXT_URL.exec(data.slice(0, MAX_HEAD))
  if (head === null) return null
  const body = data.slice(head[0].length)
  const charset = charsetOf(head[1])
  const isBase64 = head[1].toLowerCase().endsWith(';base64')
  const text = decodeText(isBase64 ? Buffer.from(body, 'base64') : unescaped(body, charset), charset)
  return filename === undefined ? text : `${filename}:\n${text}`
}

/** Longer than the head of any data URL in use. */
const MAX_HEAD = 256

/** Many clients write UTF-8 characters as they are, and `%` that begins no byte. */
function unescaped(text: string, charset: string): Buffer {
  if (charset.toLowerCase() !== UTF_8) {
    const bytes = text.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    return Buffer.from(bytes, 'latin1')
  }
  try {
    return Buffer.from(decodeURIComponent(text))
  } catch {
    return Buffer.from(text)
  }
}

/**
 * A byte order mark takes precedence over the charset. @source WHATWG Encoding, decode
 *
 * @throws unreadable_text (400)
 */
export function decodeText(bytes: Buffer, charset: string): string {
  const label = MARKS.find(([mark]) => bytes.subarray(0, mark.length).equals(mark))?.[1] ?? charset
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes)
  } catch (cause) {
    throw answerErrors.unreadable_text.with({ cause }, label)
  }
}

const MARKS = [
  [Buffer.from([0xef, 0xbb, 0xbf]), UTF_8],
  [Buffer.from([0xfe, 0xff]), 'utf-16be'],
  [Buffer.from([0xff, 0xfe]), 'utf-16le'],
] as const
