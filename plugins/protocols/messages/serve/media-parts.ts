/** Images and documents of a request as parts of a chat message. */
import type { ContentPart } from '#kernel'
import { invalidField } from '../errors.ts'
import type { WireBlock } from '../wire.ts'
import { isObject } from './check-request.ts'

const IMAGE_TYPES: ReadonlySet<unknown> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

export interface MediaOptions {
  /** What becomes of PDF documents. */
  readonly pdf: 'refuse' | 'file'
}

/** @throws invalid_field (400) naming what of the block is wrong, or cannot be said in a chat */
export function toImagePart({ source }: WireBlock, path: string): ContentPart {
  if (!isObject(source)) throw invalidField(`${path}.source`, 'field required')
  if (source.type === 'url') {
    if (typeof source.url !== 'string' || source.url === '')
      throw invalidField(`${path}.source.url`, 'field required')
    return { type: 'image_url', image_url: { url: source.url } }
  }
  if (source.type !== 'base64')
    throw invalidField(`${path}.source.type`, 'only base64 and url can be translated for this model')
  if (!IMAGE_TYPES.has(source.media_type))
    throw invalidField(`${path}.source.media_type`, 'must be image/jpeg, image/png, image/gif or image/webp')
  const data = base64Of(source.data, `${path}.source.data`)
  return { type: 'image_url', image_url: { url: `data:${source.media_type as string};base64,${data}` } }
}

function base64Of(data: unknown, path: string): string {
  if (typeof data !== 'string' || data === '' || !BASE64.test(data))
    throw invalidField(path, 'must be base64')
  return data
}

/** A document as text between its title lines; a PDF as a file, where that is wanted. */
export function toDocumentParts(block: WireBlock, path: string, { pdf }: MediaOptions): ContentPart[] {
  const { source, title, context } = block
  if (!isObject(source)) throw invalidField(`${path}.source`, 'field required')
  if (source.type === 'text') {
    if (typeof source.data !== 'string') throw invalidField(`${path}.source.data`, 'field required')
    return [{ type: 'text', text: framed(title, context, source.data) }]
  }
  if (source.type === 'content') return toContentDocument(source.content, block, path)
  const isPdf = source.type === 'base64' && source.media_type === 'application/pdf'
  if (!isPdf || pdf === 'refuse')
    throw invalidField(`${path}.source.type`, 'this kind of document cannot be translated for this model')
  const data = base64Of(source.data, `${path}.source.data`)
  const filename = typeof title === 'string' && title !== '' ? title : 'document.pdf'
  return [{ type: 'file', file: { file_data: `data:application/pdf;base64,${data}`, filename } }]
}

function toContentDocument(content: unknown, { title, context }: WireBlock, path: string): ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: framed(title, context, content) }]
  if (!Array.isArray(content)) throw invalidField(`${path}.source.content`, 'field required')
  const texts: string[] = []
  const images: ContentPart[] = []
  for (const [index, block] of content.entries()) {
    const at = `${path}.source.content.${index}`
    if (!isObject(block)) throw invalidField(at, 'must be an object')
    if (block.type === 'image') images.push(toImagePart(block as unknown as WireBlock, at))
    else if (block.type === 'text' && typeof block.text === 'string') texts.push(block.text)
    else throw invalidField(`${at}.type`, 'must be text or image')
  }
  return [{ type: 'text', text: framed(title, context, texts.join('\n')) }, ...images]
}

function framed(title: unknown, context: unknown, text: string): string {
  const name = typeof title === 'string' && title !== '' ? title : 'untitled'
  const about = typeof context === 'string' && context !== '' ? `${context}\n` : ''
  return `[document: ${name}]\n${about}${text}\n[end of document: ${name}]`
}

/** Title, source and text of something that a search found. */
export function searchResultText({ title, source, content }: WireBlock): string {
  const texts = Array.isArray(content) ? content.filter(isObject).map(({ text }) => text) : []
  return [title, source, ...texts].filter((text) => typeof text === 'string' && text !== '').join('\n')
}
