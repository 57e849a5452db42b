/** The modules that were registered through the API: saved after each change, and loaded when another gateway changes one. */
import { isDeepStrictEqual } from 'node:util'
import { GatewayError, type Logger, messageOf } from '#kernel'
import { wasmErrors } from '../errors.ts'
import type { ModuleLine, NotLoaded, Registered } from './module-list.ts'
import type { ModuleLoader } from './module-loader.ts'
import type { ModuleTable } from './module-table.ts'
import type { ModuleStore, SavedLine, SavedVersion } from './saved-modules.ts'

/**
 * @param modules the registered modules
 * @param earlier versions available for rollback, most recent first
 * @returns null without a current version
 */
export function toSavedLine(
  line: ModuleLine,
  modules: readonly Registered[],
  earlier: readonly Registered[],
): SavedLine | null {
  const own = modules.filter((module) => module.line === line)
  const current = own.find(({ trial }) => trial === null)
  const tried = own.find(({ trial }) => trial !== null)
  if (current === undefined) return null
  return {
    id: line.firstUuid,
    current: toSaved(current),
    trial: tried?.trial ? { version: toSaved(tried), rule: tried.trial } : null,
    earlier: earlier.map(toSaved).toReversed(),
  }
}

function toSaved({ loaded, descriptor, hash, createdAtNs }: Registered): SavedVersion {
  const { uuid, onFailure } = loaded
  return { uuid, descriptor, hash, onFailure, createdAtNs: String(createdAtNs) }
}

interface LineParts {
  readonly saved: ModuleStore
  readonly loader: ModuleLoader
  readonly table: ModuleTable
  readonly log: Logger
  publish(): Promise<void>
  /** A line is to be followed: it was changed, or could not be loaded. */
  onChange(id: string): void
}

/** Interval of the attempts to load shared modules that could not be loaded. */
const RETRY_MS = 5_000

export class SavedLines {
  /** By id of the line. */
  readonly notLoaded = new Map<string, NotLoaded>()
  readonly #parts: LineParts
  /** Lines of modules that were registered through the API. */
  readonly #lines = new Set<ModuleLine>()
  /** Ids of lines that may differ from what is saved. */
  readonly #changed = new Set<string>()
  #retry: NodeJS.Timeout | null = null

  constructor(parts: LineParts) {
    this.#parts = parts
  }

  has(line: ModuleLine): boolean {
    return this.#lines.has(line)
  }

  /** Lets the next `follow` look at a line. */
  mark(id: string): void {
    this.#changed.add(id)
  }

