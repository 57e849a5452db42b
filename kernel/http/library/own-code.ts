/**
 * Two things that the server library has in its code and no option for: how long it waits for a head and between two
 * requests, and that it takes header bytes over 0x7f for white space. Known is the build for Linux on x64 and Node 22;
 * nothing is written unless each place reads as there, byte by byte. @source D219
 */
import { createHash } from 'node:crypto'
import type { LibraryMemory } from './library-memory.ts'

/** Looks of the library at a connection until it is cut for lack of progress. */
export interface Patience {
  readonly headTicks: number
  readonly idleTicks: number
}

/** Instructions, and the bytes of them that are changed. */
interface Place {
  readonly at: number
  readonly length: number
  readonly stock: readonly [offset: number, byte: number][]
  readonly own: readonly [offset: number, byte: number][]
}

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

/** Comparisons of a header value's last and first byte with white space: `jge` becomes `jae`, `jg` becomes `ja`. */
const COMPARISONS: readonly Place[] = [
  { at: 0xf28ae, length: 6, stock: [[4, 0x7d]], own: [[4, 0x73]] },
  { at: 0xf28c8, length: 6, stock: [[4, 0x7f]], own: [[4, 0x77]] },
]
const COMPARISONS_SHA256 = 'a1219d56485d2839ad6be925a1d9b93e178be1d97a17f3ef2c5b8c06c8859832'

/** @returns the library now waits so long; false where its code is not as known @throws Error where it cannot be written */
export function setPatience(library: LibraryMemory, { headTicks, idleTicks }: Patience): boolean {
  const clocks = [
    ...HEAD_CLOCKS.map((at) => clockAt(at, headTicks)),
    ...IDLE_CLOCKS.map((at) => clockAt(at, idleTicks)),
  ]
  return rewrite(library, clocks, CLOCKS_SHA256)
}

/** @returns header values now arrive whole; false where the code is not as known @throws Error where it cannot be written */
export function keepHeaderEnds(library: LibraryMemory): boolean {
  return rewrite(library, COMPARISONS, COMPARISONS_SHA256)
}

function clockAt(at: number, ticks: number): Place {
  return {
    at,
    length: CLOCK_BYTES,
    stock: CLOCK_TICKS.map((offset) => [offset, STOCK_TICKS]),
    own: CLOCK_TICKS.map((offset) => [offset, ticks]),
  }
}

/** All places or none. @param sha256 of what stood there before anything was changed */
function rewrite(library: LibraryMemory, places: readonly Place[], sha256: string): boolean {
  const found = places.map(({ at, length }) => library.read(library.base + at, length))
  const known = createHash('sha256')
  places.forEach(({ stock }, index) => void known.update(withBytes(found[index], stock)))
  if (known.digest('hex') !== sha256) return false
  const write = (bytes: (place: Place, index: number) => Buffer) =>
    places.forEach((place, index) => void library.write(bytes(place, index), library.base + place.at))
  try {
    write(({ own }, index) => withBytes(found[index], own))
  } catch (error) {
    write((_, index) => found[index])
    throw error
  }
  return true
}

function withBytes(bytes: Buffer, changes: Place['own']): Buffer {
  const changed = Buffer.from(bytes)
  for (const [offset, byte] of changes) changed[offset] = byte
  return changed
}
