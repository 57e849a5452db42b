/**
 * The names under which the model sees tools. The client's functions keep theirs; a tool whose name is taken, or that two
 * servers have, is named after its server too.
 */
import { createHash } from 'node:crypto'

const MAX_NAME = 64
const HASH_LENGTH = 8

/** A tool that wants a name. */
export interface NameWish {
  /** Null for built-in tools, which have a name of their own. */
  readonly label: string | null
  readonly name: string
}

/** One name for each wish, all different, none of them among `taken`; same wishes, same names. */
export function exposeNames(taken: Iterable<string>, wishes: readonly NameWish[]): string[] {
  const used = new Set(taken)
  const plain = wishes.map(({ name }) => safeName(name))
  const counts = new Map<string, number>()
  for (const name of plain) counts.set(name, (counts.get(name) ?? 0) + 1)
  const numbers = new Map<string, number>()
  return wishes.map(({ label }, i) => {
    const isFree = !used.has(plain[i]) && (counts.get(plain[i]) === 1 || label === null)
    const base = isFree
      ? plain[i]
      : safeName(label === null ? `gateway_${plain[i]}` : `mcp_${label}_${plain[i]}`)
    const name = firstFree(base, used, numbers)
    used.add(name)
    return name
  })
}

/** @param numbers where the search goes on, by what the numbered names begin with: all before are taken */
function firstFree(base: string, used: ReadonlySet<string>, numbers: Map<string, number>): string {
  if (!used.has(base)) return base
  const start = base.slice(0, MAX_NAME - '_2'.length)
  for (let n = numbers.get(start) ?? 2; ; n++) {
    const suffix = `_${n}`
    const name = base.slice(0, MAX_NAME - suffix.length) + suffix
    if (used.has(name)) continue
    numbers.set(start, n + 1)
    return name
  }
}

/** Made to fit what models and engines take as a function's name; a long one ends with a hash, so that it stays its own. */
export function safeName(name: string): string {
  const safe = name.replace(/[^A-Za-z0-9_-]/g, '_') || '_'
  if (safe.length <= MAX_NAME) return safe
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_LENGTH)
  return `${safe.slice(0, MAX_NAME - HASH_LENGTH - 1)}_${hash}`
}