  close(): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
  }

  /** Stores a line of a module that was registered through the API. @returns false if another gateway has changed it */
  async save(line: ModuleLine, modules: readonly Registered[]): Promise<boolean> {
    if (!this.#lines.has(line)) return true
    const { saved, table } = this.#parts
    const next = toSavedLine(line, modules, table.earlier(line))
    if (next !== null) return saved.put(next)
    await saved.remove(line.firstUuid)
    this.#lines.delete(line)
    return true
  }

  /** Applies lines that may have been changed by another gateway. */
  async follow(): Promise<void> {
    for (const id of this.#changed) {
      this.#changed.delete(id)
      let line: SavedLine | undefined
      try {
        line = this.#parts.saved.read(id)
        await this.#apply(id, line)
        if (this.notLoaded.delete(id)) await this.#parts.publish()
      } catch (error) {
        await this.#missing(id, line, error)
      }
    }
    if (this.notLoaded.size > 0 && this.#parts.saved.isShared) this.#retryLater()
  }

  /** @param saved undefined if it was removed. @throws ModuleRejected; nothing has changed then */
  async #apply(id: string, saved: SavedLine | undefined): Promise<void> {
    const { table, log } = this.#parts
    const line = [...this.#lines].find(({ firstUuid }) => firstUuid === id)
    const own = table.modules.filter((module) => module.line === line)
    if (saved === undefined) {
      for (const module of own) table.modules = table.without(module)
      if (line !== undefined) this.#lines.delete(line)
      if (own.length > 0) await this.#parts.publish()
      return
    }
    const isKnown =
      line !== undefined && isDeepStrictEqual(toSavedLine(line, table.modules, table.earlier(line)), saved)
    if (isKnown) return
    table.checkRoom((saved.trial === null ? 1 : 2) - own.length)
    table.checkDuplicate(saved.current, (module) => module.isConfigured)
    const next = await loadLine(saved, line, own, this.#parts)
    const others = table.modules.filter((module) => module.line !== line)
    this.keep(next[0].line)
    table.modules = [...others, ...next]
    await this.#parts.publish()
    const { name, uuid } = next[0].loaded
    log.info({ module: name, module_uuid: uuid, sha256: next[0].hash }, 'saved wasm module loaded')
  }

  /** On every gateway, the order of modules that were registered through the API is that of their ids. */
  keep(line: ModuleLine): void {
    this.#lines.add(line)
    const lines = [...this.#lines].toSorted((a, b) => (a.firstUuid < b.firstUuid ? -1 : 1))
    const places = lines.map(({ place }) => place).toSorted((a, b) => a - b)
    for (const [index, one] of lines.entries()) one.place = places[index]
  }

  /** @throws invalid_wasm_config for a required module of this gateway alone */
  async #missing(id: string, line: SavedLine | undefined, cause: unknown): Promise<void> {
    const { saved, log } = this.#parts
    const reason = messageOf(cause)
    const known = this.notLoaded.get(id)
    const { descriptor, uuid = id, onFailure } = line?.current ?? known?.line?.current ?? {}
    const name = descriptor?.name ?? null
    if (onFailure === 'closed' && !saved.isShared) {
      const problem = `is load, but module ${name} (${descriptor?.file_path}), with on_failure closed, cannot be loaded: ${reason}; restore the file, or start once with forget`
      throw wasmErrors.invalid_wasm_config.with({ cause }, 'savedModules', problem)
    }
    this.notLoaded.set(id, { uuid, name, reason, line: line ?? known?.line })
    if (known?.reason === reason && known.uuid === uuid) return
    await this.#parts.publish()
    const fields = { module: name, module_uuid: uuid, file: descriptor?.file_path ?? null, reason }
    log.error(fields, 'saved wasm module not loaded')
  }

  #retryLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = null
      for (const id of this.notLoaded.keys()) this.#parts.onChange(id)
    }, RETRY_MS).unref()
  }
}

/**
 * Loads the versions of a line that are not loaded yet.
 *
 * @param own its registered versions
 * @returns its modules
 * @throws ModuleRejected if the current version or the one on trial cannot be loaded
 */
async function loadLine(
  saved: SavedLine,
  line: ModuleLine | undefined,
  own: readonly Registered[],
  { saved: store, loader, table, log }: LineParts,
): Promise<Registered[]> {
  const remembered = line === undefined ? [] : table.earlier(line)
  const load = async (version: SavedVersion, beside: readonly Registered[]) => {
    const file = await store.readBytes(version, () => loader.read(version.descriptor, false))
    const { uuid, createdAtNs } = version
    return loader.load(version.descriptor, file, { uuid, createdAtNs: BigInt(createdAtNs), beside })
  }
  const revive = async (version: SavedVersion, beside: readonly Registered[]) => {
    const running = own.find(({ loaded }) => loaded.uuid === version.uuid)
    if (running !== undefined) return running
    const known = remembered.find(({ loaded }) => loaded.uuid === version.uuid)
    return loader.withRow(known ?? (await load(version, beside)), beside)
  }
  const first = await revive(saved.current, own)
  const current = { ...first, line: line ?? { ...first.line, firstUuid: saved.id }, trial: null }
  const modules: Registered[] = [current]
  if (saved.trial !== null) {
    const { version, rule } = saved.trial
    modules.push({ ...(await revive(version, [...own, current])), line: current.line, trial: rule })
  }
  const earlier: Registered[] = []
  for (const version of saved.earlier.toReversed()) {
    const known = [...own, ...remembered].find(({ loaded }) => loaded.uuid === version.uuid)
    try {
      earlier.push({ ...(known ?? (await load(version, []))), line: current.line, trial: null })
    } catch (err) {
      // Without the engine of the mesh, the line is loaded later.
      if (err instanceof GatewayError) throw err
      log.warn({ err, module_uuid: version.uuid }, 'earlier version of wasm module not loaded')
    }
  }
  table.setEarlier(current.line, earlier)
  return modules
}
