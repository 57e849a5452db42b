/**
 * The topics of one thread: who listens here, which other threads listen to what, and the ways to them. Events go from
 * thread to thread directly; control only says who listens and makes the connections.
 */
import type { MessagePort } from 'node:worker_threads'
import type { Subscription, Topic, TopicListener, TopicToken } from '../contracts/topic.ts'
import { LocalSubscription } from './local-subscription.ts'
import { threadErrors } from './thread-errors.ts'
import type { Interest, TopicDownMessage, TopicEventMessage, TopicUpMessage } from './topic-messages.ts'

/** A listening thread's interest as this thread, which publishes, sees it. */
interface RemoteInterest extends Interest {
  readonly thread: number
  /** Events sent and not yet taken. */
  onTheWay: number
  isLost: boolean
}

/** This thread's interest in one key: its listeners share what comes. */
interface LocalInterest extends Interest {
  readonly subscriptions: Set<LocalSubscription>
  readonly ready: PromiseWithResolvers<void>
}

interface Channel {
  readonly local: Map<string, LocalInterest>
  readonly remote: Map<string, RemoteInterest[]>
}

/** The way to one other thread; what is published before it is made waits, as bounded as everything. */
interface Peer {
  port: MessagePort | null
  waiting: TopicEventMessage[]
}

export class TopicHub {
  readonly #toControl: (message: TopicUpMessage) => void
  readonly #channels = new Map<string, Channel>()
  readonly #localById = new Map<number, LocalInterest>()
  readonly #remoteById = new Map<string, RemoteInterest>()
  readonly #peers = new Map<number, Peer>()
  /** Events taken in since the last word about it, by interest and port. */
  readonly #taken = new Map<MessagePort, Map<number, number>>()
  #lastId = 0

  constructor(toControl: (message: TopicUpMessage) => void) {
    this.#toControl = toControl
  }

  topic<Event>({ name, maxWaiting }: TopicToken<Event>): Topic<Event> {
    const channel = this.#channel(name)
    return {
      publish: (key, event) => {
        const local = channel.local.get(key)
        const remote = channel.remote.get(key)
        if (local === undefined && remote === undefined) return false
        if (remote !== undefined) for (const interest of remote) this.#send(interest, event)
        if (local !== undefined) deliver(local, event)
        return true
      },
      hasListeners: (key) => channel.local.has(key) || channel.remote.has(key),
      subscribe: (key, listener) =>
        this.#subscribe(channel, { topic: name, key, maxWaiting }, listener as TopicListener<unknown>),
    }
  }

  /** What control tells. */
  receive(message: TopicDownMessage): void {
    switch (message.type) {
      case 'topic_listens':
        this.#addRemote(message.thread, message.interest)
        this.#toControl({ type: 'topic_known', thread: message.thread, id: message.interest.id })
        return
      case 'topic_left':
        this.#dropRemote(message.thread, message.id)
        return
      case 'topic_gone':
        this.#peers.get(message.thread)?.port?.close()
        this.#peers.delete(message.thread)
        for (const { thread, id } of [...this.#remoteById.values()])
          if (thread === message.thread) this.#dropRemote(thread, id)
        return
      case 'topic_ready':
        this.#localById.get(message.id)?.ready.resolve()
        return
      default:
        this.#connected(message.thread, message.isMine, message.port)
    }
  }

  #channel(name: string): Channel {
    const known = this.#channels.get(name)
    if (known !== undefined) return known
    const channel: Channel = { local: new Map(), remote: new Map() }
    this.#channels.set(name, channel)
    return channel
  }

  #subscribe(channel: Channel, wanted: Omit<Interest, 'id'>, listener: TopicListener<unknown>): Subscription {
    const interest = channel.local.get(wanted.key) ?? this.#listen(channel, wanted)
    const subscription = new LocalSubscription(
      listener,
      wanted.maxWaiting,
      (ended) => this.#left(channel, interest, ended),
      () => threadErrors.topic_listener_slow(wanted.topic, wanted.maxWaiting),
    )
    interest.subscriptions.add(subscription)
    return { ready: interest.ready.promise, close: () => subscription.close() }
  }

