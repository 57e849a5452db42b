/**
 * A loaded tokenizer in memory that all threads share. The loading thread makes it once; opening it on another thread
 * takes milliseconds, except for vocabularies of the native library, which that thread has to parse.
 */
import type { SpecialTokens } from '#kernel'
import type { BpeMemory } from './bpe/bpe-tables.ts'
import type { BpeShape } from './bpe/byte-bpe.ts'
import type { TemplateReport } from './message-form.ts'
import type { MarkerToken } from './segments.ts'
import { SourceError } from './source-files.ts'

export type VocabularyImage =
  | { readonly kind: 'bpe'; readonly memory: BpeMemory; readonly shape: SharedArrayBuffer }
  /** Bytes of a `tokenizer.json`. */
  | { readonly kind: 'native'; readonly file: SharedArrayBuffer }

export interface TokenizerImage {
  readonly vocabulary: VocabularyImage
  readonly description: SharedArrayBuffer
}

export interface TokenizerDescription {
  /** With the ids that the vocabulary gives them. */
  readonly added: readonly MarkerToken[]
  /** Tokens behind which a prompt may be cut; null if segments must not be cached. */
  readonly markers: readonly string[] | null
  readonly special: SpecialTokens
  /** [name, text] */
  readonly templates: readonly (readonly [string, string])[]
  /** [name of the template, report] */
  readonly reports: readonly (readonly [string, TemplateReport])[]
}

/** The largest known tokenizer needs 0.7 MB for 6,415 added tokens. Reading the maximum takes some 30 ms. */
const MAX_BYTES = 4_194_304

/**
 * JSON in shared memory is sent to a thread with each task, but read only once there.
 * @param what names the value in the error @throws SourceError if it is too large
 */
export function writeJson(what: string, value: TokenizerDescription | BpeShape): SharedArrayBuffer {
  const bytes = Buffer.from(JSON.stringify(value))
  if (bytes.length > MAX_BYTES)
    throw new SourceError(`the ${what} take ${bytes.length} bytes, the limit is ${MAX_BYTES}`)
  return toShared(bytes)
}

export function readJson<T extends TokenizerDescription | BpeShape>(memory: SharedArrayBuffer): T {
  return JSON.parse(Buffer.from(memory).toString()) as T
}

export function toShared(bytes: Uint8Array): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(bytes.length)
  new Uint8Array(memory).set(bytes)
  return memory
}
