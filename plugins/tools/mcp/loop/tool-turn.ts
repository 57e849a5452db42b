/**
 * One turn: lists the tools, runs what a person has approved, then asks the model and runs what it calls, again and
 * again, until it has answered, a limit is reached, or something waits for the client.
 */
import type {
  ChatMessage,
  GenerateOptions,
  Generation,
  GenerationEvent,
  GenerationRequest,
  GenerationUsage,
  NativeAnswer,
  RunningTurn,
  ToolLoopEvent,
  ToolLoopListener,
  ToolTurn,
} from '#kernel'
import { GatewayError } from '#kernel'
import type { McpConfig } from '../config.ts'
import { mcpErrors } from '../errors.ts'
import type { OpenServer } from '../tools/open-server.ts'
import type { Caller, ToolRunner } from '../tools/run-tool.ts'
import { beginApproved } from './approved-calls.ts'
import { CallBudget } from './call-budget.ts'
import { listTools } from './list-tools.ts'
import type { CallRoute, ModelCall } from './model-call.ts'
import { OfferedTools } from './offered-tools.ts'
import { refusalOf } from './refused-calls.ts'
import { type PendingCall, runCalls, tellCut } from './run-calls.ts'
import { lastOffer, type Offer, offerFor } from './turn-choice.ts'
import { renameHistory, type ToolAnswer, toAssistantMessage, toToolMessages } from './turn-messages.ts'
import { TurnReader } from './turn-reader.ts'
import { addUsage } from './turn-usage.ts'
import { TurnVoice } from './turn-voice.ts'

export interface TurnParts {
  readonly config: McpConfig
  readonly servers: readonly OpenServer[]
  readonly runner: ToolRunner
  readonly caller: Caller
  /** Starts one generation; does not throw. */
  readonly generate: (request: GenerationRequest, options: GenerateOptions) => Generation
  /** The turn is over, however it ended. */
  readonly onEnd: (iterations: number) => void
}

type Finish = Extract<ToolLoopEvent, { type: 'finished' }>

export class ToolTurnRun implements RunningTurn {
  readonly #turn: ToolTurn
  readonly #parts: TurnParts
  readonly #voice: TurnVoice
  readonly #stopping = new AbortController()
  readonly #budget: CallBudget
  #offered: OfferedTools
  #offer: Offer = { only: null, toolChoice: null }
  #messages: readonly ChatMessage[] = []
  #generation: Generation | null = null
  /** Set while the reader is slow. */
  #resumed: PromiseWithResolvers<void> | null = null
  #usage: GenerationUsage | null = null
  /** Tools that the client has declared for workers of its own format. */
  readonly #nativeNames: ReadonlySet<string>
  /** The worker of this iteration was offered those. */
  #hasNativeTools = false
  /** The last answer in its worker's own words. */
  #native: NativeAnswer | null = null
  #iterations = 0
  #isLast = false
  #isOver = false

  constructor(turn: ToolTurn, parts: TurnParts, listener: ToolLoopListener) {
    this.#turn = turn
    this.#parts = parts
    this.#voice = new TurnVoice(listener)
    this.#nativeNames = nativeNamesOf(turn.request)
    this.#offered = new OfferedTools(turn.request.tools, [], 'never')
    this.#budget = new CallBudget(turn.limits.maxToolCalls, parts.config.limits.maxToolCalls)
  }

  /** Never rejects, unless the listener throws at the very end. */
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

  pause(): void {
    this.#resumed ??= Promise.withResolvers()
    this.#generation?.pause()
  }

  resume(): void {
    this.#resumed?.resolve()
    this.#resumed = null
    this.#generation?.resume()
  }

