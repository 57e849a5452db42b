/**
 * Runs one call: guards can reject or change it, the tenant's limit and a timeout apply, and every failure becomes a
 * result that the model can read. Each call is logged and counted.
 */
import type {
  CalledTool,
  GuardDecision,
  GuardedCall,
  Logger,
  Metrics,
  RequestContext,
  RequestStepsService,
  SpanAttributes,
  ToolCallGuard,
  ToolCallGuardsService,
  ToolCallResult,
  WorkSpan,
} from '#kernel'
import type { McpConfig } from '../config.ts'
import type { QuestionOptions } from '../connection/call-tool.ts'
import type { CallOptions } from '../connection/server-connection.ts'
import type { ToolOutput } from '../connection/tool-output.ts'
import { ToolServerError, toToolServerError } from '../connection/tool-server-error.ts'
import { checkArguments, describeProblem, parseArguments } from '../tools/check-arguments.ts'
import { toServerArguments } from './built-in-functions.ts'
import type { OfferedTool } from './offered-tools.ts'

/** The tenant and request of a call. */
export interface Caller {
  /** Null outside of a request. */
  readonly ctx: RequestContext | null
  readonly tenant: string
  readonly requestId: string
  readonly model: string | null
  readonly log: Logger
  /** Starts a span of the request; absent if tracing is disabled. */
  readonly trace?: (name: string, attributes: SpanAttributes) => WorkSpan | null
}

/** A result with images for the model. */
export interface RanCall {
  readonly result: ToolCallResult
  readonly images: ToolOutput['images']
}

interface RunOptions extends QuestionOptions {
  readonly signal: AbortSignal
}

type Outcome = Omit<ToolCallResult, 'durationMs'> & {
  readonly images: ToolOutput['images']
  readonly label: string
}

export class ToolRunner {
  readonly #config: McpConfig
  readonly #guards: ToolCallGuardList
  readonly #tenantCalls: TenantCalls
  readonly #metrics: ToolMetrics
  readonly #steps: RequestStepsService | undefined

  constructor(
    config: McpConfig,
    guards: ToolCallGuardList,
    metrics: ToolMetrics,
    steps?: RequestStepsService,
  ) {
    this.#steps = steps
    this.#config = config
    this.#guards = guards
    this.#tenantCalls = new TenantCalls(config.limits.maxCallsPerTenant)
    this.#metrics = metrics
  }

