/** One part of a chat message as a content block. */
import type { ContentPart } from '#kernel'
import { answerErrors } from '#shared'
import type { Json } from './wire.ts'

const DATA_URL = 'data:'

/** @throws unsupported_by_worker (400) for sound, moving pictures and files that are elsewhere */
export function toContentBlock(part: ContentPart): Json {
  if ('value' in part) throw unsupported(`a part of type '${part.type.slice(2, 66)}'`)
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'image_url':
      return { type: 'image', source: toSource(part.image_url.url) }
    case 'file': {
      const { file_data: data, filename } = part.file
      if (data === undefined) throw unsupported('a file by its id')
      return { type: 'document', source: toSource(data), ...(filename !== undefined && { title: filename }) }
    }
    default:
      throw unsupported(`a part of type '${part.type}'`)
  }
}

function toSource(url: string): Json {
  const marker = ';base64,'
  const at = url.startsWith(DATA_URL) ? url.indexOf(marker) : -1
  if (at < 0) return { type: 'url', url }
  return { type: 'base64', media_type: url.slice(DATA_URL.length, at), data: url.slice(at + marker.length) }
}

function unsupported(what: string) {
  return answerErrors.unsupported_by_worker.with({ param: 'messages' }, what)
}
