/**
 * What the server library has no options for is amended in the memory of this process, once it is loaded. Threads share
 * the library, so control does it for all of them, before any listens.
 */
import { type ConnectionWaits, setConnectionWaits } from './connection-waits.ts'
import { keepHeaderEnds } from './header-ends.ts'
import { LibraryMemory } from './library-memory.ts'
import { replacePages } from './own-replies.ts'

/** What is as wanted now. */
export interface Amended {
  /** What it refuses by itself has the error format of the API. @source D213 */
  readonly replies: boolean
  /** Waits are as configured. @source D219 */
  readonly waits: boolean
  /** Header values arrive whole. @source D219 */
  readonly headerEnds: boolean
}

/**
 * Never in the way of a start: where anything is not as expected, or memory may not be written (other systems, hardened
 * kernels, Node's permission model), the library stays as it is.
 * @param self what the system tells of this process
 */
export function amendLibrary(waits: ConnectionWaits, self = '/proc/self'): Amended {
  const library = attempt(() => LibraryMemory.open(self), null)
  if (library === null) return { replies: false, waits: false, headerEnds: false }
  const amended = {
    replies: attempt(() => replacePages(library), false),
    waits: attempt(() => setConnectionWaits(library, waits), false),
    headerEnds: attempt(() => keepHeaderEnds(library), false),
  }
  library.close()
  return amended
}

function attempt<T>(work: () => T, otherwise: T): T {
  try {
    return work()
  } catch {
    return otherwise
  }
}
