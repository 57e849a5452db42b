/**
 * One turn: lists the tools, runs what a person has approved, then asks the model and runs what it calls, again and
 * again, until it has answered, a limit is reached, or something waits for the client.
 *
 * @source responses facts 4.1, 4.5, 4.6, 4.7
 */
import type {
  ApprovalAnswer,
  ChatMessage,
  Generation,
  GenerationRequest,
  GenerationUsage,
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
import { CallBudget } from './call-budget.ts'
import { listTools } from './list-tools.ts'
import type { CallRoute, ModelCall } from './model-call.ts'
import { OfferedTools } from './offered-tools.ts'
import { type PendingCall, runCalls } from './run-calls.ts'
import { lastOffer, type Offer, offerFor } from './turn-choice.ts'
import { nameToday, renameHistory, type ToolAnswer, toAssistantMessage, toToolMessages } from './turn-messages.ts'
import { TurnReader } from './turn-reader.ts'
import { addUsage } from './turn-usage.ts'

/** Starts one generation. @throws GatewayError */
export type Generate = (
  request: GenerationRequest,
  options: { stream: boolean; listener: { onEvent(event: import('#kernel').GenerationEvent): void } },
) => Generation

export interface TurnParts {
  readonly config: McpConfig
  readonly servers: readonly OpenServer[]
  readonly runner: ToolRunner
  readonly caller: Caller
  readonly generate: Generate
  /** The turn is over, however it ended. */
  readonly onEnd: (iterations: number) => void
}

const LIMIT_REACHED = 'The limit of tool calls for this request is reached. Answer with what you know.'

export class ToolTurnRun implements RunningTurn {
  private readonly turn: ToolTurn
  private readonly parts: TurnParts
  private readonly listener: ToolLoopListener
  private readonly stopping = new AbortController()
  private readonly budget: CallBudget
  private readonly callIds = new Set<string>()
  private offered: OfferedTools
  private offer: Offer = { only: null, toolChoice: null }
  private messages: readonly ChatMessage[] = []
  private generation: Generation | null = null
  private resumed: PromiseWithResolvers<void> | null = null
  private usage: GenerationUsage | null = null
  private indexes = 0
  private iterations = 0
  private isLast = false
  private isOver = false

  constructor(turn: ToolTurn, parts: TurnParts, listener: ToolLoopListener) {
    this.turn = turn
    this.parts = parts
    this.listener = listener
    this.offered = new OfferedTools(turn.request.tools, [], 'never')
    this.budget = new CallBudget(turn.limits.maxToolCalls, parts.config.limits.maxToolCalls)
  }

  /** Never rejects. */
  async run(): Promise<void> {
    try {
      await this.begin()
      while (!this.isOver) await this.iterate()
    } catch (error) {
      this.fail(error)
    } finally {
      for (const server of this.parts.servers) server.release()
      this.parts.onEnd(this.iterations)
    }
  }

  pause(): void {
    this.resumed ??= Promise.withResolvers()
    this.generation?.pause()
  }

  resume(): void {
    this.resumed?.resolve()
    this.resumed = null
    this.generation?.resume()
  }

  abort(): void {
    if (this.isOver) return
    this.isOver = true
    this.stopping.abort(new Error('the request was given up'))
    this.generation?.abort()
    this.resume()
  }

  private async begin(): Promise<void> {
    const { turn, parts } = this
    const output = { emit: this.emit, nextIndex: this.nextIndex }
    const found = await listTools(parts.servers, turn.listed, output)
    this.offered = new OfferedTools(turn.request.tools, found, parts.config.defaultApproval)
    const { prompt } = turn.request
    const history = prompt.kind === 'chat' ? prompt.messages : []
    this.messages = renameHistory(history, turn.origins, this.offered)
    for (const message of history) for (const call of message.tool_calls ?? []) this.callIds.add(call.id)
    // Before a tool runs: what a wrong choice asks for must not have happened.
    this.offer = offerFor(turn.toolChoice, this.offered, 0)
    if (turn.approvals.length > 0) await this.answerApprovals(turn.approvals)
  }

  private async answerApprovals(answers: readonly ApprovalAnswer[]): Promise<void> {
    const calls: { call: ChatMessage['tool_calls']; answer: ToolAnswer | PendingCall }[] = []
    for (const answer of answers) {
      const origin = { kind: 'mcp', label: answer.label, name: answer.name } as const
      const callId = this.callId(answer.approvalId)
      const name = nameToday(origin, this.offered)
      const call = [{ id: callId, type: 'function' as const, function: { name, arguments: answer.arguments } }]
      calls.push({ call, answer: this.beginApproved(answer, callId) })
    }
    const pending = calls.flatMap(({ answer }) => ('tool' in answer ? [answer] : []))
    const ran = await this.runAll(pending)
    const answered = calls.map(({ answer }) => ('tool' in answer ? (ran.shift() ?? unknownTool(answer.callId)) : answer))
    const toolCalls = calls.flatMap(({ call }) => call ?? [])
    const assistant: ChatMessage = { role: 'assistant', content: null, tool_calls: toolCalls }
    this.messages = [...this.messages, assistant, ...toToolMessages(answered)]
  }

  /** A call to be run; an answer when it is not: denied, or the tool is gone, or no call is left. */
  private beginApproved(answer: ApprovalAnswer, callId: string): PendingCall | ToolAnswer {
    const refuse = (text: string) => ({ callId, text, isError: true, images: [] })
    if (!answer.isApproved)
      return refuse(answer.reason ? `The user denied this call: ${answer.reason}` : 'The user denied this call.')
    const tool = this.offered.findOrigin({ kind: 'mcp', label: answer.label, name: answer.name })
    if (tool === undefined) return unknownTool(callId)
    if (!this.budget.take()) return refuse(LIMIT_REACHED)
    const index = tool.isHidden ? null : this.nextIndex()
    const { approvalId, arguments: argumentText } = answer
    if (index !== null) {
      this.emit({ type: 'call_started', index, callId, tool: tool.called, approvalId })
      if (argumentText !== '') this.emit({ type: 'call_arguments', index, delta: argumentText })
      this.emit({ type: 'call_arguments_done', index, arguments: argumentText })
    }
    return { callId, tool, argumentText, index, approvalId }
  }

  private async iterate(): Promise<void> {
    while (this.resumed !== null) await this.resumed.promise
    if (this.isOver) return
    const reader = new TurnReader(this.reading, this.iterations === 0)
    await this.generate(reader)
    this.iterations++
    this.usage = addUsage(this.usage, reader.usage)
    if (this.isOver) return
    const { turn, reason, matchedStop } = reader
    if (reason !== 'stop' && reason !== 'tool_calls') {
      this.cutCalls(turn.calls)
      return this.finish(reason, matchedStop)
    }
    if (turn.calls.length === 0) return this.finish(reason, matchedStop)
    const answers = await this.answer(turn.calls)
    if (this.isOver) return
    this.messages = [...this.messages, toAssistantMessage(turn), ...toToolMessages(answers)]
    if (turn.calls.some(({ route }) => route.kind === 'function' || route.kind === 'approval'))
      return this.finish('handed_over', matchedStop)
    if (this.isLast) return this.endAfterLast(matchedStop)
    this.prepareNext(turn.calls)
  }

  private prepareNext(calls: readonly ModelCall[]): void {
    const { atLimit, maxIterations } = this.turn.limits
    const most = Math.min(maxIterations ?? Number.MAX_SAFE_INTEGER, this.parts.config.limits.maxIterations)
    const isRefused = calls.some(({ route }) => route.kind === 'refused' && route.reason === 'limit')
    this.offer = offerFor(this.turn.toolChoice, this.offered, this.iterations)
    if (!isRefused && this.iterations < most) return
    if (atLimit === 'stop') return this.finish('tool_limit', null)
    this.isLast = true
    this.offer = lastOffer(this.offered, this.offer)
  }

  /** The model called again though nothing was left to call. */
  private endAfterLast(matchedStop: string | number | null): void {
    if (this.turn.limits.maxToolCalls !== null) return this.finish('stop', matchedStop)
    throw mcpErrors.tool_iterations_exceeded(this.iterations)
  }

  /** Runs what is ours and says why the rest is not run; what the client answers has no answer here. */
  private async answer(calls: readonly ModelCall[]): Promise<ToolAnswer[]> {
    const pending = calls.flatMap(({ id, route, argumentText, index }): PendingCall[] =>
      route.kind === 'gateway' ? [{ callId: id, tool: route.tool, argumentText, index, approvalId: null }] : [],
    )
    const ran = new Map((await this.runAll(pending)).map((answer) => [answer.callId, answer]))
    return calls.flatMap(({ id, name, route }) => {
      const answer = ran.get(id)
      if (answer !== undefined) return [answer]
      if (route.kind !== 'refused') return []
      return [route.reason === 'limit' ? { ...unknownTool(id), text: LIMIT_REACHED } : unknownTool(id, name)]
    })
  }

  private runAll(calls: readonly PendingCall[]): Promise<ToolAnswer[]> {
    const { runner, caller, config } = this.parts
    const atOnce = this.turn.request.parallelToolCalls === false ? 1 : config.limits.parallelCalls
    return runCalls(calls, { runner, caller, signal: this.stopping.signal, atOnce, emit: this.emit })
  }

  /** The answer was cut off: nothing of it is run. */
  private cutCalls(calls: readonly ModelCall[]): void {
    for (const { id, route, index, argumentText } of calls) {
      if (route.kind !== 'gateway' || index === null) continue
      const result = {
        status: 'incomplete',
        output: '',
        error: null,
        modelText: '',
        structured: null,
        durationMs: 0,
      } as const
      const tool = route.tool.called
      this.emit({ type: 'call_done', index, callId: id, tool, arguments: argumentText, approvalId: null, result })
    }
  }

  private generate(reader: TurnReader): Promise<void> {
    const done = Promise.withResolvers<void>()
    const listener = {
      onEvent: (event: import('#kernel').GenerationEvent) => {
        if (this.isOver) return
        if (event.type === 'finished') {
          reader.usage = event.usage
          done.resolve()
        } else if (event.type === 'failed') done.reject(event.error)
        else if (event.type === 'started' || event.choice === 0) reader.read(event)
      },
    }
    this.stopping.signal.addEventListener('abort', () => done.resolve(), { once: true })
    this.generation = this.parts.generate(this.nextRequest(), { stream: this.turn.stream, listener })
    return done.promise.finally(() => {
      this.generation = null
    })
  }

  private nextRequest(): GenerationRequest {
    const { request } = this.turn
    const tools = this.offered.toChatTools(this.offer.only)
    const hasTools = tools.length > 0
    return {
      ...request,
      choices: 1,
      prompt: { kind: 'chat', messages: this.messages },
      tools,
      // Engines refuse these beside no tools.
      toolChoice: hasTools ? this.offer.toolChoice : null,
      parallelToolCalls: hasTools ? request.parallelToolCalls : undefined,
      continuesLastMessage: this.iterations === 0 ? request.continuesLastMessage : undefined,
    }
  }

  private readonly routeOf = (name: string): CallRoute => {
    if (this.offer.only !== null && !this.offer.only.has(name))
      return { kind: 'refused', reason: this.isLast ? 'limit' : 'unknown' }
    const tool = this.offered.find(name)
    if (tool === undefined) {
      const isDeclared = this.offered.functions.some((own) => own.function.name === name)
      return isDeclared || !this.offered.hasGatewayTools ? { kind: 'function' } : { kind: 'refused', reason: 'unknown' }
    }
    if (tool.needsApproval) return { kind: 'approval', tool }
    return this.budget.take() ? { kind: 'gateway', tool } : { kind: 'refused', reason: 'limit' }
  }

  /** Engines that count their calls anew in each answer repeat ids. */
  private readonly callId = (wanted: string): string => {
    let id = wanted
    for (let n = 2; this.callIds.has(id); n++) id = `${wanted}_${n}`
    this.callIds.add(id)
    return id
  }

  private readonly nextIndex = (): number => this.indexes++

  private readonly emit = (event: ToolLoopEvent): void => {
    if (!this.isOver) this.listener.onEvent(event)
  }

  private readonly reading = {
    emit: this.emit,
    nextIndex: this.nextIndex,
    routeOf: this.routeOf,
    callId: this.callId,
  }

  private finish(
    reason: Extract<ToolLoopEvent, { type: 'finished' }>['reason'],
    matchedStop: string | number | null,
  ): void {
    const { usage, iterations } = this
    this.emit({ type: 'finished', reason, matchedStop, usage, iterations, toolCalls: this.budget.used })
    this.isOver = true
  }

  private fail(error: unknown): void {
    if (this.isOver) return
    const failure = error instanceof GatewayError ? error : mcpErrors.tool_loop_failed.with({ cause: error })
    this.emit({ type: 'failed', error: failure, usage: this.usage })
    this.isOver = true
    this.stopping.abort(failure)
    this.generation?.abort()
  }
}

function unknownTool(callId: string, name?: string): ToolAnswer {
  const text = name === undefined ? 'This tool is no longer available.' : `There is no tool named ${name.slice(0, 128)}.`
  return { callId, text, isError: true, images: [] }
}
