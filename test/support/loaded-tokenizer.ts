/** Loads a tokenizer and opens it, as the loading and the encoding thread do. */
import { loadTokenizer, type TokenizerFacts } from '../../plugins/models/tokenizers/load-tokenizer.ts'
import { type OpenTokenizer, openTokenizer } from '../../plugins/models/tokenizers/open-tokenizer.ts'
import { DEFAULT_LIMITS } from '../../plugins/models/tokenizers/render-budget.ts'

const SETTINGS = {
  rendering: DEFAULT_LIMITS,
  promptCache: { enabled: false, maxEntries: 1, maxBytes: 1 },
  segmentCache: { enabled: true, maxBytes: 1_000_000 },
}

export async function openFrom(
  source: string,
  usesSegments = false,
): Promise<OpenTokenizer & { readonly facts: TokenizerFacts }> {
  const data = { maxFileBytes: 1e9, rendering: DEFAULT_LIMITS, usesSegments }
  const { facts, image } = await loadTokenizer({ source }, data)
  return { facts, ...openTokenizer(structuredClone(image), SETTINGS) }
}
