/** Content parts that workers of other formats get: their members, and their form in a chat. */
import type { ContentPart, JsonObject } from '#kernel'
import { FIRST_OF, type Translation, textOfFile } from '#shared'

/** Of an item. */
export type Part = { readonly type: string; readonly [member: string]: unknown }

interface PartKind {
  /** A part needs one of these members to be translated; the first that is present is read. */
  readonly content: readonly string[]
  /** Further members that are read, or that are not part of a prompt. */
  readonly more?: readonly string[]
  readonly toChat: (part: Part) => ContentPart
}

const toText = (part: Part): ContentPart => ({ type: 'text', text: textOf([part]) })

const KINDS: ReadonlyMap<unknown, PartKind> = new Map<string, PartKind>([
  ['input_text', { content: ['text'], toChat: toText }],
  ['output_text', { content: ['text'], more: ['annotations', 'logprobs'], toChat: toText }],
  ['refusal', { content: ['refusal'], toChat: toText }],
  ['input_image', { content: ['image_url'], more: ['detail'], toChat: toImage }],
  ['input_file', { content: ['file_data', 'file_url'], more: ['filename'], toChat: toFile }],
  [
    'input_audio',
    {
      content: ['input_audio'],
      toChat: ({ input_audio: audio }) => ({
        type: 'input_audio',
        input_audio: audio as { data: string; format: string },
      }),
    },
  ],
  [
    'input_video',
    {
      content: ['video_url'],
      toChat: ({ video_url: url }) => ({ type: 'video_url', video_url: { url: String(url) } }),
    },
  ],
])

/** By type: the members that reach workers of other formats. */
export const PART_MEMBERS: Readonly<Record<string, Translation>> = Object.fromEntries(
  [...KINDS].map(([type, { content, more = [] }]) => [
    type,
    {
      ...Object.fromEntries(['type', ...content, ...more].map((name) => [name, true as const])),
      [FIRST_OF]: [content],
    },
  ]),
)

const TEXT_MEMBERS: readonly string[] = ['text', 'refusal']

/**
 * The members of which a part of this type needs one to be translated.
 * @param isSaid by the model: other formats have no files and images there
 * @returns null for types that have no translation
 */
export function contentOf(type: unknown, isSaid: boolean): readonly string[] | null {
  const content = KINDS.get(type)?.content ?? null
  return isSaid && content !== null && !TEXT_MEMBERS.includes(content[0]) ? null : content
}

/** Whether the part has what its translation needs. */
export function isTranslated(part: JsonObject): boolean {
  return contentOf(part.type, false)?.some((name) => part[name] != null) === true
}

/** Joins the texts of the parts; other parts are ignored. */
export function textOf(parts: readonly Part[]): string {
  const texts: string[] = []
  for (const part of parts)
    for (const name of TEXT_MEMBERS) if (typeof part[name] === 'string') texts.push(part[name])
  return texts.length === 1 ? texts[0] : texts.join('\n')
}

/** A string if all parts are text. */
export function toChatContent(all: readonly Part[]): string | readonly ContentPart[] {
  // Others are left of earlier turns that workers of the format served.
  const parts = all.filter(isTranslated)
  const isText = parts.every(({ type }) => contentOf(type, true) !== null)
  return isText ? textOf(parts) : parts.map((part) => KINDS.get(part.type)?.toChat(part) ?? toText(part))
}

function toImage(part: Part): ContentPart {
  // A level of detail that chat workers do not know is left to them.
  const detail = part.detail === 'original' ? 'auto' : String(part.detail ?? 'auto')
  return { type: 'image_url', image_url: { url: String(part.image_url), detail } }
}

function toFile(part: Part): ContentPart {
  const filename = typeof part.filename === 'string' ? part.filename : undefined
  const named = filename === undefined ? {} : { filename }
  if (part.file_data == null) return { type: 'file', file: { file_url: String(part.file_url), ...named } }
  const data = String(part.file_data)
  const text = textOfFile(data, filename)
  return text === null ? { type: 'file', file: { file_data: data, ...named } } : { type: 'text', text }
}
