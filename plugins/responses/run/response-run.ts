/**
 * One response while it is made: the model's turn, its items, and the end, which is told only when it is stored.
 * @source responses facts 1.8, 3.3, 3.6, 4.9, 5.1
 */
import {
  type FinishedResponse,
  Generations,
  type GenerationUsage,
  type HistoryItem,
  type HistoryService,
  type Job,
  JsonText,
  type ResponseStatus,
  type TokenizerService,
  type ToolLoopEvent,
  type ToolLoopService,
} from '#contracts'
import type { GatewayError, Host, RequestContext } from '#kernel'
import type { ResponsesConfig } from '../config.ts'
import { errorEventMembers, toResponseError } from '../error-format.ts'
import { responsesErrors } from '../errors.ts'
import { type FrameSink, Frames } from '../output/frames.ts'
import { OutputItems } from '../output/output-items.ts'
import { PlainTurn } from '../output/plain-turn.ts'
import { isPublic, toClientItems } from '../output/tool-items.ts'
import type { TextSeal } from '../prompt/sealed-text.ts'
import { behindCompaction } from './behind-compaction.ts'
import type { Plan } from './plan.ts'
import { replyMembersText, replyText } from './reply-object.ts'

export interface RunParts {
  readonly host: Host
  readonly history: HistoryService | undefined
  readonly toolLoop: ToolLoopService | undefined
  readonly tokenizers: TokenizerService | undefined
  readonly seal: TextSeal
  readonly config: ResponsesConfig
}

export interface RunOptions {
  readonly id: string
  readonly createdAtSec: number
  /** Follows the stream; null when nobody does. */
  readonly sink: FrameSink | null
  /** The worker is asked for a stream. */
  readonly stream: boolean
  /** Of a background response. */
  readonly job?: Job
  /** Called when a worker has begun to answer, with the way in which it is reached. */
  readonly onWorker?: (connectionMode: string) => void
  /** Called once, at the very end. */
  readonly onEnd: (end: RunEnd) => void
}

export interface RunEnd {
  /** JSON. Null: it was refused before it began, or its client left. */
  readonly reply: string | null
  readonly status: ResponseStatus
  readonly error: GatewayError | null
  /** History for whoever goes on from here. */
  items(): readonly HistoryItem[]
}

/** What the worker, or a loop over workers, can be told while it answers. */
interface Turn {
  pause(): void
  resume(): void
  abort(): void
}

export class ResponseRun {
  readonly #parts: RunParts
  readonly #ctx: RequestContext
  readonly #plan: Plan
  readonly #options: RunOptions
  readonly #frames: Frames | null
  readonly #output: OutputItems
  #turn: Turn | null = null
  #hasBegun = false
  #hasStarted = false
  #isOver = false
  #isPaused = false
  #connectionMode: string | null = null
  /** JSON, made when it is first needed. */
  #echo: string | null = null

