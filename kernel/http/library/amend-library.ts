/**
 * What the server library has no options for is amended in the memory of this process, once it is loaded. Threads share
 * the library, so control does it for all of them, before any listens.
 */
import { LibraryMemory } from './library-memory.ts'
import { keepHeaderEnds, setPatience } from './own-code.ts'
import { replacePages } from './own-replies.ts'

/** The library looks at its connections this often. milliseconds */
const TICK_MS = 4_000
/** What its instruction has room for: 504 s, more than the configuration lets through. */
const MOST_TICKS = 127

export interface PatienceMs {
  /** From the opening of a connection to the end of its first head. */
  readonly headMs: number
  /** From a reply to the end of the next head. */
  readonly idleMs: number
}

/** What is as wanted now. */
export interface Amended {
  /** What it refuses by itself has the error format of the API. @source D213 */
  readonly replies: boolean
  /** Waits are as configured. @source D219 */
  readonly patience: boolean
  /** Header values arrive whole. @source D219 */
  readonly headerEnds: boolean
}

/**
 * Never in the way of a start: where anything is not as expected, or memory may not be written (other systems, hardened
 * kernels, Node's permission model), the library stays as it is.
 * @param self what the system tells of this process
 */
export function amendLibrary({ headMs, idleMs }: PatienceMs, self = '/proc/self'): Amended {
  const library = openMemory(self)
  const isDone = (change: (library: LibraryMemory) => boolean) =>
    library !== null && succeeds(change, library)
  const ticks = { headTicks: ticksOf(headMs), idleTicks: ticksOf(idleMs) }
  const amended = {
    replies: isDone(replacePages),
    patience: isDone((opened) => setPatience(opened, ticks)),
    headerEnds: isDone(keepHeaderEnds),
  }
  library?.close()
  return amended
}

function openMemory(self: string): LibraryMemory | null {
  try {
    return LibraryMemory.open(self)
  } catch {
    return null
  }
}

function succeeds(change: (library: LibraryMemory) => boolean, library: LibraryMemory): boolean {
  try {
    return change(library)
  } catch {
    return false
  }
}

/** The first look may come at once, so one more than there is room for: `ms` at least, and one tick more at most. */
function ticksOf(ms: number): number {
  return Math.min(Math.ceil(ms / TICK_MS) + 1, MOST_TICKS)
}
