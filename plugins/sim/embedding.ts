/** Embeddings, rerank scores and classes. Texts that share tokens get vectors and scores that are near each other. */

import { usageOf } from './generation.ts'
import { promptsOf, tokensOf } from './prompt.ts'
import { Random, seedOf } from './random.ts'
import { splitTokens } from './tokens.ts'
import type { ClassifyRequest, EmbeddingRequest, RerankRequest } from './wire.ts'

/** Tokens beyond this many do not change a vector, so that huge inputs stay cheap. */
const TOKENS_THAT_COUNT = 256
const CLASSES = 2

/** @param dimensions length of vectors when the request names none */
export function embed(request: EmbeddingRequest, model: string, seed: number, dimensions: number) {
  const prompts = promptsOf(request.input)
  const length = request.dimensions ?? dimensions
  return {
    object: 'list',
    data: prompts.map((prompt, index) => {
      const vector = vectorOf(prompt.text, seedOf(seed, model), length)
      return {
        object: 'embedding',
        embedding: request.encoding_format === 'base64' ? toBase64(vector) : Array.from(vector),
        index,
      }
    }),
    model,
    usage: usageOf(tokensOf(prompts), 0),
  }
}

/** Best first; equal scores keep the order of the request. */
export function rerank(request: RerankRequest, id: string) {
  const wanted = new Set(wordsOf(request.query))
  return request.documents
    .map((document, index) => ({
      score: overlap(wanted, wordsOf(document)),
      document,
      index,
      meta_info: { id: `${id}-${index}` },
    }))
    .sort((left, right) => right.score - left.score || left.index - right.index)
}

/** Probabilities of LABEL_0 and LABEL_1; they add up to 1. */
export function classify(
  request: ClassifyRequest,
  setting: { id: string; createdSec: number; model: string; seed: number },
) {
  const prompts = promptsOf(request.input)
  return {
    id: setting.id,
    object: 'list',
    created: setting.createdSec,
    model: setting.model,
    data: prompts.map((prompt, index) => {
      const first = new Random(seedOf(setting.seed, setting.model, prompt.text)).next()
      return {
        index,
        label: first >= 0.5 ? 'LABEL_0' : 'LABEL_1',
        probs: [first, 1 - first],
        num_classes: CLASSES,
      }
    }),
    usage: usageOf(tokensOf(prompts), 0),
  }
}

/** The sum of one random vector per token, of length 1. */
function vectorOf(text: string, seed: number, length: number): Float32Array {
  const vector = new Float32Array(length)
  const tokens = splitTokens(text).slice(0, TOKENS_THAT_COUNT)
  for (const token of tokens.length === 0 ? [''] : tokens) {
    const random = new Random(seedOf(seed, token.trim().toLowerCase()))
    for (let index = 0; index < length; index += 1) vector[index] += random.next() - 0.5
  }
  let squares = 0
  for (const value of vector) squares += value * value
  const scale = squares === 0 ? 0 : 1 / Math.sqrt(squares)
  return vector.map((value) => value * scale)
}

/** 32-bit floats, little-endian as on every platform of the gateway. */
function toBase64(vector: Float32Array): string {
  return Buffer.from(vector.buffer).toString('base64')
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}

/** Share of the wanted words that the document has, less a little for its other words. */
function overlap(wanted: ReadonlySet<string>, words: readonly string[]): number {
  if (wanted.size === 0 || words.length === 0) return 0
  const found = new Set(words.filter((word) => wanted.has(word)))
  const density = words.filter((word) => wanted.has(word)).length / words.length
  return 0.9 * (found.size / wanted.size) + 0.1 * density
}
