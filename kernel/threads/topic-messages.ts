/** What crosses between threads for topics: interests through control, events from thread to thread. */
import type { MessagePort } from 'node:worker_threads'

/** One thread's interest in one key. Ids are the listening thread's own and never used twice there. */
export interface Interest {
  readonly id: number
  readonly topic: string
  readonly key: string
  /** How many events may be on the way to it. */
  readonly maxWaiting: number
}

/** From a thread to control. */
export type TopicUpMessage =
  | { readonly type: 'topic_listen'; readonly interest: Interest }
  | { readonly type: 'topic_unlisten'; readonly id: number }
  /** The thread knows of that interest. */
  | { readonly type: 'topic_known'; readonly thread: number; readonly id: number }
  /** The thread has an event for another one and no way to it yet. */
  | { readonly type: 'topic_connect'; readonly thread: number }

/** From control to a thread. */
export type TopicDownMessage =
  /** `wantsAnswer`: the listening thread waits until all know. */
  | { readonly type: 'topic_listens'; readonly thread: number; readonly interest: Interest }
  | { readonly type: 'topic_left'; readonly thread: number; readonly id: number }
  /** That thread has ended. */
  | { readonly type: 'topic_gone'; readonly thread: number }
  /** Everybody knows of this interest of yours. */
  | { readonly type: 'topic_ready'; readonly id: number }
  | {
      readonly type: 'topic_port'
      readonly thread: number
      readonly isMine: boolean
      readonly port: MessagePort
    }

/** From the publishing thread to the listening one, and back. */
export type TopicEventMessage =
  | { readonly type: 'event'; readonly id: number; readonly event: unknown }
  /** Too many were on the way: no more come. */
  | { readonly type: 'lost'; readonly id: number }
  | { readonly type: 'taken'; readonly id: number; readonly count: number }
