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
/** Result of a change; `text` has the reason of a rejection if `uuid` is null. */
export interface ChangeResult {
  readonly uuid: string | null
  readonly text: string
}

interface Change {
  readonly uuid: string
  readonly requester: Requester
}

export const ReplaceModule = defineCommand<Change & { readonly body: unknown }, ChangeResult>('wasm.replace')
export const ChangeModule = defineCommand<
  Change & { readonly action: 'promote' | 'rollback' | 'remove' },
  ChangeResult
>('wasm.change')

export const ModulesReplica = defineReplica<ModuleSet>('wasm.modules', { modules: [], missing: null })
