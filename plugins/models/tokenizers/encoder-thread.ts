/** Runs tasks on an encoding thread, which loads no other part of the gateway. */
import { workerData } from 'node:worker_threads'
import type { ChatPrompt, PromptPiece } from '#kernel'
import type { CacheCounts } from './cached-encoder.ts'
import { TemplateError } from './jinja/values.ts'
import { type OpenSettings, type OpenTokenizer, openTokenizer } from './open-tokenizer.ts'
import { RenderLimitExceeded } from './render-budget.ts'
import type { TokenizerImage } from './tokenizer-image.ts'

/** One text to encode. */
export type EncodeItem = { readonly tokenizer: string } & (
  | { readonly kind: 'text'; readonly text: string; readonly addSpecialTokens: boolean }
  | { readonly kind: 'chat'; readonly prompt: ChatPrompt }
  | { readonly kind: 'pieces'; readonly pieces: readonly PromptPiece[] }
)

export type EncodeResult =
  | { readonly kind: 'done'; readonly text: string; readonly ids: Uint32Array }
  /** The template rejected the request; the message is for the client. */
  | { readonly kind: 'refused'; readonly message: string }
  /** Rendering exceeded a limit; the message is for the client. */
  | { readonly kind: 'exceeded'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string }

/** Result of one item of a task; a postponed item was not started because others took long. */
export type ItemResult = EncodeResult | { readonly kind: 'postponed' }

export interface EncoderTask {
  /** All of this tokenizer. */
  readonly items: readonly EncodeItem[]
  readonly tokenizer: string
  /** The thread opens it on first use. */
  readonly image: TokenizerImage
  /** All registered tokenizers; a thread drops others. */
  readonly registered: readonly string[]
}

export interface EncoderResult {
  readonly results: readonly ItemResult[]
  /** Null while no cache is enabled. */
  readonly report: CacheReport | null
}

/** Cache counters of a tokenizer since its last report. */
export type CacheReport = CacheCounts & { readonly tokenizer: string; readonly bytes: number }

/** Time after which the remaining chats of a task return to their queue. */
const RENDERING_SLICE_MS = 100

const data = workerData as OpenSettings
/** Opened tokenizers by id. */
const open = new Map<string, OpenTokenizer>()

/** Called by the pool, one task at a time. */
export async function runTask({
  items,
  tokenizer: id,
  image,
  registered,
}: EncoderTask): Promise<EncoderResult> {
  for (const known of open.keys()) if (!registered.includes(known)) open.delete(known)
  const tokenizer = open.get(id) ?? openTokenizer(image, data)
  open.set(id, tokenizer)
  const slice = new RenderingSlice()
  const results = await Promise.all(items.map((item) => encode(item, tokenizer, slice)))
  return { results, report: report(id, tokenizer) }
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
  tokenizer: OpenTokenizer,
  slice: RenderingSlice,
): Promise<ItemResult> {
  try {
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
    return { kind: 'failed', message: error instanceof Error ? error.message : String(error) }
  }
}

function report(tokenizer: string, { encoder }: OpenTokenizer): CacheReport | null {
  if (!data.promptCache.enabled && !data.segmentCache.enabled) return null
  const counts = { ...encoder.counts }
  Object.assign(encoder.counts, { promptHits: 0, promptMisses: 0, segmentHits: 0, segmentMisses: 0 })
  return { ...counts, tokenizer, bytes: encoder.bytes }
}
