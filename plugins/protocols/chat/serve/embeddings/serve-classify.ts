/** Classification: an engine's vector holds one value a class. */

import type { EmbeddingService, EmbeddingVector, RequestContext, Static, WorkerEntry } from '#kernel'
import { parseBoundedText } from '#shared'
import { chatErrors } from '../../errors.ts'
import type { ClassifyRequest } from '../../wire/classify.ts'
import { toInputs } from './embedding-inputs.ts'
import { usageOf } from './serve-embedding.ts'

/** Never throws: what goes wrong is the client's reply. */
export async function serveClassify(
  embeddings: EmbeddingService,
  ctx: RequestContext,
  { model, input }: Static<typeof ClassifyRequest>,
): Promise<void> {
  try {
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
  } catch (error) {
    ctx.fail(error)
  }
}

function toClass({ values, worker }: EmbeddingVector, index: number) {
  if (values.length === 0) throw chatErrors.classification_empty()
  const probs = softmax(values)
  let best = 0
  for (let at = 1; at < probs.length; at++) if (probs[at] > probs[best]) best = at
  return { index, label: labelOf(worker, best), probs, num_classes: probs.length }
}

/** Values of any size: the largest is taken off before they are raised. */
export function softmax(values: readonly number[]): number[] {
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
  try {
    const value = parseBoundedText(text)
    if (typeof value !== 'object' || value === null) return new Map()
    return new Map(Object.entries(value).map(([place, label]) => [place, String(label)]))
  } catch {
    return new Map()
  }
}
