/**
 * Signals about stored responses: topics between the threads of a gateway, and hints between gateways that share a store. These
 * replace no poll and carry no content: a hash of tenant and response, which receivers look up in the store.
 */
import { createHash } from 'node:crypto'
import { defineTopic, type MeshChannel, type Topic } from '#kernel'

/** A response's log has grown. */
interface LogGrown {
  readonly isOver: boolean
}
export const LiveTopic = defineTopic<LogGrown>('responses-live')

/** A response is to stop. */
export interface StopRequest {
  /** It comes from another gateway: the store decides. */
  readonly isHint: boolean
}
export const CancelTopic = defineTopic<StopRequest>('responses-cancel')

/** Waiting jobs, under one key. */
export const JobsTopic = defineTopic<null>('responses-jobs')
export const JOBS_KEY = 'waiting'

/** From data threads to control, under the kind of the signal; the event is the key of a response. */
export const SignalTopic = defineTopic<string>('responses-signals')

export interface SignalTopics {
  readonly live: Topic<LogGrown>
  readonly stops: Topic<StopRequest>
  readonly jobs: Topic<null>
  readonly signals: Topic<string>
}

/** Followers repeat their signal within this time, milliseconds. */
export const FOLLOW_AGAIN_MS = 5_000

/** Names a response in topics and signals; it cannot be reversed. @returns 22 characters of base64url */
export function liveKey(tenant: string, id: string): string {
  return createHash('sha256').update(`${tenant}/${id}`).digest().toString('base64url', 0, 16)
}

/** Each is a byte on the channel, followed by the key if it has one. */
const KINDS = ['follow', 'grown', 'over', 'ended', 'job'] as const
type Kind = (typeof KINDS)[number]
/** Base64url of 16 bytes. */
const KEY = /^[A-Za-z0-9_-]{22}$/

/** Time for which a response counts as followed after a signal. */
const FOLLOWED_MS = 3 * FOLLOW_AGAIN_MS
/** Responses that other gateways follow; further ones are polled. */
const MAX_FOLLOWED = 10_000

/** Passes the signals of this gateway on to the others, and theirs to its threads. On control. */
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
