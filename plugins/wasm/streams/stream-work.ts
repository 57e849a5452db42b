/** Events of one stream on their way through its modules, some of which may not be called: suspended or lost ones. */
import type { RequestContext } from '#kernel'
import type {
  LoadedModule,
  OutEvent,
  PendingEvent,
  StreamItem,
  StreamItemResult,
  StreamProgress,
  StreamResume,
} from '../threads/guest-task.ts'

/** Events of one stream, and its modules. */
export interface StreamWork
  extends Omit<StreamItem, 'modules' | 'point' | 'states' | 'resume' | 'maxFetches'> {
  readonly modules: readonly LoadedModule[]
  /** State of each module; replaced by those that the modules return. */
  states: string[]
  readonly origin: RequestContext
  /** Set while the work waits for a fetch and afterwards. */
  waited?: WaitedWork
}

/** Work that has waited for a fetch. */
interface WaitedWork {
  /** Outgoing events before. */
  readonly out: readonly OutEvent[]
  /** With places in all modules of the work. */
  readonly resume: StreamResume
}

/** What modules have returned so far, and the rest as it is. */
export function untouched({ events, waited }: StreamWork): StreamItemResult['out'] {
  const rest = events.map((_, source): OutEvent => ({ source, written: null }))
  if (waited === undefined) return rest
  const { pending, taken } = waited.resume
  const between = pending.map(({ source, event, isWritten }) => ({
    source,
    written: isWritten ? event : null,
  }))
  return [...waited.out, ...between.reverse(), ...rest.slice(taken)]
}

export function isWhole({ modules }: StreamWork, places: readonly number[]): boolean {
  return places.length === modules.length
}

/** @returns the progress with places in all modules */
export function amongAll(
  progress: StreamProgress,
  places: readonly number[],
  modules: number,
): StreamProgress {
  return atPlaces(progress, (index) => places[index] ?? modules)
}

/** @returns the progress with places in the modules that are called */
export function amongCalled(resume: StreamResume, places: readonly number[]): StreamResume {
  return atPlaces(resume, (place) => places.filter((one) => one < place).length)
}

function atPlaces<Progress extends StreamProgress>(
  progress: Progress,
  to: (place: number) => number,
): Progress {
  const pending = progress.pending.map((one): PendingEvent => ({ ...one, place: to(one.place) }))
  return { ...progress, pending, ended: to(progress.ended) }
}
