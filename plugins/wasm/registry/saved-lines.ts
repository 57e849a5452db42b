/** Between modules in memory and the store: what is saved of a line, and a line loaded from what was saved. */
import type { Logger } from '#kernel'
import { ModuleRejected } from '../errors.ts'
import type { ModuleLine, Registered } from './module-list.ts'
import type { ModuleLoader } from './module-loader.ts'
import type { ModuleVersions } from './module-versions.ts'
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
  const current = own.find(({ trialOf }) => trialOf === null)
  const tried = own.find(({ trialOf }) => trialOf !== null)
  if (current === undefined) return null
  const hasTrial = tried !== undefined && tried.trial !== null
  return {
    id: line.firstUuid,
    current: toSaved(current),
    trial: hasTrial ? { version: toSaved(tried), rule: tried.trial } : null,
    earlier: earlier.map(toSaved).toReversed(),
  }
}

function toSaved({ loaded, descriptor, hash, createdAtNs }: Registered): SavedVersion {
  const { uuid, onFailure } = loaded
  return { uuid, descriptor, hash, onFailure, createdAtNs: String(createdAtNs) }
}

export interface LineParts {
  readonly saved: ModuleStore
  readonly loader: ModuleLoader
  readonly versions: ModuleVersions
  readonly log: Logger
}

/**
 * Loads the versions of a line that are not loaded yet.
 *
 * @param own its registered versions
 * @returns its modules
 * @throws ModuleRejected, BadModule if the current version or the one on trial cannot be loaded
 */
export async function loadLine(
  saved: SavedLine,
  line: ModuleLine | undefined,
  own: readonly Registered[],
  { saved: store, loader, versions, log }: LineParts,
): Promise<Registered[]> {
  const remembered = line === undefined ? [] : versions.earlier(line)
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
  const current = { ...first, line: line ?? { ...first.line, firstUuid: saved.id } }
  const { trial } = saved
  const tried = trial === null ? null : await revive(trial.version, [...own, current])
  const earlier: Registered[] = []
  for (const version of saved.earlier.toReversed()) {
    const known = [...own, ...remembered].find(({ loaded }) => loaded.uuid === version.uuid)
    try {
      earlier.push({ ...(known ?? (await load(version, []))), line: current.line })
    } catch (err) {
      if (err instanceof ModuleRejected)
        log.warn({ err, module_uuid: version.uuid }, 'earlier version of wasm module not loaded')
      else throw err
    }
  }
  versions.setEarlier(current.line, earlier)
  return versions.resume(current, tried, trial?.rule ?? null)
}
