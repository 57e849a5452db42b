/**
 * Runs one call: guards can reject or change it, the tenant's limit and a timeout apply, and every failure becomes a
 * result that the model can read. Each call is logged and counted.
 */
import {
  type CalledTool,
  type GuardDecision,
  type GuardedCall,
  isObject,
  type Logger,
  parseBoundedText,
  type SpanAttributes,
  type ToolCallGuard,
  type ToolCallGuardsService,
  type ToolCallResult,
  type WorkSpan,
} from '#kernel'
import type { ToolOutput } from '../connection/read-result.ts'
import { ToolServerError, toToolServerError } from '../connection/tool-server-error.ts'
import type { ToolMetrics } from './tool-metrics.ts'

/** The tenant and request of a call. */
export interface Caller {
  readonly tenant: string
  readonly requestId: string
  readonly model: string | null
  readonly log: Logger
  /** Starts a span of the request; absent if tracing is disabled. */
  readonly trace?: (name: string, attributes: SpanAttributes) => WorkSpan | null
}

export interface ToolCall {
  readonly tool: CalledTool
  /** For guards; see `GuardedCall`. */
  readonly server: string
  /** Metric label: a configured label, the type of a built-in tool, or `client` for servers named by clients. */
  readonly metricLabel: string
  /** As the model wrote them. */
  readonly argumentText: string
  /** Sends the call to its server. @throws ToolServerError */
  readonly send: (
    input: Record<string, unknown>,
    signal: AbortSignal,
    timeoutMs: number,
  ) => Promise<ToolOutput>
}

export interface RunSettings {
  readonly callMs: number
  readonly audit: 'off' | 'calls' | 'arguments'
}

/** A result with images for the model. */
export interface RanCall {
  readonly result: ToolCallResult
  readonly images: ToolOutput['images']
}

type Outcome = Omit<ToolCallResult, 'durationMs'> & {
  readonly images: ToolOutput['images']
  readonly label: string
}

export class ToolRunner {
  readonly #settings: RunSettings
  readonly #guards: ToolCallGuardList
  readonly #tenantCalls: TenantCalls
  readonly #metrics: ToolMetrics

  constructor(
    settings: RunSettings,
    guards: ToolCallGuardList,
    tenantCalls: TenantCalls,
    metrics: ToolMetrics,
  ) {
    this.#settings = settings
    this.#guards = guards
    this.#tenantCalls = tenantCalls
    this.#metrics = metrics
  }

  /** Never rejects. */
  async run(call: ToolCall, caller: Caller, signal: AbortSignal): Promise<RanCall> {
    const startedMs = performance.now()
    const span = beginSpan(call, caller)
    const { images, label, ...outcome } = await this.#outcomeOf(call, caller, signal)
    const durationMs = performance.now() - startedMs
    this.#metrics.onCall(call.metricLabel, label, durationMs)
    this.#writeAudit(call, caller, label, durationMs)
    span?.end(outcome.status === 'failed' ? label : null)
    return { result: { ...outcome, durationMs }, images }
  }

  async #outcomeOf(call: ToolCall, caller: Caller, signal: AbortSignal): Promise<Outcome> {
    const input = parseArguments(call.argumentText)
    if (input === null) return refused('invalid_arguments', 'The arguments are not a JSON object.')
    if (!this.#tenantCalls.enter(caller.tenant))
      return refused('tenant_limit', 'Too many tools run at the moment; try again later.')
    try {
      const { tenant, requestId, model } = caller
      const guarded: GuardedCall = {
        tenant,
        requestId,
        model,
        tool: call.tool,
        server: call.server,
        arguments: input,
      }
      const decision = await this.#guards.check(guarded, caller.log)
      if (decision.action === 'reject') return refused('rejected', decision.text)
      const final = decision.action === 'modify' ? { ...decision.arguments } : input
      return this.#toOutcome(await call.send(final, signal, this.#settings.callMs))
    } catch (error) {
      return failed(toToolServerError(error))
    } finally {
      this.#tenantCalls.leave(caller.tenant)
    }
  }

  #toOutcome(output: ToolOutput): Outcome {
    const { text, structured, images } = output
    if (output.isError) return failed(new ToolServerError('mcp_tool_execution_error', 0, text), structured)
    return {
      status: 'completed',
      output: text,
      error: null,
      modelText: text,
      structured,
      images,
      label: 'completed',
    }
  }

  #writeAudit(call: ToolCall, caller: Caller, outcome: string, durationMs: number): void {
    if (this.#settings.audit === 'off') return
    const { tool } = call
    const fields = {
      requestId: caller.requestId,
      tenant: caller.tenant,
      server: tool.kind === 'mcp' ? tool.label : tool.type,
      tool: tool.kind === 'mcp' ? tool.name : tool.type,
      durationMs: Math.round(durationMs),
      outcome,
      ...(this.#settings.audit === 'arguments' && { arguments: call.argumentText }),
    }
    caller.log.info(fields, 'tool call')
  }
}

/** Names follow OpenTelemetry's conventions for generative AI: "execute tool" spans. */
function beginSpan({ tool, metricLabel }: ToolCall, { trace }: Caller): WorkSpan | null {
  if (trace === undefined) return null
  const name = tool.kind === 'mcp' ? tool.name : tool.type
  return trace(`execute_tool ${name}`, {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': name,
    'gen_ai.tool.type': 'extension',
    'weir.tool_server': metricLabel,
  })
}

function failed({ type, code, message }: ToolServerError, structured: unknown = null): Outcome {
  const text = message === '' ? 'The tool failed.' : message
  const error = { type, code, message: text }
  return { status: 'failed', output: '', error, modelText: text, structured, images: [], label: type }
}

function refused(label: string, text: string): Outcome {
  return { ...failed(new ToolServerError('mcp_tool_execution_error', 0, text)), label }
}

export class TenantCalls {
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

/** Null if the text is not a JSON object; an empty text is an empty object. */
export function parseArguments(text: string): Record<string, unknown> | null {
  if (text.trim() === '') return {}
  try {
    const value = parseBoundedText(text)
    return isObject(value) ? value : null
  } catch {
    return null
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