  constructor(parts: RunParts, ctx: RequestContext, plan: Plan, options: RunOptions) {
    this.#parts = parts
    this.#ctx = ctx
    this.#plan = plan
    this.#options = options
    this.#frames = options.sink === null ? null : new Frames(options.sink)
    const { include, store, summary } = plan.request
    const isSealed = include.has('reasoning.encrypted_content') || !store
    this.#output = new OutputItems(this.#frames, {
      hasLogprobs: include.has('message.output_text.logprobs'),
      hasSummary: summary !== undefined,
      seal: isSealed ? (text) => parts.seal.seal(plan.tenant, text) : null,
      hasSources: include.has('web_search_call.action.sources'),
      hasCodeOutputs: include.has('code_interpreter_call.outputs'),
      hasSearchResults: include.has('file_search_call.results'),
    })
  }

  /** Items that have ended so far, for who shows progress. */
  get output(): OutputItems {
    return this.#output
  }

  start(): void {
    this.#ctx.onCancel(() => this.#cancelled())
    if (this.#isOver) return
    try {
      this.#turn = this.#open()
      if (this.#isPaused) this.#turn.pause()
    } catch (error) {
      this.#refused(error as GatewayError)
    }
  }

  pause(): void {
    this.#isPaused = true
    this.#turn?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#turn?.resume()
  }

  /** Ends it by somebody's wish; what there is of it is kept. Safe at any time. */
  cancel(): void {
    if (this.#isOver) return
    this.#turn?.abort()
    this.#end('cancelled', null, null)
  }

  /** Stops it without an end: somebody else begins it anew, or says what became of it. */
  abandon(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#turn?.abort()
    void this.#plan.lock?.release()
  }

  /** Tells the stream that the response has been begun; before that, a failure has a status of its own. */
  begin(): void {
    if (this.#hasBegun || this.#frames === null) return
    this.#hasBegun = true
    const response = replyText(this.#members('in_progress'), '[]')
    const first = this.#options.job === undefined ? response : replyText(this.#members('queued'), '[]')
    this.#frames.send('response.created', `"response":${first}`)
    this.#frames.send('response.in_progress', `"response":${response}`)
  }

  /** Frames that end the stream where somebody else has failed the request. */
  lastFrames(error: GatewayError): string {
    if (this.#frames === null) return ''
    const frames = new Frames((frame) => {
      text += frame
    }, this.#frames.count)
    let text = ''
    const members = this.#members('failed', { error, usage: null })
    this.#sendFailure(frames, members, error)
    return text
  }

  #open(): Turn {
    const { host, toolLoop } = this.#parts
    const { generation, request, approvals, listed, origins } = this.#plan
    const { stream } = this.#options
    const accepts = this.#plan.accepts ?? undefined
    const { compaction } = this.#plan
    const onEvent = (event: ToolLoopEvent) => this.#onEvent(event)
    const listener = { onEvent: compaction === null ? onEvent : behindCompaction(compaction, onEvent) }
    const gatewayTools = request.tools.gateway
    if (toolLoop !== undefined && (gatewayTools.length > 0 || approvals.length > 0))
      return toolLoop.run(
        this.#ctx,
        {
          request: { ...generation, tools: request.tools.functions, toolChoice: null },
          toolChoice: request.toolChoice.wish,
          tools: gatewayTools,
          approvals,
          listed,
          origins,
          limits: { maxToolCalls: request.maxToolCalls, atLimit: 'answer' },
          stream,
          accepts,
        },
        listener,
      )
    const mcp = gatewayTools.find(({ kind }) => kind === 'mcp')
    if (mcp !== undefined) throw responsesErrors.tool_not_available.with({ param: mcp.param }, 'mcp')
    return host
      .use(Generations)
      .open(this.#ctx, generation, { stream, accepts, listener: new PlainTurn(listener) })
  }

  #onEvent(event: ToolLoopEvent): void {
    if (this.#isOver) return
    switch (event.type) {
      case 'started':
        this.#hasStarted = true
        this.#connectionMode = event.started.worker.connectionMode
        this.#options.onWorker?.(this.#connectionMode)
        this.begin()
        if (this.#plan.compaction !== null) this.#output.addWhole(0, this.#plan.compaction.item)
        return
      case 'finished':
        this.#finished(event)
        return
      case 'failed':
        this.#failed(event.error, event.usage)
        return
      default:
        this.begin()
        this.#output.add(event)
    }
  }

  #finished({ reason, usage }: Extract<ToolLoopEvent, { type: 'finished' }>): void {
    this.begin()
    if (reason === 'length') this.#end('incomplete', null, usage, 'max_output_tokens')
    else if (reason === 'content_filter') this.#end('incomplete', null, usage, 'content_filter')
    else if (reason === 'abort') this.#end('failed', responsesErrors.worker_aborted(), usage)
    else this.#end('completed', null, usage)
  }

  #failed(error: GatewayError, usage: GenerationUsage | null): void {
    if (this.#hasBegun || this.#hasStarted) this.#end('failed', error, usage)
    else this.#refused(error)
  }

  /** Nothing of it is kept: for its client it never was. */
  #refused(error: GatewayError): void {
    if (this.#options.job !== undefined || this.#hasBegun) {
      this.#end('failed', error, null)
      return
    }
    this.#isOver = true
    void this.#plan.lock?.release()
    this.#options.onEnd({ reply: null, status: 'failed', error, items: noItems })
  }

  /** The client left, or somebody else has failed the request. */
  #cancelled(): void {
    if (this.#isOver) return
    this.#turn?.abort()
    if (this.#hasBegun || this.#hasStarted)
      this.#end(this.#ctx.isAborted ? 'cancelled' : 'failed', null, null)
    else {
      this.#isOver = true
      void this.#plan.lock?.release()
      this.#options.onEnd({ reply: null, status: 'cancelled', error: null, items: noItems })
    }
  }

  #end(
    status: ResponseStatus,
    error: GatewayError | null,
    usage: GenerationUsage | null,
    incompleteReason: string | null = null,
  ): void {
    this.#isOver = true
    const members = this.#members(status, { error, usage, incompleteReason })
    const { history } = this.#parts
    if (!this.#plan.request.store || history === undefined) {
      void this.#plan.lock?.release()
      this.#tell(status, members, error, this.#output.storedItems())
      return
    }
    const items = this.#output.storedItems()
    // What clients see of the items is what is stored of them, nearly always: one text for both.
    const text = items.every(isPublic) ? JSON.stringify(items) : undefined
    const stored = this.#store(history, status, members, items, text)
    this.#parts.host.background(
      stored.then(
        (failure) =>
          failure === null
            ? this.#tell(status, members, error, items, text)
            : this.#storeFailed(error ?? failure),
        (cause: unknown) => this.#storeFailed(error ?? responsesErrors.storage_error.with({ cause })),
      ),
    )
  }

  async #store(
    history: HistoryService,
    status: ResponseStatus,
    members: string,
    output: readonly HistoryItem[],
    outputText: string | undefined,
  ): Promise<GatewayError | null> {
    const { tenant, lock, request, input, hasOwnIds } = this.#plan
    const { id, createdAtSec, job } = this.#options
    const isUsable = status === 'completed' || status === 'incomplete'
    const record: FinishedResponse = {
      id,
      createdAtSec,
      status,
      reply: new JsonText(members),
      input,
      output,
      ...(outputText !== undefined && { outputText }),
      hasNewIds: hasOwnIds && job === undefined,
      previousResponseId: request.previousResponseId,
      conversationId: request.conversationId,
      facts: this.#connectionMode === null ? {} : { connectionMode: this.#connectionMode },
    }
    const result = await history.responses.finish(tenant, record, {
      ...(isUsable && lock !== null && { lock }),
      ...(job !== undefined && { job }),
    })
    if (!isUsable) void lock?.release()
    return result === 'lock_lost' ? responsesErrors.conversation_locked.with({ param: 'conversation' }) : null
  }

  /** What cannot be found again is no success. */
  #storeFailed(error: GatewayError): void {
    this.#parts.host.log.error({ err: error, response_id: this.#options.id }, 'a response was not stored')
    void this.#plan.lock?.release()
    this.#tell('failed', this.#members('failed', { error, usage: null }), error, this.#output.storedItems())
  }

  /** @param text the JSON of the items, when there is one and it is what clients see */
  #tell(
    status: ResponseStatus,
    members: string,
    error: GatewayError | null,
    items: readonly HistoryItem[],
    text = JSON.stringify(toClientItems(items)),
  ): void {
    const reply = replyText(members, text)
    // Where somebody else has failed the request, its error format ends the stream.
    if (this.#frames !== null && this.#hasBegun && !this.#ctx.isFailing) {
      if (status === 'failed') this.#sendFailure(this.#frames, members, error)
      else {
        const type = status === 'completed' ? 'completed' : 'incomplete'
        this.#frames.send(`response.${type}`, `"response":${reply}`)
      }
    }
    this.#options.onEnd({ reply, status, error, items: () => [...this.#plan.context, ...items] })
  }

  #sendFailure(frames: Frames, members: string, error: GatewayError | null): void {
    if (error !== null) frames.send('error', errorEventMembers(error))
    const reply = replyText(members, JSON.stringify(toClientItems(this.#output.items())))
    frames.send('response.failed', `"response":${reply}`)
  }

  #members(
    status: ResponseStatus,
    end?: { error?: GatewayError | null; usage: GenerationUsage | null; incompleteReason?: string | null },
  ): string {
    const { id, createdAtSec } = this.#options
    const error = end?.error ?? (status === 'failed' ? responsesErrors.worker_aborted() : null)
    this.#echo ??= JSON.stringify(this.#plan.request.echo)
    return replyMembersText(
      {
        id,
        createdAtSec,
        status,
        error: error === null ? null : toResponseError(error),
        incompleteReason: end?.incompleteReason ?? null,
        usage: end?.usage ?? null,
        isOver: end !== undefined,
      },
      this.#echo,
    )
  }
}

function noItems(): readonly HistoryItem[] {
  return []
}
