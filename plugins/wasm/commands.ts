/** What the serving threads ask of control, and what control tells them. */
import { defineCommand, defineReplica } from '#kernel'
import type { ModuleSet } from './guest-task.ts'
import type { AddResult, ModuleList } from './wire.ts'

/** Who asked, for the audit trail. */
export interface Asker {
  /** Null when the routes are open. */
  readonly principal: string | null
  readonly requestId: string
}

/** The body as received; the result has one member per module of it, in order. */
export const RegisterModules = defineCommand<{ body: unknown; asker: Asker }, readonly AddResult[]>(
  'wasm.register',
)
export const ListModules = defineCommand<null, ModuleList>('wasm.list')
/** The result is the sentence for the reply. */
export const RemoveModule = defineCommand<
  { uuid: string; asker: Asker },
  { readonly isRemoved: boolean; readonly text: string }
>('wasm.remove')

export const ModulesReplica = defineReplica<ModuleSet>('wasm.modules', { modules: [] })