  abort(): void {
    if (this.#isOver) return
    this.#voice.silence()
    this.#stop(new Error('the request was given up'))
    this.resume()
  }

  async #begin(): Promise<void> {
    const { request, listed, origins, approvals, toolChoice } = this.#turn
    const found = await listTools(this.#parts.servers, listed, this.#voice)
    const { defaultApproval } = this.#parts.config
    this.#offered = new OfferedTools(request.tools, found, defaultApproval, this.#nativeNames)
    const history = request.prompt.kind === 'chat' ? request.prompt.messages : []
    this.#messages = renameHistory(history, origins, this.#offered)
    this.#voice.noteHistory(history)
    // Before a tool runs: what a wrong choice asks for must not have happened.
    this.#offer = offerFor(toolChoice, this.#offered, 0)
    if (approvals.length === 0 || this.#isOver) return
    const hidden = new Set(
      this.#parts.servers.flatMap(({ plan }) => (plan.isHidden ? plan.label.toLowerCase() : [])),
    )
    const isHidden = (label: string) => hidden.has(label.toLowerCase())
    const { message, steps } = beginApproved(approvals, this.#offered, this.#budget, this.#voice, isHidden)
    const ran = await this.#runAll(steps.filter((step) => 'tool' in step))
    const answers = steps.map((step) => ('tool' in step ? (ran.get(step.callId) as ToolAnswer) : step))
    this.#messages = [...this.#messages, message, ...toToolMessages(answers)]
  }

  async #iterate(): Promise<void> {
    while (this.#resumed !== null) await this.#resumed.promise
    if (this.#isOver) return
    const reader = new TurnReader(
      { ...this.#voice, routeOf: (name) => this.#routeOf(name) },
      this.#iterations === 0,
    )
    await this.#generate(reader)
    this.#iterations++
    this.#usage = addUsage(this.#usage, reader.usage)
    if (this.#isOver) return
    const { turn, reason, matchedStop } = reader
    this.#native = turn.native
    if (reason !== 'stop' && reason !== 'tool_calls') {
      // The answer was cut off: nothing of it is run.
      tellCut(turn.calls, this.#voice.emit)
      return this.#finish(reason, matchedStop)
    }
    if (turn.calls.length === 0) return this.#finish(reason, matchedStop)
    const answers = await this.#answer(turn.calls)
    if (this.#isOver) return
    if (turn.calls.some(({ route }) => route.kind === 'function' || route.kind === 'approval'))
      return this.#finish('handed_over', matchedStop)
    this.#messages = [...this.#messages, toAssistantMessage(turn), ...toToolMessages(answers)]
    if (this.#isLast) this.#endAfterLast(matchedStop)
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
    if (atLimit === 'stop') this.#finish('tool_limit', null)
  }

  /** The model called again though nothing was left to call. */
  #endAfterLast(matchedStop: string | number | null): void {
    if (this.#turn.limits.maxToolCalls === null) throw mcpErrors.tool_iterations_exceeded(this.#iterations)
    this.#finish('stop', matchedStop)
  }

  /** Runs what is ours and says why the rest is not run; what the client answers has no answer here. */
  async #answer(calls: readonly ModelCall[]): Promise<ToolAnswer[]> {
    const pending = calls.flatMap(({ id, route, argumentText, index }): PendingCall[] =>
      route.kind === 'gateway'
        ? [{ callId: id, tool: route.tool, argumentText, index, approvalId: null }]
        : [],
    )
    const ran = await this.#runAll(pending)
    return calls.flatMap((call) => ran.get(call.id) ?? refusalOf(call) ?? [])
  }

  /** @returns answers by call id */
  async #runAll(calls: readonly PendingCall[]): Promise<ReadonlyMap<string, ToolAnswer>> {
    const { runner, caller, config } = this.#parts
    const atOnce = this.#turn.request.parallelToolCalls === false ? 1 : config.limits.parallelCalls
    const { signal } = this.#stopping
    const answers = await runCalls(calls, { runner, caller, signal, atOnce, emit: this.#voice.emit })
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
    const giveUp = () => done.resolve()
    this.#stopping.signal.addEventListener('abort', giveUp)
    const { stream, accepts } = this.#turn
    this.#generation = this.#parts.generate(this.#nextRequest(), { stream, accepts, listener: { onEvent } })
    try {
      await done.promise
    } finally {
      this.#generation = null
      this.#stopping.signal.removeEventListener('abort', giveUp)
    }
  }

  #nextRequest(): GenerationRequest {
    const { request } = this.#turn
    const tools = this.#offered.toChatTools(this.#offer.only)
    const hasTools = tools.length > 0
    const { native } = request
    // A forced choice holds for the first request only, in whatever words.
    const isForced = native !== undefined && native.toolChoice !== null && this.#iterations > 0
    return {
      ...request,
      ...(isForced && { native: { ...native, toolChoice: null } }),
      choices: 1,
      prompt: { kind: 'chat', messages: this.#messages },
      tools,
      // Engines refuse these beside no tools.
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
      const isOurs = this.#offered.hasGatewayTools && !this.#offered.hasFunction(name)
      return isOurs ? { kind: 'refused', reason: 'unknown' } : { kind: 'function' }
    }
    if (tool.needsApproval)
      return this.#turn.canApprove === false
        ? { kind: 'refused', reason: 'approval' }
        : { kind: 'approval', tool }
    return this.#budget.take() ? { kind: 'gateway', tool } : { kind: 'refused', reason: 'limit' }
  }

  #finish(reason: Finish['reason'], matchedStop: Finish['matchedStop']): void {
    this.#isOver = true
    const toolCalls = this.#budget.used
    const native = this.#native
    this.#voice.end({
      type: 'finished',
      reason,
      matchedStop,
      ...(native !== null && { native: { engine: native.engine, reason: native.reason } }),
      usage: this.#usage,
      iterations: this.#iterations,
      toolCalls,
    })
  }

  #fail(error: unknown): void {
    if (this.#isOver) return
    const failure = error instanceof GatewayError ? error : mcpErrors.tool_loop_failed.with({ cause: error })
    this.#stop(failure)
    this.#voice.end({ type: 'failed', error: failure, usage: this.#usage })
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
