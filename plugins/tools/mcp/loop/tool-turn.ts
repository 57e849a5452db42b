/**
 * One turn: lists the tools, runs approved calls, then alternates between generations and the calls of the model until the
 * model answers, a limit is reached, or a call needs the client.
 */
import {
  type ChatMessage,
  type FlowControl,
  GatewayError,
  type GenerateOptions,
  type Generation,
  type GenerationEvent,
  type GenerationListener,
  type GenerationRequest,
  type GenerationUsage,
  type TextEditors,
  type ToolTurn,
} from '#kernel'
import { addUsage } from '#shared'
import type { McpConfig } from '../config.ts'
import { mcpErrors } from '../errors.ts'
import type { OpenServer } from '../tools/open-server.ts'
import { listTools } from './list-tools.ts'
import { lastOffer, type Offer, OfferedTools, offerFor } from './offered-tools.ts'
import { beginApproved, CallBudget, emitCutCalls, type PendingCall, runCalls } from './run-calls.ts'
import type { Caller, ToolRunner } from './run-tool.ts'
import {
  type CallRoute,
  type ModelCall,
  refusalOf,
  renameHistory,
  type ToolAnswer,
  toAssistantMessage,
  toToolMessages,
} from './turn-messages.ts'
import { TurnOutput } from './turn-output.ts'
import { TurnReader } from './turn-reader.ts'

export interface TurnParts {
  readonly config: McpConfig
  readonly servers: readonly OpenServer[]
  readonly runner: ToolRunner
  readonly caller: Caller
  readonly editorOf: TextEditors | null
  /** Of the response. */
  readonly flow: FlowControl
  /** Starts one generation; does not throw. */
  readonly generate: (request: GenerationRequest, options: GenerateOptions) => Generation
  /** Called once, after any end of the turn. */
  readonly onEnd: (iterations: number) => void
}

type ChoiceDone = Extract<GenerationEvent, { type: 'choice_done' }>

export class ToolTurnRun implements Generation {
  readonly #turn: ToolTurn
  readonly #parts: TurnParts
  readonly #output: TurnOutput
  readonly #stopping = new AbortController()
  readonly #budget: CallBudget
  #offered: OfferedTools
  #offer: Offer = { only: null, toolChoice: null }
  #messages: readonly ChatMessage[] = []
  #generation: Generation | null = null
  #usage: GenerationUsage | null = null
  /** Names of tools that are declared in the worker's format. */
  readonly #nativeNames: ReadonlySet<string>
  /** Whether the worker of this iteration accepts those. */
  #hasNativeTools = false
  /** The end of the last generation. */
  #end: ChoiceDone | null = null
  #iterations = 0
  #isLast = false
  #isOver = false

  constructor(turn: ToolTurn, parts: TurnParts, listener: GenerationListener) {
    this.#turn = turn
    this.#parts = parts
    this.#output = new TurnOutput(listener)
    this.#nativeNames = nativeNamesOf(turn.request)
    this.#offered = new OfferedTools(turn.request.tools, [], 'never')
    this.#budget = new CallBudget(turn.limits.maxToolCalls, parts.config.limits.maxToolCalls)
  }

