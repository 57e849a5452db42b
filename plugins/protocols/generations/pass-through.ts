/** Decides whether the bytes of a request pass through to workers that take its format, or a generation is opened. @hot */
import {
  type EngineQuirks,
  isObject,
  type RequestContext,
  type WorkerBalance,
  type WorkerEntry,
} from '#kernel'
import { NO_SUCH_ROUTE } from '#shared'

/** Some engines list this format without having its route: they get chat requests after their first 404. */
const UNSURE_API = 'messages'
/** Clients choose the model names of requests to wildcard workers. */
const MAX_SURE_MODELS = 1_024

export class PassThroughDecision {
  readonly #balance: Pick<WorkerBalance, 'workers' | 'workersOf' | 'takesApi'>
  /** Whether the route exists, by the id of each worker that has responded. */
  readonly #hasRoute = new Map<string, boolean>()
  /** Models whose workers all have the route. */
  readonly #sureModels = new Set<string>()
  readonly #quirksOf: (worker: WorkerEntry) => EngineQuirks
  #workers: readonly WorkerEntry[] | null = null
  /** Those whose quirks matter here. */
  #quirky: ReadonlyMap<WorkerEntry, EngineQuirks> = new Map()

  constructor(
    balance: Pick<WorkerBalance, 'workers' | 'workersOf' | 'takesApi'>,
    quirksOf: (worker: WorkerEntry) => EngineQuirks,
  ) {
    this.#balance = balance
    this.#quirksOf = quirksOf
  }

  modelToGenerate(model: string, api: string, ctx: RequestContext | null): string | null {
    this.#followTable()
    if (!this.#balance.takesApi(model, api)) return model
    if (
      ctx !== null &&
      this.#quirky.size > 0 &&
      this.#balance.workersOf(model).some((worker) => this.isMistaken(worker, api, ctx))
    )
      return model
    return api !== UNSURE_API || this.#isSure(model) ? null : model
  }

  isNative(model: string, api: string): boolean {
    return this.#balance.takesApi(model, api)
  }

  /** True if no worker of the model shows it the tools of a chat. */
  dropsTools(model: string | null): boolean {
    this.#followTable()
    if (this.#quirky.size === 0 || model === null) return false
    const workers = this.#balance.workersOf(model)
    return workers.length > 0 && workers.every((one) => this.#quirky.get(one)?.ignoresTools === true)
  }

  takes(worker: WorkerEntry, api: string, ctx: RequestContext): boolean {
    if (!worker.apis.includes(api) || this.isMistaken(worker, api, ctx)) return false
    return api !== UNSURE_API || this.#hasRoute.get(worker.id) !== false
  }

  /** True if the engine would serve the request in another way than its format says, and a generation does not. */
  isMistaken(worker: WorkerEntry, api: string, ctx: RequestContext): boolean {
    this.#followTable()
    const quirks = this.#quirky.get(worker)
    if (quirks === undefined) return false
    if (quirks.mistakesStops === true && ctx.bodyBytes.includes(STOP)) return true
    if (quirks.reportsPerChoice === true && ctx.bodyBytes.includes(CHOICES) && choicesOf(ctx) > 1) return true
    if (api === 'completions') return isMistakenPrompt(membersOf(ctx).prompt, quirks)
    return quirks.repeatsPrefill === true && !ctx.peek().stream && continuesAnswer(membersOf(ctx).messages)
  }

  /** True until a response has shown that the worker has the route. */
  mayLackRoute(worker: WorkerEntry, api: string): boolean {
    return api === UNSURE_API && mayLackRoute(worker) && this.#hasRoute.get(worker.id) !== true
  }

  /** @returns true if the response means that the worker lacks the route, so that its adapter is to be used */
  lacksRoute(worker: WorkerEntry, api: string, status: number): boolean {
    if (api !== UNSURE_API || !mayLackRoute(worker)) return false
    const isMissing = NO_SUCH_ROUTE.has(status) && this.mayLackRoute(worker, api)
    // An error of another kind does not show whether the route exists.
    if (isMissing || status < 400) this.#hasRoute.set(worker.id, !isMissing)
    return isMissing
  }

  #isSure(model: string): boolean {
    if (this.#sureModels.has(model)) return true
    const all = this.#balance.workersOf(model)
    if (!all.every((worker) => !mayLackRoute(worker) || this.#hasRoute.get(worker.id) === true)) return false
    if (this.#sureModels.size >= MAX_SURE_MODELS) this.#sureModels.clear()
    this.#sureModels.add(model)
    return true
  }

  #followTable(): void {
    const { workers } = this.#balance
    if (workers === this.#workers) return
    this.#workers = workers
    this.#quirky = new Map(
      workers.flatMap((worker) => {
        const quirks = this.#quirksOf(worker)
        return Object.keys(quirks).length > 0 ? [[worker, quirks] as const] : []
      }),
    )
    this.#sureModels.clear()
    const ids = new Set(workers.map(({ id }) => id))
    for (const id of this.#hasRoute.keys()) if (!ids.has(id)) this.#hasRoute.delete(id)
  }
}

const STOP = '"stop"'
const CHOICES = '"n"'
const TOOLS = '"tools"'

function membersOf(ctx: RequestContext): Record<string, unknown> {
  const body = ctx.bodyJson()
  return isObject(body) ? body : {}
}

/** A list of numbers is one prompt. */
function isMistakenPrompt(prompt: unknown, { takesOneText, reportsPerChoice }: EngineQuirks): boolean {
  if (!Array.isArray(prompt)) return false
  return takesOneText === true || (reportsPerChoice === true && typeof prompt[0] !== 'number')
}

function choicesOf(ctx: RequestContext): number {
  const { n } = membersOf(ctx)
  return typeof n === 'number' ? n : 1
}

export function hasTools(ctx: RequestContext): boolean {
  const { tools } = ctx.bodyBytes.includes(TOOLS) ? membersOf(ctx) : {}
  return Array.isArray(tools) && tools.length > 0
}

function continuesAnswer(messages: unknown): boolean {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : null
  return isObject(last) && last.role === 'assistant'
}

/** A vendor, which takes no chat requests, gets its own format or nothing. */
function mayLackRoute({ apis }: WorkerEntry): boolean {
  return apis.includes('chat')
}
