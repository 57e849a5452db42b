/** The latest log lines of each module, on control: of all data threads, bounded per module. */
import { defineCommand, type Static, Type } from '#kernel'
import type { LogLine } from '../threads/guest-task.ts'

/** Lines kept per version of a module. */
const MAX_LINES = 200

/** A line as a data thread reports it. */
export interface KeptLine {
  readonly uuid: string
  /** Milliseconds since 1970. */
  readonly atMs: number
  readonly level: LogLine[0]
  readonly requestId: string
  /** Bounded by the exchange memory of the guest. */
  readonly text: string
}

export const ModuleLogSchema = Type.Object({
  lines: Type.Array(
    Type.Object({
      time: Type.String({ description: 'ISO 8601.' }),
      level: Type.Enum(['debug', 'info', 'warn', 'error']),
      text: Type.String({ description: 'At most 2 KiB. Failed calls are lines, too.' }),
      request_id: Type.String(),
      thread: Type.Integer({ description: 'Data thread of the request.' }),
    }),
    { description: `The last ${MAX_LINES} lines, latest first.` },
  ),
})
export type ModuleLog = Static<typeof ModuleLogSchema>

export const KeepLines = defineCommand<{ thread: number; lines: readonly KeptLine[] }, void>(
  'wasm.keep-lines',
)
/** Null for an unknown module. */
export const ReadLines = defineCommand<string, ModuleLog | null>('wasm.read-lines')

export class ModuleLogs {
  /** Oldest first, by UUID of the version. */
  readonly #lines = new Map<string, ModuleLog['lines']>()

  /** Deletes the lines of other modules. @param uuids current versions and versions on trial */
  retain(uuids: readonly string[]): void {
    const kept = new Set(uuids)
    for (const uuid of this.#lines.keys()) if (!kept.has(uuid)) this.#lines.delete(uuid)
    for (const uuid of kept) if (!this.#lines.has(uuid)) this.#lines.set(uuid, [])
  }

  add(thread: number, lines: readonly KeptLine[]): void {
    for (const { uuid, atMs, level, requestId, text } of lines) {
      const known = this.#lines.get(uuid)
      if (known === undefined) continue
      known.push({ time: new Date(atMs).toISOString(), level, text, request_id: requestId, thread })
      if (known.length > MAX_LINES) known.shift()
    }
  }

  /** Latest first. @returns null for an unknown module */
  read(uuid: string): ModuleLog | null {
    const lines = this.#lines.get(uuid)
    return lines === undefined ? null : { lines: lines.toReversed() }
  }
}
