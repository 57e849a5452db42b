/** Text to ids and back, as the routes of that name answer. */
import { tokenizerErrors } from './errors.ts'
import type { ServedTokenizer, Service } from './service.ts'
import type { Detokenize, Tokenize } from './wire.ts'

const MAX_ID = 0xffff_ffff
/** Names that the message of an unknown one lists. */
const MAX_NAMES = 10

/** @throws tokenizer_unknown (400), tokenization_failed (500), tokenizer_busy (503) */
export async function tokenize(service: Service, { model, prompt }: Tokenize): Promise<object> {
  const tokenizer = forModel(service, model)
  if (typeof prompt === 'string') {
    const tokens = [...(await tokenizer.encode(prompt))]
    return { tokens, count: tokens.length, char_count: codePoints(prompt) }
  }
  const tokens = await Promise.all(prompt.map(async (text) => [...(await tokenizer.encode(text))]))
  return { tokens, count: tokens.map(({ length }) => length), char_count: prompt.map(codePoints) }
}

/** @throws tokenizer_unknown, token_id_out_of_range (400), detokenization_failed (500) */
export function detokenize(service: Service, request: Detokenize): object {
  const tokenizer = forModel(service, request.model)
  const { tokens } = request
  const skipSpecialTokens = request.skip_special_tokens ?? true
  const isBatch = Array.isArray(tokens[0])
  const lists = (isBatch ? tokens : [tokens]).map(toIds)
  const texts = lists.map((ids) => {
    const decoder = tokenizer.openDecoder({ skipSpecialTokens })
    let text = ''
    for (const id of ids) text += decoder.push(id)
    return text + decoder.end()
  })
  return { text: isBatch ? texts : texts[0] }
}

/** By name, then by id; none and `unknown` stand for the first. @throws tokenizer_unknown (400) */
function forModel(service: Service, model: string): ServedTokenizer {
  const [first] = service.list()
  const found = service.find(model) ?? (model === '' || model === 'unknown' ? first : undefined)
  if (found !== undefined) return found
  const names = service.list().map(({ name }) => name)
  const known = names.slice(0, MAX_NAMES).join(', ') + (names.length > MAX_NAMES ? ', …' : '')
  throw tokenizerErrors.tokenizer_unknown(model, known || 'none')
}

function toIds(list: unknown): readonly number[] {
  const isId = (id: unknown) => typeof id === 'number' && Number.isInteger(id) && id >= 0 && id <= MAX_ID
  if (!Array.isArray(list) || !list.every(isId))
    throw tokenizerErrors.token_id_out_of_range.with({ param: 'tokens' })
  return list
}

function codePoints(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; count++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  return count
}
