/** The tool loop of the protocols: checks the tools of a turn, then runs it. */

import {
  type BuiltInType,
  type Generation,
  type GenerationListener,
  Generations,
  type Host,
  type RequestContext,
  type RequestTracingService,
  type ToolLoopService,
  type ToolTurn,
  tenantOf,
} from '#kernel'
import type { McpConfig } from './config.ts'
import type { ConnectionPool } from './connection/connection-pool.ts'
import type { Caller, ToolMetrics, ToolRunner } from './loop/run-tool.ts'
import { ToolTurnRun } from './loop/tool-turn.ts'
import type { ConfiguredServers } from './tools/configured-servers.ts'
import { OpenServer } from './tools/open-server.ts'
import { checkApprovals, planServers, type ServerPlan } from './tools/server-plan.ts'

export interface ToolLoopParts {
  readonly config: McpConfig
  readonly servers: ConfiguredServers
  readonly pool: ConnectionPool
  readonly runner: ToolRunner
  readonly metrics: ToolMetrics
  /** Undefined if tracing is disabled. */
  readonly tracing: RequestTracingService | undefined
}

export class GatewayToolLoop implements ToolLoopService {
  readonly #host: Host
  readonly #parts: ToolLoopParts

  constructor(host: Host, parts: ToolLoopParts) {
    this.#host = host
    this.#parts = parts
  }

  get isStrict(): boolean {
    return this.#parts.config.isStrict
  }

  run(ctx: RequestContext, turn: ToolTurn, listener: GenerationListener): Generation {
    const { config, pool, runner, metrics, tracing } = this.#parts
    const tenant = tenantOf(ctx)
    const plans = this.#plan(tenant, turn)
    const caller: Caller = {
      ctx,
      tenant,
      requestId: ctx.requestId,
      model: turn.request.model,
      log: this.#host.log,
      ...(tracing !== undefined && { trace: (name, attributes) => tracing.begin(ctx, name, attributes) }),
    }
    const generations = this.#host.use(Generations)
    const run = new ToolTurnRun(
      turn,
      {
        config,
        servers: plans.map((plan) => new OpenServer(plan, pool)),
        runner,
        caller,
        flow: ctx.flow,
        editorOf: generations.textEditors(ctx),
        generate: (request, options) => generations.open(ctx, request, options),
        onEnd: (iterations) => metrics.onTurn(iterations),
      },
      listener,
    )
    ctx.onCancel(() => run.abort())
    run.run().catch((error: unknown) => this.#host.log.error({ err: error }, 'tool event listener failed'))
    return run
  }

  check(tenant: string, turn: Pick<ToolTurn, 'tools' | 'approvals'>): void {
    this.#plan(tenant, turn)
  }

  #plan(tenant: string, turn: Pick<ToolTurn, 'tools' | 'approvals'>): ServerPlan[] {
    const { config, servers } = this.#parts
    const plans = planServers(turn.tools, tenant, config, servers)
    checkApprovals(turn, plans, tenant, servers)
    return plans
  }

  hasBuiltIn(type: BuiltInType, tenant: string): boolean {
    const config = this.#parts.servers.builtIn(type)
    return config !== null && this.#parts.servers.find(config.server, tenant) !== null
  }

  isInternal(label: string): boolean {
    return this.#parts.servers.isInternal(label)
  }
}
