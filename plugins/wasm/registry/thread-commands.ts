/** What the serving threads ask of control, and what control tells them. */
import { defineCommand, defineReplica } from '#kernel'
import type { ModuleSet } from '../threads/guest-task.ts'
import type { AddResult, ModuleList } from '../wire.ts'

/** Who asked, for the audit trail. */
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
/** The result is the sentence for the reply. */
export const RemoveModule = defineCommand<
  { uuid: string; requester: Requester },
  { readonly isRemoved: boolean; readonly text: string }
>('wasm.remove')

/** How a change of versions went; without a uuid the text says why not. */
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
