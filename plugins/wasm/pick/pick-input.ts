/** Input frame of OnPick, written from cached parts, without an object per worker. @hot */
import type { CandidateView, EngineLoad, ModelTarget, PickRequest, WorkerEntry } from '#kernel'
import { ABI_VERSION } from '../../../wasm-sdk/abi.ts'
import { writeFrame } from '../instances/guest-frame.ts'

/** Members of `request` that are unknown when a worker is picked. */
const NO_REQUEST = '"id":"","method":"","path":"","query":"","route":"","tenant":null,"client_ip":""'
const NO_BODY = new Uint8Array(0)

export interface PickLimits {
  /** Maximum number of candidates in one input. */
  readonly maxCandidates: number
  /** Longer bodies are omitted, bytes. */
  readonly maxBodyBytes: number
  /** Names in lower case. */
  readonly headers: readonly string[]
}

type ShownRequest = Pick<PickRequest, 'model' | 'body' | 'header'>

interface Needs {
  readonly headers: boolean | readonly string[]
  readonly request_body: boolean
}

interface KnownWorker {
  readonly entry: WorkerEntry
  /** Constant members of the candidate, appended to those that change. */
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
   * @param start index of the first candidate in the input; wraps around
   * @returns valid until the next frame of this thread is written
   */
  write(candidates: CandidateView, request: PickRequest, start: number, needs: Needs): Buffer {
    const { length } = candidates
    let shown = ''
    for (let i = 0; i < this.shownOf(candidates); i++) {
      const index = start + i < length ? start + i : start + i - length
      const load = candidates.hasLoads ? loadJson(candidates.load(index)) : 'null'
      const known = this.#workerJson(candidates.worker(index))
      shown += `${i === 0 ? '' : ','}{"in_flight":${candidates.inFlight(index)},"load":${load},${known}`
    }
    return this.#frame(request, request.leg, shown, needs)
  }

  /**
   * The targets of a virtual model as candidates.
   *
   * @param request whose model is the virtual one
   * @param inFlight running requests of the workers of each target
   * @returns valid until the next frame of this thread is written
   */
  writeTargets(
    targets: readonly ModelTarget[],
    request: ShownRequest,
    inFlight: (target: ModelTarget) => number,
    needs: Needs,
  ): Buffer {
    const candidates = targets.map((target) => {
      const { model, weight, labels } = target
      return { in_flight: inFlight(target), load: null, cost: 1, labels, url: '', model, weight }
    })
    return this.#frame(request, 'target', JSON.stringify(candidates).slice(1, -1), needs)
  }

  #frame(
    request: ShownRequest,
    leg: PickRequest['leg'] | 'target',
    candidates: string,
    needs: Needs,
  ): Buffer {
    const body = request.body ?? NO_BODY
    const model = JSON.stringify(request.model)
    const head =
      `{"abi":${ABI_VERSION},"phase":"pick","now_ms":${Date.now()},` +
      `"request":{${NO_REQUEST}${this.#headersJson(request, needs.headers)}},` +
      `"pick":{"model":${model},"leg":"${leg}","body_bytes":${body.length},"candidates":[${candidates}]}}`
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

  #headersJson(request: ShownRequest, needs: boolean | readonly string[]): string {
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

/** JSON has no NaN and Infinity: such values of an engine are sent as -1, unknown. */
function finite(value: number): number {
  return Number.isFinite(value) ? value : -1
}
