/**
 * Changes single bytes of the server library's code. Known is the build for Linux on x64 and Node 22: nothing is written
 * unless each place reads as there, byte by byte. @source D219
 */
import { createHash } from 'node:crypto'
import type { LibraryMemory } from './library-memory.ts'

type Bytes = readonly [offset: number, byte: number][]

/** Instructions, and the bytes of them that are changed. */
export interface Place {
  readonly at: number
  readonly length: number
  readonly stock: Bytes
  readonly own: Bytes
}

/**
 * All places or none.
 * @param sha256 of what stood there before anything was changed
 * @returns false where the code is not as known
 * @throws Error where it cannot be written
 */
export function rewriteCode(library: LibraryMemory, places: readonly Place[], sha256: string): boolean {
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

function withBytes(bytes: Buffer, changes: Bytes): Buffer {
  const changed = Buffer.from(bytes)
  for (const [offset, byte] of changes) changed[offset] = byte
  return changed
}
