/** A server as one turn uses it: the tools that the request may use, and calls that are repeated after a lost session. */
import type { ApprovalRule, ListedTool, ToolFilter } from '#kernel'
import type { ConnectionPool, Lease } from '../connection/connection-pool.ts'
import { isReadOnly } from '../connection/read-tools.ts'
import type { CallOptions } from '../connection/server-connection.ts'
import type { ToolOutput } from '../connection/tool-output.ts'
import { ToolServerError, toToolServerError } from '../connection/tool-server-error.ts'
import type { ServerPlan } from './server-plan.ts'

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
  async tools(): Promise<readonly ListedTool[]> {
    const all = await this.#onConnection(({ connection }) => connection.tools())
    const usable = all.filter((tool) => this.#mayUse(tool))
    // The same array keeps its cached fingerprint.
    return usable.length === all.length ? all : usable
  }

  /** @throws ToolServerError */
  call(name: string, input: Record<string, unknown>, options: CallOptions): Promise<ToolOutput> {
    return this.#onConnection(({ connection }) => connection.call(name, input, options))
  }

  /** Releases the connection, also one that is still being opened. */
  release(): void {
    this.#isReleased = true
    this.#lease?.then(
      (lease) => lease.release(),
      () => {},
    )
  }

  /** Repeats on a new connection if the server has lost the session: it has not run the work then. */
  async #onConnection<T>(work: (lease: Lease) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#openLease())
    } catch (error) {
      const failure = toToolServerError(error)
      if (!failure.isSessionLost || this.#isReleased) throw failure
      return await work(await this.#openLease())
    }
  }

  async #openLease(): Promise<Lease> {
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
    this.#lease ??= this.#pool.lease(this.plan.key, this.plan.target, this.plan.place)
    const lease = await this.#lease
    if (this.#isReleased) lease.release()
    return lease
  }

  #mayUse(tool: ListedTool): boolean {
    const { builtIn, config, request } = this.plan
    if (builtIn !== null) return tool.name === builtIn.config.tool
    if (config?.allowedTools !== undefined && !includesName(config.allowedTools, tool.name)) return false
    if (config !== null && includesName(config.deniedTools, tool.name)) return false
    if (request?.deniedTools !== undefined && includesName(request.deniedTools, tool.name)) return false
    return isAllowed(tool, request?.allowedTools)
  }
}

/** An empty list allows no tool. */
export function isAllowed(tool: ListedTool, filter: ToolFilter | undefined): boolean {
  return filter === undefined || !hasMembers(filter) || matches(tool, filter)
}

/**
 * A tool that the rule object does not name needs approval.
 *
 * @param usual applies if the request has no rule
 */
export function needsApproval(
  tool: ListedTool,
  rule: ApprovalRule | undefined,
  usual: 'always' | 'never',
): boolean {
  const applied = rule ?? usual
  if (typeof applied === 'string') return applied === 'always'
  return !(applied.never !== undefined && hasMembers(applied.never) && matches(tool, applied.never))
}

/** Cached, because lists of requests may be long and are searched for each tool. */
const sets = new WeakMap<readonly string[], ReadonlySet<string>>()

function includesName(names: readonly string[], name: string): boolean {
  let set = sets.get(names)
  if (set === undefined) {
    set = new Set(names)
    sets.set(names, set)
  }
  return set.has(name)
}

function matches(tool: ListedTool, { toolNames, isReadOnly: mustBeReadOnly }: ToolFilter): boolean {
  if (toolNames !== undefined && !includesName(toolNames, tool.name)) return false
  return mustBeReadOnly === undefined || mustBeReadOnly === isReadOnly(tool)
}

function hasMembers(filter: ToolFilter): boolean {
  return filter.toolNames !== undefined || filter.isReadOnly !== undefined
}