  /** Rejects only if the listener throws at the last event. */
  async run(): Promise<void> {
    try {
      await this.#begin()
      while (!this.#isOver) await this.#iterate()
    } catch (error) {
      this.#fail(error)
    } finally {
      for (const server of this.#parts.servers) server.release()
      this.#parts.onEnd(this.#iterations)
    }
  }

  abort(): void {
    if (this.#isOver) return
    this.#output.silence()
    this.#stop(new Error('the request was cancelled'))
  }

  async #begin(): Promise<void> {
    const { request, listed, origins, approvals, toolChoice } = this.#turn
    const found = await listTools(this.#parts.servers, listed, this.#output)
    const { defaultApproval } = this.#parts.config
    this.#offered = new OfferedTools(request.tools, found, defaultApproval, this.#nativeNames)
    const history = request.prompt.kind === 'chat' ? request.prompt.messages : []
    this.#messages = renameHistory(history, origins, this.#offered)
    this.#output.noteHistory(history)
    // Checked before any tool runs.
    this.#offer = offerFor(toolChoice, this.#offered, 0)
    if (approvals.length === 0 || this.#isOver) return
    const hidden = new Set(
      this.#parts.servers.flatMap(({ plan }) => (plan.isHidden ? plan.label.toLowerCase() : [])),
    )
    const isHidden = (label: string) => hidden.has(label.toLowerCase())
    const { message, steps } = beginApproved(approvals, this.#offered, this.#budget, this.#output, isHidden)
    const ran = await this.#runAll(steps.filter((step) => 'tool' in step))
    const answers = steps.map((step) => ('tool' in step ? (ran.get(step.callId) as ToolAnswer) : step))
    this.#messages = [...this.#messages, message, ...toToolMessages(answers)]
    if (!this.#isOver && answers.some(({ isQuestion }) => isQuestion)) this.#finish('tool_calls')
  }

  async #iterate(): Promise<void> {
    const { flow } = this.#parts
    if (flow.isHeld) await new Promise<void>((resolve) => flow.whenReleased(resolve))
    if (this.#isOver) return
    const reader = new TurnReader(this.#output, (name) => this.#routeOf(name), this.#iterations === 0)
    await this.#generate(reader)
    this.#iterations++
    this.#usage = addUsage(this.#usage, reader.usage)
    if (this.#isOver) return
    const { turn, end } = reader
    this.#end = end
    const reason = end?.reason ?? 'stop'
    const isOfGateway = end?.hasBrokenCalls === true && turn.calls.every(({ isWhole }) => isWhole)
    if (reason !== 'stop' && reason !== 'tool_calls' && !isOfGateway) {
      // Calls of a truncated answer are not run.
      emitCutCalls(turn.calls, this.#output)
      return this.#finish(reason)
    }
    if (turn.calls.length === 0) return this.#finish(reason)
    const answers = await this.#runModelCalls(turn.calls)
    if (this.#isOver) return
    const isForClient = turn.calls.some(({ route }) => route.kind === 'function' || route.kind === 'approval')
    if (isForClient || answers.some(({ isQuestion }) => isQuestion)) return this.#finish('tool_calls')
    this.#messages = [...this.#messages, toAssistantMessage(turn), ...toToolMessages(answers)]
    if (this.#isLast) this.#endAfterLast()
    else this.#prepareNext(turn.calls)
  }

  #prepareNext(calls: readonly ModelCall[]): void {
    const { atLimit, maxIterations } = this.#turn.limits
    const most = Math.min(maxIterations ?? Number.MAX_SAFE_INTEGER, this.#parts.config.limits.maxIterations)
    const isRefused = calls.some(({ route }) => route.kind === 'refused' && route.reason === 'limit')
    this.#offer = offerFor(this.#turn.toolChoice, this.#offered, this.#iterations)
    if (!isRefused && this.#iterations < most) return
    this.#isLast = true
    this.#offer = lastOffer(this.#offered, this.#offer)
    if (atLimit === 'stop') this.#finish('stop', { matchedStop: null, isAtToolLimit: true })
  }

  /** The model made calls although no tool was offered. */
  #endAfterLast(): void {
    if (this.#turn.limits.maxToolCalls === null) throw mcpErrors.tool_iterations_exceeded(this.#iterations)
    this.#finish('stop')
  }

  /** Runs the gateway's calls and refuses others; calls for the client have no result here. */
  async #runModelCalls(calls: readonly ModelCall[]): Promise<ToolAnswer[]> {
    const pending = calls.flatMap(({ id, route, argumentText, index }): PendingCall[] =>
      route.kind === 'gateway' ? [{ callId: id, tool: route.tool, argumentText, index }] : [],
    )
    const ran = await this.#runAll(pending)
    return calls.flatMap((call) => ran.get(call.id) ?? refusalOf(call) ?? [])
  }

  /** @returns results by call id */
  async #runAll(calls: readonly PendingCall[]): Promise<ReadonlyMap<string, ToolAnswer>> {
    const { runner, caller, config, editorOf } = this.#parts
    const atOnce = this.#turn.request.parallelToolCalls === false ? 1 : config.limits.parallelCalls
    const { signal } = this.#stopping
    const output = this.#output
    const answers = await runCalls(calls, { runner, caller, signal, atOnce, output, editorOf })
    return new Map(answers.map((answer) => [answer.callId, answer]))
  }

  async #generate(reader: TurnReader): Promise<void> {
    const done = Promise.withResolvers<void>()
    const onEvent = (event: GenerationEvent) => {
      if (this.#isOver) return
      if (event.type === 'finished') {
        reader.usage = event.usage
        done.resolve()
      } else if (event.type === 'failed') done.reject(event.error)
      else if (event.type === 'started' || event.choice === 0) {
        if (event.type === 'started') this.#hasNativeTools = event.hasNativeTools === true
        reader.read(event)
      }
    }
    const abort = () => done.resolve()
    this.#stopping.signal.addEventListener('abort', abort)
    const { stream, accepts } = this.#turn
    this.#generation = this.#parts.generate(this.#nextRequest(), { stream, accepts, listener: { onEvent } })
    try {
      await done.promise
    } finally {
      this.#generation = null
      this.#stopping.signal.removeEventListener('abort', abort)
    }
  }

  #nextRequest(): GenerationRequest {
    const { request } = this.#turn
    const tools = this.#offered.toChatTools(this.#offer.only)
    const hasTools = tools.length > 0
    const { native } = request
    // A forced choice applies to the first request only, in any format.
    const isForced = native !== undefined && native.toolChoice !== null && this.#iterations > 0
    return {
      ...request,
      ...(isForced && { native: { ...native, toolChoice: null } }),
      choices: 1,
      prompt: { kind: 'chat', messages: this.#messages },
      tools,
      // Engines reject these without tools.
      toolChoice: hasTools ? this.#offer.toolChoice : null,
      parallelToolCalls: hasTools ? request.parallelToolCalls : undefined,
      continuesLastMessage: this.#iterations === 0 ? request.continuesLastMessage : undefined,
    }
  }

  #routeOf(name: string): CallRoute {
    if (this.#hasNativeTools && this.#nativeNames.has(name)) return { kind: 'function' }
    const { only } = this.#offer
    if (only !== null && !only.has(name))
      return { kind: 'refused', reason: this.#isLast ? 'limit' : 'unknown' }
    const tool = this.#offered.find(name)
    if (tool === undefined) {
      const isGatewayTurn = this.#offered.hasGatewayTools && !this.#offered.hasFunction(name)
      return isGatewayTurn ? { kind: 'refused', reason: 'unknown' } : { kind: 'function' }
    }
    if (tool.needsApproval)
      return this.#turn.canApprove === false
        ? { kind: 'refused', reason: 'approval' }
        : { kind: 'approval', tool }
    return this.#budget.take() ? { kind: 'gateway', tool } : { kind: 'refused', reason: 'limit' }
  }

  #finish(reason: ChoiceDone['reason'], more: Partial<ChoiceDone> = {}): void {
    this.#isOver = true
    const { matchedStop = null, native } = this.#end ?? {}
    this.#output.emit({ type: 'choice_done', choice: 0, reason, matchedStop, native, ...more })
    this.#output.emit({ type: 'finished', usage: this.#usage, generations: this.#iterations })
  }

  #fail(error: unknown): void {
    if (this.#isOver) return
    const failure = error instanceof GatewayError ? error : mcpErrors.tool_loop_failed.with({ cause: error })
    this.#stop(failure)
    this.#output.emit({ type: 'failed', error: failure, usage: this.#usage })
  }

  #stop(reason: Error): void {
    this.#isOver = true
    this.#stopping.abort(reason)
    this.#generation?.abort()
  }
}

function nativeNamesOf({ native }: GenerationRequest): ReadonlySet<string> {
  const names = native?.tools.flatMap(({ name }) => (typeof name === 'string' ? name : []))
  return new Set(names)
}
