/** Converts the items of a client to history items, and checks what their schema cannot state. */
import type { NewItem } from '#kernel'
import { type ItemPart, newItemId, withoutPrivate } from '#shared'
import { conversationErrors } from './errors.ts'
import type { Item } from './wire.ts'

type Json = Readonly<Record<string, unknown>>

/** @throws message_content_empty, unsupported_content_part, unsupported_file_id, invalid_value (400) */
export function toNewItems(items: readonly Item[]): NewItem[] {
  return items.map((item, index) => {
    if (item.type === 'item_reference') return { reference: item.id }
    const { id, created_at: _, ...rest } = withParts(item, `items[${index}]`)
    const isOwn = typeof id === 'string' && /^[A-Za-z0-9_-]{1,128}$/.test(id)
    const { type } = item
    return { item: withoutPrivate({ ...rest, id: isOwn ? id : newItemId(type), type, status: 'completed' }) }
  })
}

function withParts(item: Exclude<Item, { type: 'item_reference' }>, path: string): Json {
  switch (item.type) {
    case 'message':
      return { ...item, content: toParts(item.content, item.role, `${path}.content`) }
    case 'function_call_output': {
      const { output } = item
      if (typeof output === 'string') return item
      return {
        ...item,
        output: output.map((part, index) => toPart(part, 'user', `${path}.output[${index}]`)),
      }
    }
    case 'reasoning':
      return {
        ...item,
        summary: item.summary.map((part) => ({ ...part, type: part.type ?? 'summary_text' })),
        ...(item.content && {
          content: item.content.map((part) => ({ ...part, type: part.type ?? 'reasoning_text' })),
        }),
      }
    default:
      return item
  }
}

/** Only an assistant's content may be empty. */
function toParts(content: string | readonly ItemPart[], role: string, path: string): readonly Json[] {
  if (content.length === 0 && role !== 'assistant')
    throw conversationErrors.message_content_empty.with({ param: path }, path)
  if (typeof content !== 'string')
    return content.map((part, index) => toPart(part, role, `${path}[${index}]`))
  return [role === 'assistant' ? outputText(content) : { type: 'input_text', text: content }]
}

function toPart(part: ItemPart, role: string, path: string): Json {
  switch (part.type) {
    case 'output_text':
      return { ...outputText(''), ...part }
    case 'text':
      return role === 'assistant'
        ? { ...outputText(''), ...part, type: 'output_text' }
        : { ...part, type: 'input_text' }
    case 'refusal':
      requireContent(part.refusal, `${path}.refusal`)
      return part
    case 'input_image':
      refuseFileId(part.image_url, part.file_id, path)
      if (!/^(https?:\/\/|data:)/i.test(requireContent(part.image_url, `${path}.image_url`))) {
        const param = `${path}.image_url`
        throw conversationErrors.invalid_value.with({ param }, param, 'must be an http, https or data URL')
      }
      return part
    case 'input_file': {
      refuseFileId(part.file_data, part.file_id, path)
      const param = `${path}.file_url`
      if (typeof part.file_url === 'string' && typeof part.file_data !== 'string')
        throw conversationErrors.unsupported_content_part.with({ param }, param, 'is not supported')
      requireContent(part.file_data, `${path}.file_data`)
      return part
    }
    default:
      return part
  }
}

function outputText(text: string): Json {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

/** @throws missing_required_parameter (400) */
function requireContent(content: string | null | undefined, path: string): string {
  if (typeof content === 'string') return content
  throw conversationErrors.missing_required_parameter.with({ param: path }, path)
}

/** Files are known by their content only. */
function refuseFileId(content: unknown, fileId: unknown, path: string): void {
  if (typeof content !== 'string' && (fileId ?? null) !== null)
    throw conversationErrors.unsupported_file_id.with({ param: `${path}.file_id` })
}
