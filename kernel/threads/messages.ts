/** Messages between control and a data thread, and errors in them. */
import type { MessagePort } from 'node:worker_threads'
import type { MetricsSnapshot } from '../contracts/metric.ts'
import type { TaskFailureKind } from '../contracts/task-pool.ts'
import { defineErrors } from '../errors/define-errors.ts'
import { fromPlainError, GatewayError, type PlainError, toPlainError } from '../errors/gateway-error.ts'
import { messageOf } from '../errors/message-of.ts'
import type { SharedBlocks } from './shared-memory.ts'

/** A replica's value and the number of its publication, 1-based. */
export interface ReplicaState {
  readonly value: unknown
  readonly version: number
}

/** Failure of a command: all of a GatewayError, or only the message of another error. */
type CommandFailure =
  | { readonly kind: 'gateway'; readonly error: PlainError }
  | { readonly kind: 'internal'; readonly message: string }

/** A task for a process-wide pool, and a request to stop one. Ids are unique per sending thread. */
export type TaskUpMessage =
  | { readonly type: 'task'; readonly id: number; readonly pool: string; readonly task: unknown }
  | { readonly type: 'task_stop'; readonly id: number }

export type TaskDownMessage =
  | { readonly type: 'task_done'; readonly id: number; readonly value: unknown }
  | {
      readonly type: 'task_failed'
      readonly id: number
      readonly kind: TaskFailureKind
      readonly message: string
    }

/** Posts to a thread; messages to an ended thread are dropped. */
export type SendDown = (message: LinkDownMessage, transfer?: readonly ArrayBuffer[]) => void

/** Link messages from a data thread to control. */
export type LinkUpMessage =
  | { readonly type: 'command'; readonly id: number; readonly name: string; readonly payload: unknown }
  | { readonly type: 'replica_ack'; readonly name: string; readonly version: number }
  | TaskUpMessage

/** Link messages from control to a data thread. */
export type LinkDownMessage =
  | { readonly type: 'command_done'; readonly id: number; readonly value: unknown }
  | { readonly type: 'command_failed'; readonly id: number; readonly failure: CommandFailure }
  | { readonly type: 'replica'; readonly name: string; readonly state: ReplicaState }
  | TaskDownMessage

/** Reports of a data thread about its own life. */
export type LifeUpMessage =
  | { readonly type: 'listening'; readonly port: number }
  | {
      readonly type: 'metrics'
      readonly id: number
      /** Whether the snapshot has every family. */
      readonly isWhole: boolean
      readonly snapshot: MetricsSnapshot
    }
  | { readonly type: 'drained' }
  /** The thread is about to end; its last metrics, null if they could not be collected. */
  | { readonly type: 'fatal'; readonly message: string; readonly snapshot: MetricsSnapshot | null }

/** Orders of control about a data thread's life. */
export type LifeDownMessage =
  | { readonly type: 'collect'; readonly id: number; readonly families: readonly string[] | null }
  | { readonly type: 'drain'; readonly deadlineMs: number; readonly settleMs: number }
  | { readonly type: 'stop' }

export type UpMessage = LinkUpMessage | LifeUpMessage
export type DownMessage = LinkDownMessage | LifeDownMessage

/** Start data of a data thread. */
export interface ThreadSeed {
  /** 1-based; also the thread's column in the shared counters. */
  readonly index: number
  /** Port to listen on, shared with the other threads; never 0. */
  readonly port: number
  readonly counters: SharedArrayBuffer
  /** The thread replaces one that has ended. */
  readonly isReplacement: boolean
  /** Blocks that control has created so far. */
  readonly shared: SharedBlocks
  /** Port for requests of further blocks. */
  readonly sharedPort: MessagePort
  /** The whole configuration as plain JSON. */
  readonly config: unknown
  /** Everything published so far. */
  readonly replicas: Readonly<Record<string, ReplicaState>>
}

export interface ThreadWorkerData {
  readonly weirThread: ThreadSeed
}

export const threadErrors = defineErrors('threads', {
  unknown_command: {
    kind: 'internal',
    source: 'gateway',
    text: (name: string) => `no plugin handles the command ${name}`,
  },
})

/** Keeps all fields of a GatewayError, and only the message of other errors. */
export function toFailure(error: unknown): CommandFailure {
  if (error instanceof GatewayError) return { kind: 'gateway', error: toPlainError(error) }
  return { kind: 'internal', message: messageOf(error) }
}

/** The error that the caller of the command receives. */
export function fromFailure(failure: CommandFailure): Error {
  return failure.kind === 'gateway' ? fromPlainError(failure.error) : new Error(failure.message)
}
