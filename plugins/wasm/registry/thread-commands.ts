/** Commands of data threads to control, and the replica of the modules. */
import { defineCommand, defineReplica } from '#kernel'
import type { ModuleSet } from '../threads/guest-task.ts'
import type { AddResult, ModuleList } from '../wire.ts'

/** Caller of a change, for the audit log. */
export interface Requester {
  /** Null when the routes are open. */
  readonly principal: string | null
  readonly requestId: string
}

/** The body as received; the result has one member per module of it, in order. */
export const RegisterModules = defineCommand<{ body: unknown; requester: Requester }, readonly AddResult[]>(
  'wasm.register',
)
export const ListModules = defineCommand<{ isFull: boolean }, ModuleList>('wasm.list')
/** `text` is the text of the response. */
export const RemoveModule = defineCommand<
  { uuid: string; requester: Requester },
  { readonly isRemoved: boolean; readonly text: string }
>('wasm.remove')

/** Result of a change of versions; `text` has the reason of a rejection if `uuid` is null. */
export interface ChangeResult {
  readonly uuid: string | null
  readonly text: string
}

export const ReplaceModule = defineCommand<
  { uuid: string; body: unknown; requester: Requester },
  ChangeResult
>('wasm.replace')
export const PromoteModule = defineCommand<{ uuid: string; requester: Requester }, ChangeResult>(
  'wasm.promote',
)
export const RollBackModule = defineCommand<{ uuid: string; requester: Requester }, ChangeResult>(
  'wasm.rollback',
)

export const ModulesReplica = defineReplica<ModuleSet>('wasm.modules', { modules: [] })
