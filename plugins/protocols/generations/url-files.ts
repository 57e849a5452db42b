/** Files by URL in prompts: loaded, and replaced by the text, image or document that they are. */
import type { ChatMessage, ContentPart, GenerationRequest, RelayContext } from '#kernel'
import { charsetOf, textOfFile } from '#shared'
import { fileNotLoaded } from './errors.ts'
import type { FileLoader, LoadedFile } from './file-loader.ts'

type FilePart = Extract<ContentPart, { type: 'file' }>
type UrlFile = FilePart & { readonly file: { readonly file_url: string } }

function isUrlFile(part: ContentPart): part is UrlFile {
  return part.type === 'file' && part.file.file_url !== undefined
}

/** @returns the first URL; null without any */
export function firstFileUrl({ prompt }: GenerationRequest): string | null {
  if (prompt.kind !== 'chat') return null
  for (const { content } of prompt.messages) {
    const found = Array.isArray(content) ? (content as readonly ContentPart[]).find(isUrlFile) : undefined
    if (found !== undefined) return found.file.file_url
  }
  return null
}

/**
 * Loads the files one after the other.
 * @throws file_not_loaded (400), too_many_files (429)
 */
export async function withLoadedFiles(
  request: GenerationRequest,
  loader: FileLoader,
  ctx: RelayContext,
): Promise<GenerationRequest> {
  const { prompt } = request
  if (prompt.kind !== 'chat') return request
  const messages: ChatMessage[] = []
  for (const message of prompt.messages) {
    const { content } = message
    if (content === null || typeof content === 'string') messages.push(message)
    else messages.push({ ...message, content: await withLoadedParts(content, loader, ctx) })
  }
  return { ...request, prompt: { ...prompt, messages } }
}

async function withLoadedParts(
  content: readonly ContentPart[],
  loader: FileLoader,
  ctx: RelayContext,
): Promise<ChatMessage['content']> {
  const parts: ContentPart[] = []
  for (const part of content)
    parts.push(isUrlFile(part) ? toPart(part, await loader.load(ctx, part.file.file_url), ctx) : part)
  // Many chat templates accept no parts.
  const texts = parts.flatMap((part) => (part.type === 'text' ? part.text : []))
  return texts.length === parts.length ? texts.join('\n') : parts
}

const TYPE = /^[\w.+-]+\/[\w.+-]+$/
const MAX_SHOWN = 100

function toPart(
  { file: { file_url: url, filename } }: UrlFile,
  { type, bytes }: LoadedFile,
  ctx: RelayContext,
): ContentPart {
  const [essence] = type.split(';', 1).map((one) => one.trim())
  const name = filename ?? new URL(url).pathname.split('/').at(-1)
  const base64 = bytes.toString('base64')
  if (TYPE.test(essence)) {
    const text = loadedText(`data:${essence};charset=${charsetOf(type)};base64,${base64}`, name || undefined)
    if (text !== null) return { type: 'text', text }
    const data = `data:${essence};base64,${base64}`
    if (essence.startsWith('image/')) return { type: 'image_url', image_url: { url: data } }
    if (essence === 'application/pdf')
      return { type: 'file', file: { file_data: data, filename: name || 'document.pdf' } }
  }
  const found = essence === '' ? 'none' : `'${essence.slice(0, MAX_SHOWN)}'`
  throw fileNotLoaded(
    ctx,
    url,
    `its content type must be of text, an image or application/pdf (got ${found})`,
  )

  function loadedText(data: string, filename: string | undefined): string | null {
    try {
      return textOfFile(data, filename)
    } catch (error) {
      throw fileNotLoaded(ctx, url, (error as Error).message)
    }
  }
}
