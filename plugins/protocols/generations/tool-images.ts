/** Images of tool results: sent to models with vision; others get a text in place of the base64 data. */
import type { ChatMessage, ContentPart, GenerationRequest, WorkerEntry } from '#kernel'

/** `auto`: by the capabilities of the model. */
export type ToolImages = 'auto' | 'send' | 'note'

/** Services whose models can see. */
const SEEING: ReadonlySet<string> = new Set(['openai', 'anthropic', 'gemini'])

/** @param worker null for engines that get text alone @param model canonical id */
export function withToolImages(
  request: GenerationRequest,
  setting: ToolImages,
  worker: WorkerEntry | null,
  model: string,
): GenerationRequest {
  const { prompt } = request
  if (prompt.kind !== 'chat' || !prompt.messages.some(hasToolImage)) return request
  const areSeen = setting === 'auto' ? worker !== null && seesImages(worker, model) : setting === 'send'
  return { ...request, prompt: { ...prompt, messages: convertImages(prompt.messages, areSeen) } }
}

/** A model of which nothing is known cannot see. */
function seesImages({ provider, models }: WorkerEntry, model: string): boolean {
  if (provider !== null && SEEING.has(provider)) return true
  const capabilities = models.find(({ id }) => id === model)?.model_type
  return Array.isArray(capabilities) && capabilities.includes('vision')
}

function convertImages(messages: readonly ChatMessage[], areSeen: boolean): readonly ChatMessage[] {
  return messages.flatMap((message) => {
    if (!hasToolImage(message)) return [message]
    const parts = message.content.flatMap((part) => toPart(part, areSeen))
    if (parts.length === 0) return []
    const texts = parts.flatMap((part) => (part.type === 'text' ? part.text : []))
    return [{ ...message, content: texts.length === parts.length ? texts.join('\n') : parts }]
  })
}

function hasToolImage(
  message: ChatMessage,
): message is ChatMessage & { readonly content: readonly ContentPart[] } {
  const { content } = message
  return (
    Array.isArray(content) &&
    content.some((part: ContentPart) => 'unseen' in part && part.unseen !== undefined)
  )
}

function toPart(part: ContentPart, isSeen: boolean): readonly ContentPart[] {
  if (part.type !== 'image_url' || part.unseen === undefined) return [part]
  const { unseen, ...image } = part
  if (isSeen) return [image]
  return unseen === '' ? [] : [{ type: 'text', text: unseen }]
}
