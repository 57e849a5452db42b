/**
 * Versions of a module: the one that runs, one on trial beside it, and those that ran before. All functions give a new
 * list, so that every thread goes from one to the next at once and streams under way keep what they began with.
 */
import { uuidV7 } from '#shared'
import { ModuleRejected } from '../errors.ts'
import type { ModuleLine, Registered } from './module-list.ts'

/** Versions of a module that `rollback` can go back to. */
const MAX_EARLIER = 5

export type Trial = { readonly kind: 'canary'; readonly percent: number } | { readonly kind: 'shadow' }

/** The list after a change, and the version that runs from now on. */
export interface VersionChange {
  readonly modules: Registered[]
  readonly current: Registered
}

export class ModuleVersions {
  readonly #earlier = new Map<ModuleLine, Registered[]>()

  /** Versions to go back to, the last one first. */
  earlier(line: ModuleLine): readonly Registered[] {
    return this.#earlier.get(line)?.toReversed() ?? []
  }

  /** The new version takes the place of the old one; one on trial for it is dropped. */
  replace(modules: readonly Registered[], old: Registered, next: Registered): Registered[] {
    this.#remember(old)
    return withoutTrials(modules, old).map((module) =>
      module.loaded.uuid === old.loaded.uuid ? { ...next, line: old.line } : module,
    )
  }

  /** The new version gets its part of the requests, or sees all of them without a say. @throws ModuleRejected */
  tryOut(modules: readonly Registered[], old: Registered, next: Registered, trial: Trial): Registered[] {
    // While another canary is on trial, it has a share only because of that.
    if (trial.kind === 'canary' && plain(old).loaded.match.share !== undefined)
      throw new ModuleRejected('a canary is not available for a module with match.share')
    const others = withoutTrials(modules, old)
    const tried = { ...next, line: old.line }
    return others.flatMap((module) => {
      if (module.loaded.uuid !== old.loaded.uuid) return [module]
      if (trial.kind === 'shadow') return [module, asShadow(tried, old)]
      const share = trial.percent / 100
      return [
        withMatch(module, { share, isInverse: true }),
        { ...withMatch(tried, { share }), trialOf: old.loaded.uuid },
      ]
    })
  }

  /** The version on trial takes over. @throws ModuleRejected when it is on no trial */
  promote(modules: readonly Registered[], trial: Registered): VersionChange {
    const old = modules.find(({ loaded }) => loaded.uuid === trial.trialOf)
    if (old === undefined) throw new ModuleRejected(`module ${trial.loaded.uuid} is not on trial`)
    const next = plain(trial)
    // Threads that ran a shadow know it by its uuid as one that keeps its values under another name.
    const isShadow = trial.loaded.shadowOf !== null
    const current = isShadow ? { ...next, loaded: { ...next.loaded, uuid: uuidV7() } } : next
    return { modules: this.replace(modules, plain(old), current), current }
  }

  /**
   * Ends a trial; without one, the version before takes over again.
   *
   * @param prepare makes the version before ready to run again
   * @throws ModuleRejected when there is none
   */
  rollback(
    modules: readonly Registered[],
    given: Registered,
    prepare: (earlier: Registered) => Registered,
  ): VersionChange {
    const current = modules.find(({ loaded }) => loaded.uuid === given.trialOf) ?? given
    if (modules.some(({ trialOf }) => trialOf === current.loaded.uuid))
      return { modules: withoutTrials(modules, current), current }
    const earlier = this.#earlier.get(current.line)?.pop()
    if (earlier === undefined)
      throw new ModuleRejected(`there is no earlier version of ${current.loaded.name}`)
    const back = prepare(earlier)
    return { modules: modules.map((module) => (module === current ? back : module)), current: back }
  }

  /** The last version of the module is gone. */
  forget(line: ModuleLine): void {
    this.#earlier.delete(line)
  }

  #remember(old: Registered): void {
    const earlier = this.#earlier.get(old.line) ?? []
    earlier.push(plain(old))
    if (earlier.length > MAX_EARLIER) earlier.shift()
    this.#earlier.set(old.line, earlier)
  }
}

/** Without versions on trial for this one, which has all of its requests again. */
export function withoutTrials(modules: readonly Registered[], old: Registered): Registered[] {
  return modules
    .filter(({ trialOf }) => trialOf !== old.loaded.uuid)
    .map((module) => (module.loaded.uuid === old.loaded.uuid ? plain(module) : module))
}

function asShadow(next: Registered, { loaded: { uuid } }: Registered): Registered {
  // What it counts must not be counted twice.
  const kvOwner = `${next.loaded.name} (shadow)`
  return { ...next, trialOf: uuid, loaded: { ...next.loaded, shadowOf: uuid, kvOwner } }
}

function withMatch(module: Registered, more: { share: number; isInverse?: boolean }): Registered {
  return { ...module, loaded: { ...module.loaded, match: { ...module.loaded.match, ...more } } }
}

/** As it was registered: on no trial, and with no other on trial. */
function plain(module: Registered): Registered {
  const { loaded, descriptor } = module
  const { share: _share, isInverse: _isInverse, ...match } = loaded.match
  const share = descriptor.match?.share
  return {
    ...module,
    trialOf: null,
    loaded: {
      ...loaded,
      shadowOf: null,
      kvOwner: loaded.name,
      match: share === undefined ? match : { ...match, share },
    },
  }
}
