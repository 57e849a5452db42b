/** Texts that modules return at OnPromptText: a JSON list with null for each that stays. Only what is needed is parsed. */
import type { PromptTextEntry } from '../../../wasm-sdk/abi.ts'
import { toEntries } from '../instances/phase-output.ts'

/** Length is that of the prompt; checked by the reader of the output. */
export type ReplacedTexts = readonly (string | null)[]

/** @param list checked output of a module */
export function toReplacedTexts(list: Uint8Array): ReplacedTexts {
  return JSON.parse(Buffer.from(list.buffer, list.byteOffset, list.byteLength).toString('utf8'))
}

/** Input of the next module. @param entries input of the module that returned the list */
export function withTexts(entries: Uint8Array, list: Uint8Array): Uint8Array {
  const texts = toReplacedTexts(list)
  const replaced = toEntries(entries).map(
    (entry, index): PromptTextEntry => ({ ...entry, text: texts[index] ?? entry.text }),
  )
  return Buffer.from(JSON.stringify(replaced))
}

/** One list for two modules. @param before null for none */
export function mergedTexts(before: Uint8Array | null, after: Uint8Array): Uint8Array {
  if (before === null) return after
  const earlier = toReplacedTexts(before)
  return Buffer.from(JSON.stringify(toReplacedTexts(after).map((text, index) => text ?? earlier[index])))
}
