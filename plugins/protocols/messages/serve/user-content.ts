/** What a user's turn holds, as chat messages: tool results first, then text, images and documents. */
import { type ChatMessage, type ContentPart, isObject } from '#kernel'
import { imageNote } from '#shared'
import { invalidField } from '../errors.ts'
import type { WireBlock, WireBlockOf, WireResultBlock } from '../wire.ts'
import { toWorkerId } from './tool-ids.ts'

export interface MediaOptions {
  /** Whether PDF documents are refused or become `file` parts. */
  readonly pdf: 'refuse' | 'file'
}

/** @throws invalid_field (400) naming the block */
export function toUserMessages(
  content: string | readonly WireBlock[],
  path: string,
  options: MediaOptions,
): ChatMessage[] {
  if (typeof content === 'string') return [{ role: 'user', content }]
  const results: ChatMessage[] = []
  const media: ContentPart[] = []
  const parts: ContentPart[] = []
  for (const [index, block] of content.entries()) {
    const at = `${path}.${index}`
    if (block.type === 'tool_result') results.push(toToolMessage(block, at, media, options))
    else for (const part of toParts(block, at, options)) parts.push(part)
  }
  // Images that tools returned belong to their results, so they stand before the user's text.
  const all = media.concat(parts)
  if (all.length === 0) return results.length > 0 ? results : [{ role: 'user', content: '' }]
  return [...results, { role: 'user', content: joined(all) }]
}

/** One text if all parts are texts: many chat templates accept no parts. */
function joined(parts: readonly ContentPart[]): string | readonly ContentPart[] {
  const texts = parts.flatMap((part) => (part.type === 'text' ? part.text : []))
  return texts.length === parts.length ? texts.join('\n') : parts
}

/** @param media gets the images and files of the result: a tool message of the chat format holds text only */
export function toToolMessage(
  { tool_use_id: id, content, is_error: isError }: WireBlockOf<'tool_result' | 'mcp_tool_result'>,
  path: string,
  media: ContentPart[],
  options: MediaOptions,
): ChatMessage {
  return {
    role: 'tool',
    tool_call_id: toWorkerId(id),
    content: resultText(content, `${path}.content`, media, options),
    ...(isError === true && { is_error: true }),
  }
}

function resultText(
  content: string | readonly WireResultBlock[] | null | undefined,
  path: string,
  media: ContentPart[],
  options: MediaOptions,
): string {
  if (content == null || typeof content === 'string') return content ?? ''
  const texts: string[] = []
  for (const [index, block] of content.entries()) {
    if (block.type === 'tool_reference') texts.push(`tool: ${String(block.tool_name)}`)
    else
      for (const part of toParts(block, `${path}.${index}`, options)) {
        if (part.type === 'text') texts.push(part.text)
        else media.push(part.type === 'image_url' ? { ...part, unseen: imageNote(part.image_url.url) } : part)
      }
  }
  return texts.join('\n')
}

function toParts(block: WireBlock | WireResultBlock, path: string, options: MediaOptions): ContentPart[] {
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: block.text }]
    case 'image':
      return [toImagePart(block, path)]
    case 'document':
      return toDocumentParts(block, path, options)
    case 'search_result':
      return [{ type: 'text', text: searchResultText(block) }]
    case 'container_upload':
      return []
    default:
      throw untranslatable(block, path)
  }
}

export function untranslatable({ type }: { readonly type: string }, path: string) {
  return invalidField(
    `${path}.type`,
    `a block of type '${type.slice(0, 64)}' cannot be translated for this model`,
  )
}

function toImagePart({ source }: WireBlockOf<'image'>, path: string): ContentPart {
  switch (source.type) {
    case 'url':
      return { type: 'image_url', image_url: { url: source.url } }
    case 'base64':
      return {
        type: 'image_url',
        image_url: { url: `data:${source.media_type};base64,${source.data}` },
      }
    default:
      throw invalidField(
        `${path}.source.type`,
        'only base64 and url can be translated for this model',
        (source as { type: string }).type,
      )
  }
}

/** A document becomes text between title lines; a PDF becomes a file part if the operator allows it. */
function toDocumentParts(block: WireBlockOf<'document'>, path: string, { pdf }: MediaOptions): ContentPart[] {
  const { source, title, context } = block
  if (source.type === 'text') return [{ type: 'text', text: framed(block, source.data) }]
  if (source.type === 'content') return toContentParts(block, source.content, `${path}.source.content`)
  const isPdf = source.type === 'url' || (source.type === 'base64' && source.media_type === 'application/pdf')
  if (!isPdf || pdf === 'refuse')
    throw invalidField(
      `${path}.source.type`,
      isPdf
        ? 'PDF documents cannot be translated for this model (plugins.messages.pdf)'
        : 'this kind of document cannot be translated for this model',
      source.type,
    )
  const filename = typeof title === 'string' && title !== '' ? title : 'document.pdf'
  const file =
    source.type === 'url'
      ? { file_url: source.url }
      : { file_data: `data:application/pdf;base64,${source.data}` }
  const part: ContentPart = { type: 'file', file: { ...file, filename } }
  return typeof context === 'string' && context !== '' ? [{ type: 'text', text: context }, part] : [part]
}

type DocumentSource = WireBlockOf<'document'>['source']

function toContentParts(
  document: WireBlockOf<'document'>,
  content: Extract<DocumentSource, { type: 'content' }>['content'],
  path: string,
): ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: framed(document, content) }]
  const texts: string[] = []
  const images: ContentPart[] = []
  for (const [index, block] of content.entries()) {
    const at = `${path}.${index}`
    if (block.type === 'image') images.push(toImagePart(block, at))
    else if (block.type === 'text') texts.push(block.text)
    else throw invalidField(`${at}.type`, 'must be text or image', (block as { type: string }).type)
  }
  return [{ type: 'text', text: framed(document, texts.join('\n')) }, ...images]
}

function framed({ title, context }: WireBlockOf<'document'>, text: string): string {
  const name = typeof title === 'string' && title !== '' ? title : 'untitled'
  const about = typeof context === 'string' && context !== '' ? `${context}\n` : ''
  return `[document: ${name}]\n${about}${text}\n[end of document: ${name}]`
}

/** Title, source and text of a search result. */
function searchResultText({ title, source, content }: WireBlockOf<'search_result'>): string {
  const texts = Array.isArray(content) ? content.filter(isObject).map(({ text }) => text) : []
  return [title, source, ...texts].filter((text) => typeof text === 'string' && text !== '').join('\n')
}