  /** Never rejects. */
  async run(tool: OfferedTool, argumentText: string, caller: Caller, options: RunOptions): Promise<RanCall> {
    const startedMs = performance.now()
    const server = metricLabelOf(tool)
    const span = beginSpan(tool, server, caller)
    const { images, label, ...outcome } = await this.#outcomeOf(tool, argumentText, caller, options)
    const durationMs = performance.now() - startedMs
    this.#metrics.onCall(server, label, durationMs)
    this.#writeAudit(tool, argumentText, caller, label, durationMs)
    const error = outcome.status === 'failed' ? label : null
    span?.end(error)
    if (caller.ctx !== null)
      this.#steps?.note(caller.ctx, {
        kind: 'tool',
        name: `${nameOf(tool.called)} at ${server}`,
        startedAtMs: startedMs,
        endedAtMs: startedMs + durationMs,
        error,
      })
    return { result: { ...outcome, durationMs }, images }
  }

  async #outcomeOf(
    tool: OfferedTool,
    argumentText: string,
    caller: Caller,
    options: RunOptions,
  ): Promise<Outcome> {
    const input = parseArguments(argumentText)
    if (typeof input === 'string') return refused('invalid_arguments', `The arguments ${input}.`)
    // The arguments of built-in tools are renamed for the server.
    const isMapped = tool.called.kind === 'built_in'
    const problem = isMapped ? null : checkArguments(tool.tool.inputSchema, input, argumentText)
    if (problem !== null)
      return refused(
        'invalid_arguments',
        `The arguments do not match the schema of the tool: ${describeProblem(problem)}.`,
      )
    if (!this.#tenantCalls.enter(caller.tenant))
      return refused('tenant_limit', 'Too many tools run at the moment; try again later.')
    try {
      const { ctx, tenant, requestId, model } = caller
      const guarded: GuardedCall = {
        ctx,
        tenant,
        requestId,
        model,
        tool: tool.called,
        server: tool.server.plan.server,
        arguments: input,
      }
      const decision = await this.#guards.check(guarded, caller.log)
      if (decision.action === 'reject') return refused('rejected', decision.text)
      const final = decision.action === 'modify' ? { ...decision.arguments } : input
      const output = await send(tool, final, { ...options, timeoutMs: this.#config.limits.callMs })
      return toOutcome(output, tool.server.plan.server)
    } catch (error) {
      return failed(toToolServerError(error))
    } finally {
      this.#tenantCalls.leave(caller.tenant)
    }
  }

  #writeAudit(
    { called }: OfferedTool,
    argumentText: string,
    caller: Caller,
    outcome: string,
    durationMs: number,
  ): void {
    const { audit } = this.#config
    if (audit === 'off') return
    const fields = {
      requestId: caller.requestId,
      tenant: caller.tenant,
      server: called.kind === 'mcp' ? called.label : called.type,
      tool: nameOf(called),
      durationMs: Math.round(durationMs),
      outcome,
      ...(audit === 'arguments' && { arguments: argumentText }),
    }
    caller.log.info(fields, 'tool call')
  }
}

function toOutcome(output: ToolOutput, server: string): Outcome {
  const { text, structured, images, question } = output
  if (output.isError)
    return { ...failed(new ToolServerError('mcp_tool_execution_error', 0, text)), structured, images }
  const status = question === undefined ? 'completed' : 'incomplete'
  return {
    status,
    output: text,
    error: null,
    modelText: text,
    structured,
    images,
    ...(question !== undefined && { question: { ...question, server } }),
    label: status,
  }
}

function send({ server, tool }: OfferedTool, input: Record<string, unknown>, options: CallOptions) {
  const { builtIn } = server.plan
  const sent = builtIn === null ? input : toServerArguments(input, builtIn.config, builtIn.request)
  return server.call(tool.name, sent, options)
}

/** A configured label, the type of a built-in tool, or `client` for servers named by clients. */
function metricLabelOf({ called, server }: OfferedTool): string {
  return called.kind === 'built_in' ? called.type : (server.plan.config?.label ?? 'client')
}

function nameOf(called: CalledTool): string {
  return called.kind === 'mcp' ? called.name : called.type
}

/** Names follow OpenTelemetry's conventions for generative AI: "execute tool" spans. */
function beginSpan({ called }: OfferedTool, server: string, { trace }: Caller): WorkSpan | null {
  if (trace === undefined) return null
  const name = nameOf(called)
  return trace(`execute_tool ${name}`, {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': name,
    'gen_ai.tool.type': 'extension',
    'weir.tool_server': server,
  })
}

function failed({ type, code, message }: ToolServerError): Outcome {
  const text = message === '' ? 'The tool failed.' : message
  const error = { type, code, message: text }
  return { status: 'failed', output: '', error, modelText: text, structured: null, images: [], label: type }
}

function refused(label: string, text: string): Outcome {
  return { ...failed(new ToolServerError('mcp_tool_execution_error', 0, text)), label }
}

class TenantCalls {
  readonly #most: number
  readonly #running = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** False if the tenant has reached its limit; otherwise the caller must call `leave`. */
  enter(tenant: string): boolean {
    const count = this.#running.get(tenant) ?? 0
    if (count >= this.#most) return false
    this.#running.set(tenant, count + 1)
    return true
  }

  leave(tenant: string): void {
    const count = this.#running.get(tenant) ?? 0
    if (count <= 1) this.#running.delete(tenant)
    else this.#running.set(tenant, count - 1)
  }
}

/** Guards of other plugins, called in order: the first rejection ends the check, changes accumulate. */
export class ToolCallGuardList implements ToolCallGuardsService {
  #guards: readonly ToolCallGuard[] = []

  add(guard: ToolCallGuard): () => void {
    this.#guards = [...this.#guards, guard]
    return () => {
      this.#guards = this.#guards.filter((other) => other !== guard)
    }
  }

  /** Never rejects: a failing guard rejects the call. */
  async check(call: GuardedCall, log: Logger): Promise<GuardDecision> {
    let current = call
    for (const guard of this.#guards) {
      try {
        const decision = await guard.check(current)
        if (decision.action === 'reject') return decision
        if (decision.action === 'modify') current = { ...current, arguments: decision.arguments }
      } catch (error) {
        log.error({ guard: guard.name, error: (error as Error)?.message }, 'tool call guard failed')
        return { action: 'reject', text: 'The call was stopped by a guard that failed.' }
      }
    }
    return current === call ? { action: 'continue' } : { action: 'modify', arguments: current.arguments }
  }
}

/** Labels have configured values only: names from clients are unbounded. */
export class ToolMetrics {
  readonly #calls
  readonly #seconds
  readonly #turns

  constructor(metrics: Metrics, openConnections: () => number) {
    this.#calls = metrics.counter({
      name: 'weir_mcp_tool_calls_total',
      help: 'Tool calls that the gateway ran, by server and outcome.',
      labels: ['server', 'outcome'],
    })
    this.#seconds = metrics.histogram({
      name: 'weir_mcp_tool_call_duration_seconds',
      help: 'Duration of tool calls.',
      labels: ['server'],
    })
    this.#turns = metrics.histogram({
      name: 'weir_mcp_turn_iterations',
      help: 'Model turns per request with tools of the gateway.',
      buckets: [1, 2, 3, 5, 8, 13, 21, 34],
    })
    const connections = metrics
      .gauge({ name: 'weir_mcp_connections', help: 'Open connections to tool servers.' })
      .labels()
    metrics.onCollect(() => {
      connections.value = openConnections()
    })
  }

  onCall(server: string, outcome: string, durationMs: number): void {
    this.#calls.labels(server, outcome).inc()
    this.#seconds.labels(server).observe(durationMs / 1_000)
  }

  onTurn(iterations: number): void {
    this.#turns.labels().observe(iterations)
  }
}
