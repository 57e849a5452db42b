/**
 * Control's part of finding out what cloud services serve that have no key of their own: their models are asked for when a
 * caller needs one, with that caller's key.
 */
import { createHash } from 'node:crypto'
import type { DescribeTools, ModelCard } from '#kernel'
import { isPrivateWay } from '#shared'
import type { ControlParts } from './control-parts.ts'
import { requireControl } from './controls.ts'
import { normalizeCard, withAliases } from './model-card.ts'
import { toWish } from './onboard.ts'
import type { ModelCardWire } from './wire.ts'
import type { Worker } from './worker.ts'

/** A model that is needed, and a key that may know of it. */
export interface ModelInquiry {
  readonly model: string
  readonly credential: CallerKey
}

/** A caller's key, by the header that it came in. */
export interface CallerKey {
  readonly header: 'authorization' | 'x-api-key'
  readonly key: string
}

const INQUIRY_MS = 5_000
/** A service is not asked again with the same key before this is over. */
const REST_MS = 60_000
/** Keys are the callers' to invent. */
const MAX_REMEMBERED = 1_000
/** Models of one service; more are left out. */
const MAX_MODELS = 10_000

export class ModelInquiries {
  readonly #parts: ControlParts
  readonly #now: () => number
  /** What was asked, by worker and fingerprint of the key, and until when that answer stands. */
  readonly #asked = new Map<string, { readonly endsAtMs: number; readonly answer: Promise<void> }>()

  constructor(parts: ControlParts, now: () => number = () => performance.now()) {
    this.#parts = parts
    this.#now = now
  }

  /** Resolves when every thread knows what was found; never rejects, as the request goes on either way. */
  async learn({ credential }: ModelInquiry): Promise<void> {
    const { registry, config } = this.#parts
    const workers = registry
      .workers()
      .filter((worker) => isUnknown(worker) && mayGetKey(worker, credential, config.callerKeyHosts))
    await Promise.all(workers.map((worker) => this.#ask(worker, credential)))
  }

  #ask(worker: Worker, credential: CallerKey): Promise<void> {
    const nowMs = this.#now()
    const fingerprint = createHash('sha256').update(credential.key).digest('base64')
    const label = `${worker.id} ${fingerprint}`
    const known = this.#asked.get(label)
    if (known !== undefined && known.endsAtMs > nowMs) return known.answer
    for (const [old, { endsAtMs }] of this.#asked)
      if (endsAtMs <= nowMs || this.#asked.size >= MAX_REMEMBERED) this.#asked.delete(old)
      else break
    const answer = this.#describe(worker, credential).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error)
      this.#parts.log.info({ worker: worker.spec.url, reason }, 'a cloud service did not tell its models')
    })
    this.#asked.set(label, { endsAtMs: nowMs + REST_MS, answer })
    return answer
  }

  async #describe(seen: Worker, { key }: CallerKey): Promise<void> {
    const { controls, config, registry, log } = this.#parts
    const { spec, origin } = seen
    const tools: DescribeTools = {
      signal: AbortSignal.timeout(INQUIRY_MS),
      wait: () => Promise.reject(new Error('it did not answer at once')),
      note: () => {},
      log,
      health: null,
      startupTimeoutMs: INQUIRY_MS,
      checkIntervalMs: INQUIRY_MS,
      expandsRanks: false,
      serviceKeys: new Map(),
    }
    const control = requireControl(controls, spec.url)
    const found = await control.describe({ ...toWish(spec, origin), apiKey: key }, tools)
    const worker = registry.byId(seen.id)
    if (worker === undefined || !isUnknown(worker) || !registry.isCurrent(worker)) return
    const cards = found.models.map((card) =>
      withAliases(normalizeCard(card as ModelCardWire), config.modelAliases),
    )
    const models = together(worker.findings.models, cards)
    if (models.length === worker.findings.models.length) return
    await registry.reshape(registry.engineOf(worker), spec, { ...worker.findings, models })
    log.info({ worker: spec.url, models: models.length }, 'a cloud service has told its models')
  }
}

/** A service that gets the key of whoever calls, and whose models nobody has named. */
function isUnknown({ entry, spec }: Worker): boolean {
  return entry.isExternal && spec.apiKey === null && spec.models === null
}

/** What one caller's key does not show, another's may. */
function together(known: readonly ModelCard[], found: readonly ModelCard[]): readonly ModelCard[] {
  const names = new Set(known.flatMap(({ id, aliases = [] }) => [id, ...aliases]))
  return [...known, ...found.filter(({ id }) => !names.has(id))].slice(0, MAX_MODELS)
}

/** Whoever may register workers must not have the keys of callers by it, nor one service the keys of another. */
function mayGetKey({ spec, entry }: Worker, { header }: CallerKey, hosts: readonly string[]): boolean {
  const target = URL.parse(spec.url)
  if (target === null || !hosts.includes(target.hostname)) return false
  if ((entry.provider === 'anthropic') !== (header === 'x-api-key')) return false
  return isPrivateWay(target)
}
