/** Runs tasks on a pool thread, which loads no other part of the gateway. */
import { workerData } from 'node:worker_threads'
import type {
  CacheReport,
  EncodeItem,
  EncoderReply,
  EncoderTask,
  EncoderThreadData,
  ItemResult,
  TokenizerPlace,
} from './encoder-task.ts'
import { loadTokenizer, type OpenTokenizer } from './load-tokenizer.ts'
import { RenderLimitExceeded } from './render-budget.ts'
import { TemplateError } from './template-functions.ts'
import { unpackBundle } from './unpack-bundle.ts'

/** Time after which the remaining chats of a task return to their queue. */
const RENDERING_SLICE_MS = 100

const data = workerData as EncoderThreadData
/** Loaded tokenizers by id. */
const open = new Map<string, Promise<OpenTokenizer>>()

/** Called by the pool, one task at a time. */
export async function runTask(task: EncoderTask): Promise<EncoderReply> {
  if (task.kind === 'load') return load(task.place)
  if (task.kind === 'unpack') return unpack(task)
  const places = new Map(task.places.map((place) => [place.id, place]))
  for (const id of open.keys()) if (!places.has(id)) open.delete(id)
  const slice = new RenderingSlice()
  const results = await Promise.all(task.items.map((item) => encode(item, places.get(item.tokenizer), slice)))
  return { kind: 'encoded', results, report: await report(task.items) }
}

async function load(place: TokenizerPlace): Promise<EncoderReply> {
  try {
    return { kind: 'loaded', facts: (await find(place)).facts }
  } catch (error) {
    return { kind: 'unusable', message: messageOf(error) }
  }
}

function unpack({ archive, folder, limits }: Extract<EncoderTask, { kind: 'unpack' }>): EncoderReply {
  try {
    unpackBundle(archive, folder, limits)
    return { kind: 'unpacked' }
  } catch (error) {
    return { kind: 'unusable', message: messageOf(error) }
  }
}

/** Time for rendering chats in one task; it starts with the first chat, which is always rendered. */
class RenderingSlice {
  #endMs: number | null = null

  get isOver(): boolean {
    this.#endMs ??= performance.now() + RENDERING_SLICE_MS
    return performance.now() > this.#endMs
  }
}

async function encode(
  item: EncodeItem,
  place: TokenizerPlace | undefined,
  slice: RenderingSlice,
): Promise<ItemResult> {
  if (place === undefined) return { kind: 'failed', message: 'the tokenizer was removed' }
  try {
    const tokenizer = await find(place)
    if (item.kind === 'pieces')
      return { kind: 'done', text: '', ids: await tokenizer.encodePieces(item.pieces) }
    if (item.kind === 'chat' && slice.isOver) return { kind: 'postponed' }
    const text = item.kind === 'chat' ? tokenizer.templates.render(item.prompt) : item.text
    const isSpecial = item.kind === 'text' && item.addSpecialTokens
    const ids = isSpecial ? await tokenizer.encodeSpecial(text) : await tokenizer.encoder.encode(text)
    // The caller already has the text of other items.
    return { kind: 'done', text: item.kind === 'chat' ? text : '', ids }
  } catch (error) {
    if (error instanceof TemplateError) return { kind: 'refused', message: error.message }
    if (error instanceof RenderLimitExceeded) return { kind: 'exceeded', message: error.message }
    return { kind: 'failed', message: messageOf(error) }
  }
}

function find(place: TokenizerPlace): Promise<OpenTokenizer> {
  const known = open.get(place.id)
  if (known !== undefined) return known
  const loading = loadTokenizer(place, data)
  open.set(place.id, loading)
  loading.catch(() => open.delete(place.id))
  return loading
}

async function report(items: readonly EncodeItem[]): Promise<CacheReport> {
  if (!data.promptCache.enabled && !data.segmentCache.enabled) return []
  const used = [...new Set(items.map(({ tokenizer }) => tokenizer))]
  const settled = await Promise.allSettled(used.map((id) => open.get(id)))
  return settled.flatMap((outcome, place) => {
    const encoder = outcome.status === 'fulfilled' ? outcome.value?.encoder : undefined
    if (encoder === undefined) return []
    const counts = { ...encoder.counts }
    Object.assign(encoder.counts, { promptHits: 0, promptMisses: 0, segmentHits: 0, segmentMisses: 0 })
    return [{ ...counts, tokenizer: used[place], bytes: encoder.bytes }]
  })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
