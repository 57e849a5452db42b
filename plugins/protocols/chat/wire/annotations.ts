/**
 * Sources of a text. A chat nests the members of a URL citation under its type; generations, as all other formats, do not.
 *
 * @source OpenAI API reference, Chat completions and Responses
 */
import { isObject } from '#kernel'

const URL_CITATION = 'url_citation'

/** @param annotation of a generation */
export function toChatAnnotation(annotation: unknown): unknown {
  if (!isObject(annotation) || annotation.type !== URL_CITATION) return annotation
  const { type, ...citation } = annotation
  return { type, [URL_CITATION]: citation }
}

/** @param annotation of a chat worker, some of which do not nest */
export function fromChatAnnotation(annotation: unknown): unknown {
  if (!isObject(annotation) || annotation.type !== URL_CITATION) return annotation
  const { type, [URL_CITATION]: citation, ...rest } = annotation
  return isObject(citation) ? { type, ...rest, ...citation } : annotation
}