  /** The first listener of a key here. */
  #listen(channel: Channel, wanted: Omit<Interest, 'id'>): LocalInterest {
    const id = ++this.#lastId
    const interest: LocalInterest = {
      ...wanted,
      id,
      subscriptions: new Set(),
      ready: Promise.withResolvers<void>(),
    }
    channel.local.set(wanted.key, interest)
    this.#localById.set(id, interest)
    this.#toControl({ type: 'topic_listen', interest: { ...wanted, id } })
    return interest
  }

  #left(channel: Channel, interest: LocalInterest, ended: LocalSubscription): void {
    interest.subscriptions.delete(ended)
    if (interest.subscriptions.size > 0 || channel.local.get(interest.key) !== interest) return
    channel.local.delete(interest.key)
    this.#localById.delete(interest.id)
    // Nobody is left who could miss anything.
    interest.ready.resolve()
    this.#toControl({ type: 'topic_unlisten', id: interest.id })
  }

  #addRemote(thread: number, interest: Interest): void {
    const remote: RemoteInterest = { ...interest, thread, onTheWay: 0, isLost: false }
    this.#remoteById.set(`${thread} ${interest.id}`, remote)
    const { remote: byKey } = this.#channel(interest.topic)
    const others = byKey.get(interest.key)
    if (others === undefined) byKey.set(interest.key, [remote])
    else others.push(remote)
  }

  #dropRemote(thread: number, id: number): void {
    const remote = this.#remoteById.get(`${thread} ${id}`)
    if (remote === undefined) return
    this.#remoteById.delete(`${thread} ${id}`)
    const { remote: byKey } = this.#channel(remote.topic)
    const left = (byKey.get(remote.key) ?? []).filter((one) => one !== remote)
    if (left.length === 0) byKey.delete(remote.key)
    else byKey.set(remote.key, left)
  }

  #send(interest: RemoteInterest, event: unknown): void {
    if (interest.isLost) return
    const { id, thread } = interest
    if (interest.onTheWay >= interest.maxWaiting) {
      interest.isLost = true
      this.#post(thread, { type: 'lost', id })
      return
    }
    this.#post(thread, { type: 'event', id, event })
    interest.onTheWay += 1
  }

  #post(thread: number, message: TopicEventMessage): void {
    let peer = this.#peers.get(thread)
    if (peer === undefined) {
      peer = { port: null, waiting: [] }
      this.#peers.set(thread, peer)
      this.#toControl({ type: 'topic_connect', thread })
    }
    if (peer.port !== null) peer.port.postMessage(message)
    // A copy, as the port makes one: who publishes learns here of what cannot cross.
    else peer.waiting.push(message.type === 'event' ? structuredClone(message) : message)
  }

  #connected(thread: number, isMine: boolean, port: MessagePort): void {
    const peer = this.#peers.get(thread)
    if (isMine && peer?.port !== null) {
      // The thread has ended since it was asked for, and its successor may have a way already.
      port.close()
      return
    }
    port.on('message', (message: TopicEventMessage) => this.#onEvent(port, thread, message))
    port.on('close', () => this.#taken.delete(port))
    // It keeps no thread alive.
    port.unref()
    if (!isMine || peer === undefined) return
    peer.port = port
    for (const message of peer.waiting) port.postMessage(message)
    peer.waiting = []
  }

  #onEvent(port: MessagePort, thread: number, message: TopicEventMessage): void {
    if (message.type === 'taken') {
      const remote = this.#remoteById.get(`${thread} ${message.id}`)
      if (remote !== undefined) remote.onTheWay -= message.count
      return
    }
    const interest = this.#localById.get(message.id)
    if (interest === undefined) return
    if (message.type === 'lost') {
      const error = threadErrors.topic_listener_slow(interest.topic, interest.maxWaiting)
      for (const subscription of [...interest.subscriptions]) subscription.lose(error)
      return
    }
    deliver(interest, message.event)
    this.#count(port, interest)
  }

  /** Says so in batches: a message for each would double the traffic. */
  #count(port: MessagePort, { id, maxWaiting }: LocalInterest): void {
    let counts = this.#taken.get(port)
    if (counts === undefined) {
      counts = new Map()
      this.#taken.set(port, counts)
    }
    const count = (counts.get(id) ?? 0) + 1
    if (count * 4 < maxWaiting) {
      counts.set(id, count)
      return
    }
    counts.delete(id)
    port.postMessage({ type: 'taken', id, count } satisfies TopicEventMessage)
  }
}

function deliver(interest: LocalInterest, event: unknown): void {
  for (const subscription of interest.subscriptions) subscription.deliver(event)
}
