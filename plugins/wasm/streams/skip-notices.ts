/** Notifies the client of a stream that events were sent without a module, once per module. */
import type { LoadedModule, StreamEvent, StreamItemResult } from '../threads/guest-task.ts'

const EVENT = 'weir.module_skipped'

/** Events of one stream. */
interface NotedWork {
  /** The same for all events of the stream. */
  readonly origin: object
  readonly events: readonly StreamEvent[]
  readonly isEnd: boolean
}

export class SkipNotices {
  /** By the request of the stream: uuids of modules that the client was notified of. */
  readonly #reported = new WeakMap<object, Set<string>>()
  /** Notices to append to the events of the work. */
  readonly #due = new WeakMap<NotedWork, StreamEvent[]>()

  /** Records that a fail-open module was skipped or failed. */
  note(work: NotedWork, { uuid, name, onFailure }: LoadedModule, reason: string): void {
    if (onFailure === 'closed') return
    const notified = this.#reported.get(work.origin) ?? new Set()
    this.#reported.set(work.origin, notified)
    if (notified.has(uuid)) return
    notified.add(uuid)
    const due = this.#due.get(work) ?? []
    this.#due.set(work, due)
    due.push({ name: EVENT, data: JSON.stringify({ module: name, reason }) })
  }

  /** Appends the notices of that work. */
  addTo(work: NotedWork, out: StreamItemResult['out']): StreamItemResult['out'] {
    const due = this.#due.get(work)
    if (due === undefined) return out
    const { events, isEnd } = work
    const source = isEnd ? events.length : Math.max(0, events.length - 1)
    return [...out, ...due.map((written) => ({ source, written }))]
  }
}

/** Names for a header value, percent-encoded. */
export function namesOf(modules: readonly LoadedModule[]): string {
  return modules.map(({ name }) => encodeURIComponent(name)).join(', ')
}
