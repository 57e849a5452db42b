/** The server library takes header bytes over 0x7f for white space at the ends of a value; here they stay. @source D219 */
import type { LibraryMemory } from './library-memory.ts'
import { type Place, rewriteCode } from './rewrite-code.ts'

/** Comparisons of a value's last and first byte with white space: `jge` becomes `jae`, `jg` becomes `ja`. */
const COMPARISONS: readonly Place[] = [
  { at: 0xf28ae, length: 6, stock: [[4, 0x7d]], own: [[4, 0x73]] },
  { at: 0xf28c8, length: 6, stock: [[4, 0x7f]], own: [[4, 0x77]] },
]
const COMPARISONS_SHA256 = 'a1219d56485d2839ad6be925a1d9b93e178be1d97a17f3ef2c5b8c06c8859832'

/** @returns header values now arrive whole @throws Error where the code cannot be written */
export function keepHeaderEnds(library: LibraryMemory): boolean {
  return rewriteCode(library, COMPARISONS, COMPARISONS_SHA256)
}
