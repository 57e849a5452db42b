/** Images of tool results: sent to models with vision; others get a text in place of the base64 data. */
import type { ChatMessage, ContentPart, WorkerEntry } from '#kernel'

/** `auto`: by the capabilities of the model. */
export type ToolImages = 'auto' | 'send' | 'note'

/** Services whose models can see. */
const SEEING: ReadonlySet<string> = new Set(['openai', 'anthropic', 'gemini'])

/** @param model canonical id; a model of which nothing is known cannot see */
export function seesImages({ provider, models }: WorkerEntry, model: string): boolean {
  if (provider !== null && SEEING.has(provider)) return true
  const capabilities = models.find(({ id }) => id === model)?.model_type
  return Array.isArray(capabilities) && capabilities.includes('vision')
}

/** @returns the same array if no message has such an image */
export function withToolImages(messages: readonly ChatMessage[], areSeen: boolean): readonly ChatMessage[] {
  if (!messages.some(({ content }) => Array.isArray(content) && content.some(isToolImage))) return messages
  return messages.flatMap((message) => {
    const { content } = message
    if (!Array.isArray(content) || !content.some(isToolImage)) return [message]
    const parts = content.flatMap((part: ContentPart) => toPart(part, areSeen))
    if (parts.length === 0) return []
    const texts = parts.flatMap((part) => (part.type === 'text' ? part.text : []))
    return [{ ...message, content: texts.length === parts.length ? texts.join('\n') : parts }]
  })
}

function isToolImage(part: ContentPart): boolean {
  return part.type === 'image_url' && part.unseen !== undefined
}

function toPart(part: ContentPart, isSeen: boolean): readonly ContentPart[] {
  if (part.type !== 'image_url' || part.unseen === undefined) return [part]
  const { unseen, ...image } = part
  if (isSeen) return [image]
  return unseen === '' ? [] : [{ type: 'text', text: unseen }]
}
