/** Control's part in topics: who listens to what, told to every thread, and the connections between threads. */
import { MessageChannel, type Transferable } from 'node:worker_threads'
import type { Interest, TopicDownMessage, TopicUpMessage } from './topic-messages.ts'

/** A thread as the exchange sees it; control itself is number 0. */
export interface TopicThread {
  readonly index: number
  send(message: TopicDownMessage, transfer?: readonly Transferable[]): void
}

interface Announced {
  readonly owner: TopicThread
  readonly interest: Interest
  /** Threads that do not know of it yet. */
  readonly unaware: Set<TopicThread>
  isReady: boolean
}

export class TopicExchange {
  readonly #threads = new Map<number, TopicThread>()
  readonly #announced = new Map<string, Announced>()

  /** A thread that is new knows everything before its first own message. */
  add(thread: TopicThread): void {
    this.#threads.set(thread.index, thread)
    for (const { owner, interest } of this.#announced.values())
      thread.send({ type: 'topic_listens', thread: owner.index, interest })
  }

  /** The thread has ended: its interests with it. */
  remove(thread: TopicThread): void {
    if (this.#threads.get(thread.index) !== thread) return
    this.#threads.delete(thread.index)
    for (const [key, announced] of this.#announced) {
      if (announced.owner === thread) this.#announced.delete(key)
      else this.#known(announced, thread)
    }
    for (const other of this.#threads.values()) other.send({ type: 'topic_gone', thread: thread.index })
  }

  receive(from: TopicThread, message: TopicUpMessage): void {
    // What a thread that has ended had still to say.
    if (this.#threads.get(from.index) !== from) return
    switch (message.type) {
      case 'topic_listen':
        this.#listen(from, message.interest)
        return
      case 'topic_unlisten':
        this.#announced.delete(keyOf(from.index, message.id))
        for (const other of this.#others(from))
          other.send({ type: 'topic_left', thread: from.index, id: message.id })
        return
      case 'topic_known': {
        const announced = this.#announced.get(keyOf(message.thread, message.id))
        if (announced !== undefined) this.#known(announced, from)
        return
      }
      default:
        this.#connect(from, message.thread)
    }
  }

  #listen(owner: TopicThread, interest: Interest): void {
    const others = this.#others(owner)
    const announced: Announced = { owner, interest, unaware: new Set(others), isReady: false }
    this.#announced.set(keyOf(owner.index, interest.id), announced)
    for (const other of others) other.send({ type: 'topic_listens', thread: owner.index, interest })
    this.#tellIfReady(announced)
  }

  #known(announced: Announced, thread: TopicThread): void {
    announced.unaware.delete(thread)
    this.#tellIfReady(announced)
  }

  #tellIfReady(announced: Announced): void {
    if (announced.isReady || announced.unaware.size > 0) return
    announced.isReady = true
    announced.owner.send({ type: 'topic_ready', id: announced.interest.id })
  }

  #connect(from: TopicThread, index: number): void {
    const to = this.#threads.get(index)
    // It has ended: whoever asked has been told so.
    if (to === undefined) return
    const { port1, port2 } = new MessageChannel()
    to.send({ type: 'topic_port', thread: from.index, isMine: false, port: port1 }, [port1])
    from.send({ type: 'topic_port', thread: to.index, isMine: true, port: port2 }, [port2])
  }

  #others(thread: TopicThread): TopicThread[] {
    return [...this.#threads.values()].filter((other) => other !== thread)
  }
}

function keyOf(thread: number, id: number): string {
  return `${thread} ${id}`
}
