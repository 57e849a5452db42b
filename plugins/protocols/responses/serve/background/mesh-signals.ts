/**
 * Hints between gateways that share a store: a log has grown, a response was ended, a job waits. They replace no poll and
 * carry no content: a hash of tenant and response, which receivers look up in the store. On control.
 */
import type { MeshChannel, Topic } from '#kernel'
import { FOLLOW_AGAIN_MS, JOBS_KEY, type LiveResponses, type Signals, type StopRequest } from './topics.ts'

/** Each is a byte on the channel, followed by the key if it has one. */
const KINDS = ['follow', 'grown', 'over', 'ended', 'job'] as const
type Kind = (typeof KINDS)[number]
/** Base64url of 16 bytes. */
const KEY = /^[A-Za-z0-9_-]{22}$/

/** Time for which a response counts as followed after a signal. */
const FOLLOWED_MS = 3 * FOLLOW_AGAIN_MS
/** Responses that other gateways follow; further ones are polled. */
const MAX_FOLLOWED = 10_000

export interface SignalTopics {
  readonly signals: Signals
  readonly jobs: Topic<null>
  readonly live: LiveResponses
  readonly stops: Topic<StopRequest>
}

export class MeshSignals {
  readonly #channel: MeshChannel
  readonly #topics: SignalTopics
  /** Keys of responses that other gateways follow, and the end of the subscription. */
  readonly #followed = new Map<string, NodeJS.Timeout>()
  /** A signal of another gateway is being published here, and is not sent back. */
  #isRelaying = false

  constructor(channel: MeshChannel, topics: SignalTopics) {
    this.#channel = channel
    this.#topics = topics
    for (const kind of ['follow', 'ended'] as const)
      topics.signals.subscribe(kind, (key) => this.#send(kind, key))
    topics.jobs.subscribe(JOBS_KEY, () => this.#send('job'))
    channel.onMessage((message) => this.#take(message))
  }

  #send(kind: Kind, key = ''): void {
    if (!this.#isRelaying) this.#channel.send(Buffer.from(`${KINDS.indexOf(kind)}${key}`))
  }

  /** Messages of unknown kinds may come from newer gateways. */
  #take(message: Buffer): void {
    if (message.length > 23) return
    const text = message.toString('latin1')
    const kind = KINDS[Number(text[0])]
    const key = text.slice(1)
    if (kind !== 'job' && !KEY.test(key)) return
    this.#isRelaying = true
    try {
      const { live, stops, jobs } = this.#topics
      if (kind === 'job') jobs.publish(JOBS_KEY, null)
      else if (kind === 'ended') stops.publish(key, { isHint: true })
      else if (kind === 'follow') this.#follow(key)
      else if (kind !== undefined) live.publish(key, { isOver: kind === 'over' })
    } finally {
      this.#isRelaying = false
    }
  }

  #follow(key: string): void {
    const known = this.#followed.get(key)
    known?.refresh()
    if (known !== undefined || this.#followed.size >= MAX_FOLLOWED) return
    const unsubscribe = this.#topics.live.subscribe(key, ({ isOver }) => {
      this.#send(isOver ? 'over' : 'grown', key)
      if (isOver) end()
    })
    const end = () => {
      unsubscribe()
      clearTimeout(timer)
      this.#followed.delete(key)
    }
    const timer = setTimeout(end, FOLLOWED_MS).unref()
    this.#followed.set(key, timer)
  }
}
