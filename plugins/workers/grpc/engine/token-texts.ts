/** Single tokens as text, for log probabilities: special ones visible, halves of characters as they are. */
import type { LoadedTokenizer } from '#kernel'

export interface TokenText {
  readonly token: string
  readonly bytes: readonly number[]
}

/** Of one tokenizer. */
const MAX_KNOWN = 20_000

const byTokenizer = new WeakMap<LoadedTokenizer, Map<number, TokenText>>()

export function tokenText(tokenizer: LoadedTokenizer, id: number): TokenText {
  let known = byTokenizer.get(tokenizer)
  if (known === undefined) {
    known = new Map()
    byTokenizer.set(tokenizer, known)
  }
  let text = known.get(id)
  if (text === undefined) {
    const decoder = tokenizer.openDecoder({ skipSpecialTokens: false, isContinuation: true })
    const token = decoder.push(id) + decoder.end() || `<token_${id}>`
    text = { token, bytes: [...Buffer.from(token)] }
    if (known.size >= MAX_KNOWN) known.clear()
    known.set(id, text)
  }
  return text
}
