/** How long the server library waits for a head and between two requests, which are constants of its code. @source D219 */
import type { LibraryMemory } from './library-memory.ts'
import { type Place, rewriteCode } from './rewrite-code.ts'

/** Milliseconds. */
export interface ConnectionWaits {
  /** From the opening of a connection to the end of its first head. */
  readonly headMs: number
  /** From a reply to the end of the next head. */
  readonly idleMs: number
}

/** The library looks at its connections this often. milliseconds */
const TICK_MS = 4_000
/** What its instruction has room for: 504 s, more than the configuration lets through. */
const MOST_TICKS = 127

/**
 * Where the clock of a connection is set: `add`, `imul`, `shr`, `imul`, `neg`, `add`, `add` make the number of the look
 * at which it is cut, modulo 240. The first instruction and the last end with the ticks until then.
 */
const CLOCK_BYTES = 25
const CLOCK_TICKS = [2, 24]
const STOCK_TICKS = 3
/** Connections that have just been opened: with TLS and without. */
const HEAD_CLOCKS = [0xf0812, 0x103af2]
/** After a reply, and wherever a body or a reply gets on: with TLS and without. */
const IDLE_CLOCKS = [
  ...[0xeac7c, 0xeaf2b, 0xef6f1, 0xf0bfa, 0xf0f53, 0xf12d6, 0xf13a1, 0x10ecfa, 0x10f9f3],
  ...[0xfff6c, 0x10021b, 0x102bc1, 0x103f1a, 0x104275, 0x1045b3, 0x104681, 0x1122ca, 0x112fc3],
]
const CLOCKS_SHA256 = '0df09fd518664bac459716cba4560f1db70cffb1a7e4e619cddfd2310779c797'

/** @returns the library now waits so long @throws Error where its code cannot be written */
export function setConnectionWaits(library: LibraryMemory, { headMs, idleMs }: ConnectionWaits): boolean {
  const clocks = [
    ...HEAD_CLOCKS.map((at) => clockAt(at, ticksOf(headMs))),
    ...IDLE_CLOCKS.map((at) => clockAt(at, ticksOf(idleMs))),
  ]
  return rewriteCode(library, clocks, CLOCKS_SHA256)
}

function clockAt(at: number, ticks: number): Place {
  return {
    at,
    length: CLOCK_BYTES,
    stock: CLOCK_TICKS.map((offset) => [offset, STOCK_TICKS]),
    own: CLOCK_TICKS.map((offset) => [offset, ticks]),
  }
}

/** The first look may come at once, so one more than there is room for: `ms` at least, and one tick more at most. */
function ticksOf(ms: number): number {
  return Math.min(Math.ceil(ms / TICK_MS) + 1, MOST_TICKS)
}
