/** What an engine says of its model's own sampling settings: they fill what the client leaves out. */
import type { Logger, Sampling, WorkerEntry } from '#kernel'

export const DEFAULTS_LABEL = 'default_sampling_params_json'

const FIELDS = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
  ['min_p', 'minP'],
  ['repetition_penalty', 'repetitionPenalty'],
] as const

export class SamplingDefaults {
  readonly #byWorker = new WeakMap<WorkerEntry, Sampling>()
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  /** The client's settings with the worker's defaults behind them. */
  fill(sampling: Sampling, worker: WorkerEntry): Sampling {
    let defaults = this.#byWorker.get(worker)
    if (defaults === undefined) {
      defaults = this.#read(worker)
      this.#byWorker.set(worker, defaults)
    }
    return defaults === NONE ? sampling : { ...defaults, ...sampling }
  }

  #read({ labels, url }: WorkerEntry): Sampling {
    const text = labels[DEFAULTS_LABEL] ?? ''
    if (text === '') return NONE
    try {
      const given = JSON.parse(text) as Record<string, unknown> | null
      const found = FIELDS.flatMap(([wire, own]) => {
        const value = given?.[wire]
        return typeof value === 'number' && Number.isFinite(value) ? [[own, value]] : []
      })
      return found.length === 0 ? NONE : (Object.fromEntries(found) as Sampling)
    } catch {
      this.#log.warn({ worker: url }, 'sampling defaults of an engine are not JSON; they are left aside')
      return NONE
    }
  }
}

const NONE: Sampling = Object.freeze({})
