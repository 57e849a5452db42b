/** The OnToolCall attach point: before the gateway runs a tool, modules may reject the call or change its arguments. */
import type { CalledTool, GuardDecision, GuardedCall, ToolCallGuard, ToolCallGuardsService } from '#kernel'
import { ABI_VERSION, type GuestInput } from '../../../wasm-sdk/abi.ts'
import { type ActiveModules, selectForTool } from './active-modules.ts'
import type { PhaseChain, PhaseEnd } from './phase-chain.ts'
import { callerTenant, type PhaseOrigin } from './phase-message.ts'

const REFUSED = 'The call was refused.'
/** The tool runner handles cancelled calls itself. */
const NO_REQUEST: PhaseOrigin = { isDone: false, noteModule: () => {} }
const CONTINUE: GuardDecision = { action: 'continue' }

export class ToolCallModules implements ToolCallGuard {
  readonly name = 'wasm'
  readonly #phases: PhaseChain
  readonly #active: ActiveModules
  #guards: ToolCallGuardsService | null = null
  /** Removes the guard; null if it is not added. */
  #stop: (() => void) | null = null

  constructor(phases: PhaseChain, active: ActiveModules) {
    this.#phases = phases
    this.#active = active
  }

  /** Sets the service for tool calls that the gateway runs. */
  guard(guards: ToolCallGuardsService): void {
    this.#guards = guards
    this.update()
  }

  /** Guards tool calls while there is a module for them. */
  update(): void {
    if (this.#active.chain('OnToolCall').modules.length > 0) this.#stop ??= this.#guards?.add(this) ?? null
    else {
      this.#stop?.()
      this.#stop = null
    }
  }

  /** @throws wasm_module_failed if a fail-closed module failed; the call does not run */
  async check(call: GuardedCall): Promise<GuardDecision> {
    const chain = this.#active.chain('OnToolCall')
    const selected = selectForTool(chain, call)
    if (selected.length === 0) return CONTINUE
    const message = {
      point: 'OnToolCall' as const,
      input: toInput(call),
      requestHeaders: null,
      responseHeaders: null,
      body: Buffer.from(JSON.stringify(call.arguments)),
      origin: NO_REQUEST,
      asker: call.ctx,
      fetched: null,
    }
    return toDecision(await this.#phases.run(selected, message))
  }
}

function toInput({ requestId, tenant, model, tool, server }: GuardedCall): GuestInput {
  return {
    abi: ABI_VERSION,
    phase: 'tool_call',
    now_ms: Date.now(),
    request: {
      id: requestId,
      method: '',
      path: '',
      query: '',
      route: '',
      tenant: callerTenant(tenant),
      client_ip: '',
    },
    tool: { kind: tool.kind, ...namesOf(tool), server, model },
  }
}

function namesOf(tool: CalledTool): { name: string; label: string | null } {
  return tool.kind === 'mcp' ? { name: tool.name, label: tool.label } : { name: tool.type, label: null }
}

function toDecision({ rejection, body }: PhaseEnd): GuardDecision {
  if (rejection !== null) {
    const text = Buffer.from(rejection.body).toString('utf8')
    return { action: 'reject', text: text === '' ? REFUSED : text }
  }
  if (body === null) return CONTINUE
  return { action: 'modify', arguments: JSON.parse(Buffer.from(body).toString('utf8')) }
}
