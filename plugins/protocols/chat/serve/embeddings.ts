/** Embeddings and classification by engines that take token ids. */
import {
  type EmbeddingInput,
  type EmbeddingService,
  type EmbeddingVector,
  type RequestContext,
  shortValue,
  type WorkerEntry,
} from '#kernel'
import { tryParseJson, warnOfUnread } from '#shared'
import { chatErrors } from '../errors.ts'
import type { ClassifyRequest, EmbeddingRequest } from '../wire/embedding.ts'
import { TOKEN_ID_RULE, toTokenIds } from './token-ids.ts'

/** @throws embedding_dimensions_unsupported, empty_input, invalid_input (400) */
export async function serveEmbedding(
  embeddings: EmbeddingService,
  ctx: RequestContext,
  body: EmbeddingRequest,
): Promise<void> {
  const { model, encoding_format: format } = body
  warnOfUnread(ctx, body, { model: true, input: true, encoding_format: true, dimensions: true })
  if (body.dimensions != null) throw chatErrors.embedding_dimensions_unsupported.with({ param: 'dimensions' })
  const vectors = await embeddings.embed(ctx, { model, inputs: toInputs(body.input) })
  if (ctx.isDone) return
  ctx.json(200, {
    object: 'list',
    data: vectors.map(({ values }, index) => ({
      object: 'embedding',
      index,
      embedding: format === 'base64' ? toBase64(values) : values,
    })),
    model,
    usage: usageOf(vectors),
  })
}

/** Little-endian 32-bit floats. */
function toBase64(values: readonly number[]): string {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeFloatLE(value, index * 4)
  return bytes.toString('base64')
}

function usageOf(vectors: readonly EmbeddingVector[]) {
  const tokens = vectors.reduce((sum, { promptTokens }) => sum + promptTokens, 0)
  return { prompt_tokens: tokens, total_tokens: tokens, completion_tokens: 0 }
}

const INPUT = { param: 'input' } as const
/** Inputs of one request; each is a call to a worker. */
const MAX_INPUTS = 2_048

/** @throws empty_input, invalid_input (400) */
function toInputs(input: unknown): EmbeddingInput[] {
  if (typeof input === 'string') return [toText(input)]
  if (!Array.isArray(input))
    throw chatErrors.invalid_input.with(INPUT, `it must be a string or a list (got ${shortValue(input)})`)
  if (input.length === 0) throw chatErrors.empty_input.with(INPUT)
  if (typeof input[0] === 'number') return [toIds(input)]
  if (input.length > MAX_INPUTS)
    throw chatErrors.invalid_input.with(
      INPUT,
      `it must hold at most ${MAX_INPUTS} inputs (got ${input.length})`,
    )
  return input.map((one: unknown) => (Array.isArray(one) ? toIds(one) : toText(one)))
}

function toText(value: unknown): string {
  if (typeof value !== 'string')
    throw chatErrors.invalid_input.with(
      INPUT,
      `a list must hold strings or token ids only (got ${shortValue(value)})`,
    )
  if (value === '') throw chatErrors.empty_input.with(INPUT)
  return value
}

function toIds(list: readonly unknown[]): Uint32Array {
  if (list.length === 0) throw chatErrors.empty_input.with(INPUT)
  const ids = toTokenIds(list)
  if (ids === null) throw chatErrors.invalid_input.with(INPUT, TOKEN_ID_RULE)
  return ids
}

/** @throws empty_input, invalid_input (400), classification_empty (500) */
export async function serveClassify(
  embeddings: EmbeddingService,
  ctx: RequestContext,
  body: ClassifyRequest,
): Promise<void> {
  const { model, input } = body
  warnOfUnread(ctx, body, { model: true, input: true })
  const vectors = await embeddings.embed(ctx, { model, inputs: toInputs(input) })
  if (ctx.isDone) return
  ctx.json(200, {
    id: ctx.requestId,
    object: 'list',
    created: Math.floor(Date.now() / 1000),
    model,
    data: vectors.map(toClass),
    usage: usageOf(vectors),
  })
}

function toClass({ values, worker }: EmbeddingVector, index: number) {
  if (values.length === 0) throw chatErrors.classification_empty()
  const probs = softmax(values)
  let best = 0
  for (let at = 1; at < probs.length; at++) if (probs[at] > probs[best]) best = at
  return { index, label: labelOf(worker, best), probs, num_classes: probs.length }
}

/** Values of any size: the largest is subtracted before exponentiation. */
function softmax(values: readonly number[]): number[] {
  let largest = Number.NEGATIVE_INFINITY
  for (const value of values) if (value > largest) largest = value
  const raised = values.map((value) => Math.exp(value - largest))
  const sum = raised.reduce((all, one) => all + one, 0)
  return raised.map((one) => one / sum)
}

const labelsOf = new WeakMap<WorkerEntry, ReadonlyMap<string, string>>()

function labelOf(worker: WorkerEntry, place: number): string {
  let labels = labelsOf.get(worker)
  if (labels === undefined) {
    labels = readLabels(worker.labels.id2label_json ?? '')
    labelsOf.set(worker, labels)
  }
  return labels.get(String(place)) ?? `LABEL_${place}`
}

function readLabels(text: string): ReadonlyMap<string, string> {
  const value = tryParseJson(text) ?? {}
  return new Map(Object.entries(value).filter(([, label]) => typeof label === 'string'))
}
