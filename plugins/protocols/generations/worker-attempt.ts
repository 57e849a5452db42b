/** One attempt of a generation at the picked worker, for its engine adapter. */
import type {
  EngineAdapter,
  EngineAttempt,
  GenerationRequest,
  PreparedPrompt,
  RelayContext,
  WorkerEntry,
} from '#kernel'
import { uuidV7 } from '#shared'
import { fitNames, hasNameLimits } from './fitted-names.ts'

const NO_NAMES: ReadonlyMap<string, string> = new Map()

export class WorkerAttempt implements EngineAttempt {
  readonly request: GenerationRequest
  /** The client's names of functions by those that the worker got in their place. */
  readonly names: ReadonlyMap<string, string>
  readonly model: string
  readonly prepared: PreparedPrompt | null
  readonly worker: WorkerEntry
  readonly stream: boolean
  readonly ctx: RelayContext
  readonly adapter: EngineAdapter
  #id: string | null = null

  constructor(
    run: { request: GenerationRequest; stream: boolean; ctx: RelayContext },
    adapter: EngineAdapter,
    prepared: PreparedPrompt | null,
    worker: WorkerEntry,
    model: string,
  ) {
    const fitted = hasNameLimits(worker, adapter) ? fitNames(run.request) : null
    this.request = fitted?.request ?? run.request
    this.names = fitted?.names ?? NO_NAMES
    this.stream = run.stream
    this.ctx = run.ctx
    this.adapter = adapter
    this.prepared = prepared
    this.worker = worker
    this.model = model
  }

  get id(): string {
    this.#id ??= `${this.ctx.requestId}-${uuidV7()}`
    return this.#id
  }
}
