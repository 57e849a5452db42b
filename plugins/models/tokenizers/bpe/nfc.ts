/** Normalizes as the native library does, whose tables are of an older version of Unicode than those of V8. */
import { createRequire } from 'node:module'
import type { Normalizer } from 'tokenizers'

const require = createRequire(import.meta.url)
let library: Normalizer | null = null

export function toNfc(text: string): string {
  // A text that is normalized by newer tables is so by older ones too: marks are never changed, only added.
  if (text.normalize('NFC') === text) return text
  // Loaded here: most threads never meet another text.
  library ??= (require('tokenizers') as typeof import('tokenizers')).nfcNormalizer()
  return library.normalizeString(text)
}
