/** A server in the hands of one turn: its tools as this request may see them, and calls that survive a lost session. */
import type { ConnectionPool, Lease } from '../connection/connection-pool.ts'
import type { ToolOutput } from '../connection/read-result.ts'
import type { ServerTool } from '../connection/read-tools.ts'
import type { CallOptions } from '../connection/server-connection.ts'
import { ToolServerError, toToolServerError } from '../connection/tool-server-error.ts'
import type { ServerPlan } from './server-plan.ts'
import { includesName, isAllowed } from './tool-filter.ts'

export class OpenServer {
  readonly plan: ServerPlan
  readonly #pool: ConnectionPool
  #lease: Promise<Lease> | null = null
  #isReleased = false

  constructor(plan: ServerPlan, pool: ConnectionPool) {
    this.plan = plan
    this.#pool = pool
  }

  /** The tools that this request may use, in the server's order. @throws ToolServerError */
  async tools(): Promise<readonly ServerTool[]> {
    const all = await this.#onConnection(({ connection }) => connection.tools())
    const usable = all.filter((tool) => this.#mayUse(tool))
    // The same array, where it is the same list: what is known of it need not be found out again.
    return usable.length === all.length ? all : usable
  }

  /** @throws ToolServerError */
  call(name: string, input: Record<string, unknown>, options: CallOptions): Promise<ToolOutput> {
    return this.#onConnection(({ connection }) => connection.call(name, input, options))
  }

  /** The turn is over; what is still being opened is given back when it is there. */
  release(): void {
    this.#isReleased = true
    this.#lease?.then(
      (lease) => lease.release(),
      () => {},
    )
  }

  /** Once more on a new connection when the server has forgotten the session: then it has not run anything. */
  async #onConnection<T>(work: (lease: Lease) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#standing())
    } catch (error) {
      const failure = toToolServerError(error)
      if (!failure.isSessionLost || this.#isReleased) throw failure
      return await work(await this.#standing())
    }
  }

  async #standing(): Promise<Lease> {
    if (this.#isReleased) throw new ToolServerError('http_error', 0, 'the request is over')
    const held = this.#lease
    if (held !== null) {
      const lease = await held.catch(() => null)
      if (lease !== null && !lease.connection.isClosed) return lease
      if (this.#lease === held) {
        lease?.release()
        this.#lease = null
      }
    }
    this.#lease ??= this.#pool.lease(this.plan.key, this.plan.target)
    const lease = await this.#lease
    if (this.#isReleased) lease.release()
    return lease
  }

  #mayUse(tool: ServerTool): boolean {
    const { builtIn, config, request } = this.plan
    if (builtIn !== null) return tool.name === builtIn.config.tool
    if (config?.allowedTools !== undefined && !includesName(config.allowedTools, tool.name)) return false
    if (config !== null && includesName(config.deniedTools, tool.name)) return false
    if (request?.deniedTools !== undefined && includesName(request.deniedTools, tool.name)) return false
    return isAllowed(tool, request?.allowedTools)
  }
}
