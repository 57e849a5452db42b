/** One streamed call: messages in order, limits on silence, and an engine that is told when nobody listens any more. @hot */
import type { ChannelInterface } from '@grpc/grpc-js'
import {
  type Exchange,
  type HeaderList,
  UpstreamFailure,
  type UpstreamFailureKind,
  type UpstreamHandler,
  type UpstreamLimits,
} from '#kernel'
import { toStatusError } from '../errors.ts'
import type { TakeBack } from './engine-calls.ts'
import { toMetadata } from './metadata.ts'
import { notify } from './unary-call.ts'

const OK = 0
const CANCELLED = 1
const READY = 2
/** An engine that is told to stop has this long to answer, in milliseconds. */
const TAKE_BACK_MS = 5_000
const NO_HEADERS: HeaderList = []

type LimitKind = Extract<
  UpstreamFailureKind,
  'connect' | 'first_byte_timeout' | 'idle_timeout' | 'request_timeout'
>
type Call = ReturnType<ChannelInterface['createCall']>

export interface CallPlan {
  readonly path: string
  readonly headers: HeaderList
  readonly body: Buffer
  readonly takeBack: TakeBack | null
}

export class GrpcExchange implements Exchange {
  readonly #channel: ChannelInterface
  readonly #plan: CallPlan
  readonly #limits: UpstreamLimits
  readonly #handler: UpstreamHandler
  readonly #call: Call
  #phase: LimitKind = 'connect'
  #phaseTimer: NodeJS.Timeout | null = null
  #requestTimer: NodeJS.Timeout | null = null
  #hasStarted = false
  #isOver = false
  #isPaused = false
  /** A message was taken in and no other was asked for. */
  #isResting = false

  constructor(channel: ChannelInterface, plan: CallPlan, limits: UpstreamLimits, handler: UpstreamHandler) {
    this.#channel = channel
    this.#plan = plan
    this.#limits = limits
    this.#handler = handler
    this.#call = channel.createCall(plan.path, Number.POSITIVE_INFINITY, null, null, null)
  }

  start(): void {
    const { path: _path, headers, body } = this.#plan
    const { requestMs } = this.#limits
    if (requestMs > 0) this.#requestTimer = setTimeout(() => this.#late('request_timeout'), requestMs)
    this.#watchConnection()
    this.#call.start(toMetadata(headers), this)
    this.#call.sendMessageWithContext({}, body)
    this.#call.halfClose()
    this.#call.startRead()
  }

  #watchConnection(): void {
    if (this.#channel.getConnectivityState(true) === READY) {
      this.#enter('first_byte_timeout', this.#limits.firstByteMs)
      return
    }
    const { connectMs } = this.#limits
    this.#enter('connect', connectMs)
    if (connectMs > 0) this.#awaitReady(Date.now() + connectMs)
  }

  #awaitReady(deadlineMs: number): void {
    const state = this.#channel.getConnectivityState(false)
    if (this.#isOver || this.#phase !== 'connect') return
    if (state === READY) this.#enter('first_byte_timeout', this.#limits.firstByteMs)
    else
      this.#channel.watchConnectivityState(state, deadlineMs, (error) => {
        if (error === undefined) this.#awaitReady(deadlineMs)
      })
  }

  #enter(phase: LimitKind, limitMs: number): void {
    this.#phase = phase
    if (this.#phaseTimer !== null) clearTimeout(this.#phaseTimer)
    this.#phaseTimer = limitMs === 0 ? null : setTimeout(() => this.#late(this.#phase), limitMs)
  }

  onReceiveMetadata(): void {
    if (this.#isOver) return
    if (!this.#isPaused) this.#enter('idle_timeout', this.#limits.idleMs)
    else this.#phase = 'idle_timeout'
  }

  onReceiveMessage(message: Buffer): void {
    if (this.#isOver) return
    if (!this.#hasStarted) {
      this.#hasStarted = true
      this.#handler.onResponseStart(200, NO_HEADERS, -1)
      if (this.#isOver) return
    }
    this.#handler.onResponseData(message)
    if (this.#isOver) return
    this.#phaseTimer?.refresh()
    this.#read()
  }

  #read(): void {
    if (this.#isPaused) this.#isResting = true
    else this.#call.startRead()
  }

  onReceiveStatus({ code, details }: { readonly code: number; readonly details: string }): void {
    if (this.#isOver) return
    this.#end()
    if (code === OK) {
      if (!this.#hasStarted) this.#handler.onResponseStart(200, NO_HEADERS, -1)
      this.#handler.onResponseEnd()
      return
    }
    // While the connection stands, the words are the engine's; otherwise the library's, which name addresses.
    const isOwn = this.#channel.getConnectivityState(false) === READY
    const error = toStatusError(code, details, isOwn)
    const what = `the engine's status is ${code}: ${details}`
    this.#handler.onResponseError(new UpstreamFailure('refused', what, this.#hasStarted, { error }))
  }

  pause(): void {
    this.#isPaused = true
    if (this.#phase === 'connect' || this.#phaseTimer === null) return
    clearTimeout(this.#phaseTimer)
    this.#phaseTimer = null
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (this.#isOver) return
    const { firstByteMs, idleMs } = this.#limits
    if (this.#phase === 'first_byte_timeout') this.#enter(this.#phase, firstByteMs)
    else if (this.#phase === 'idle_timeout') this.#enter(this.#phase, idleMs)
    if (!this.#isResting) return
    this.#isResting = false
    this.#call.startRead()
  }

  abort(): void {
    if (this.#isOver) return
    this.#end()
    this.#takeBack()
  }

  #late(kind: LimitKind): void {
    if (this.#isOver) return
    this.#end()
    this.#takeBack()
    this.#handler.onResponseError(
      new UpstreamFailure(kind, `the limit of the ${kind} is over`, this.#hasStarted),
    )
  }

  #takeBack(): void {
    this.#call.cancelWithStatus(CANCELLED, 'nobody waits any more')
    const { takeBack, headers } = this.#plan
    if (takeBack === null) return
    notify(this.#channel, takeBack.path, takeBack.body, { timeoutMs: TAKE_BACK_MS, headers })
  }

  #end(): void {
    this.#isOver = true
    if (this.#phaseTimer !== null) clearTimeout(this.#phaseTimer)
    if (this.#requestTimer !== null) clearTimeout(this.#requestTimer)
  }
}
