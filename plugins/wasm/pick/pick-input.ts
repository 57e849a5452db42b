/** What a routing module is shown: a frame written from parts that rarely change, without an object for each worker. */
import type { CandidateView, EngineLoad, PickRequest, WorkerEntry } from '#kernel'
import { ABI_VERSION } from '../../../wasm-sdk/abi.ts'
import { writeFrame } from '../instances/guest-frame.ts'

/** Of `request` a choice of a worker knows headers only. */
const NO_REQUEST = '"id":"","method":"","path":"","query":"","route":"","tenant":null,"client_ip":""'
const NO_BODY = new Uint8Array(0)

export interface PickLimits {
  /** Shown at a time. */
  readonly maxCandidates: number
  /** Longer bodies are left out. */
  readonly maxBodyBytes: number
  /** Names in lower case. */
  readonly headers: readonly string[]
}

interface KnownWorker {
  readonly entry: WorkerEntry
  /** Everything but what changes with each request, to stand behind it. */
  readonly json: string
}

export class PickInput {
  readonly #limits: PickLimits
  /** By slot. */
  readonly #known = new Map<number, KnownWorker>()

  constructor(limits: PickLimits) {
    this.#limits = limits
  }

  /** A worker left. */
  forget(slot: number): void {
    this.#known.delete(slot)
  }

  /**
   * @param start the candidate that is shown first; those behind the last one follow from the beginning
   * @returns valid until the next frame of this thread is written
   */
  write(
    candidates: CandidateView,
    request: PickRequest,
    start: number,
    needs: { readonly headers: boolean | readonly string[]; readonly request_body: boolean },
  ): Buffer {
    const { length } = candidates
    let shown = ''
    for (let i = 0; i < this.shownOf(candidates); i++) {
      const index = start + i < length ? start + i : start + i - length
      const load = candidates.hasLoads ? loadJson(candidates.load(index)) : 'null'
      const known = this.#workerJson(candidates.worker(index))
      shown += `${i === 0 ? '' : ','}{"in_flight":${candidates.inFlight(index)},"load":${load},${known}`
    }
    const body = request.body ?? NO_BODY
    const model = JSON.stringify(request.model)
    const head =
      `{"abi":${ABI_VERSION},"phase":"pick","now_ms":${Date.now()},` +
      `"request":{${NO_REQUEST}${this.#headersJson(request, needs.headers)}},` +
      `"pick":{"model":${model},"leg":"${request.leg}","body_bytes":${body.length},"candidates":[${shown}]}}`
    const isBodyShown = needs.request_body && body.length <= this.#limits.maxBodyBytes
    return writeFrame(head, isBodyShown ? body : NO_BODY)
  }

  shownOf({ length }: CandidateView): number {
    return Math.min(length, this.#limits.maxCandidates)
  }

  #workerJson(entry: WorkerEntry): string {
    const known = this.#known.get(entry.slot)
    if (known !== undefined && known.entry === entry) return known.json
    const { url, labels, cost } = entry
    const json = JSON.stringify({ cost, labels, url }).slice(1)
    this.#known.set(entry.slot, { entry, json })
    return json
  }

  #headersJson(request: PickRequest, needs: boolean | readonly string[]): string {
    if (needs === false) return ''
    const pairs: [string, string][] = []
    for (const name of this.#limits.headers) {
      const value = needs === true || needs.includes(name) ? request.header(name) : undefined
      if (value !== undefined) pairs.push([name, value])
    }
    return `,"headers":${JSON.stringify(pairs)}`
  }
}

function loadJson(load: EngineLoad | null): string {
  if (load === null) return 'null'
  const { queuedTokens, usedTokens, kvUsage, tokensPerSecond } = load
  const parts = `"queued_tokens":${finite(queuedTokens)},"used_tokens":${finite(usedTokens)}`
  return `{${parts},"kv_usage":${finite(kvUsage)},"tokens_per_second":${finite(tokensPerSecond)}}`
}

/** Engines are strangers: what is no number as JSON knows them counts as not told. */
function finite(value: number): number {
  return Number.isFinite(value) ? value : -1
}
