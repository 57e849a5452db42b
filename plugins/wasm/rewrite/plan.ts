/** Indices and offsets of what the rewriter adds, always after the module's own, so that no index changes. */
import type { FunctionType, ModuleParts, Range } from './module-parts.ts'
import { VALUE } from './opcodes.ts'

/** Size of the chunks in which memory is restored, as a shift of addresses. */
export const CHUNK_SHIFT = 12
/** A mark of a chunk also covers stores that begin within this distance of it, bytes. */
export const MARK_REACH = 256
export const PAGE_BYTES = 65_536
const CHUNKS_OF_PAGE = PAGE_BYTES >> CHUNK_SHIFT
/** Bytes of bulk operations per unit of fuel, as a shift. */
export const BYTES_OF_UNIT_SHIFT = 4
/** Bytes of garbage-collected memory per unit that is counted, as a shift. */
export const HEAP_UNIT_SHIFT = 4
/** Fuel per table entry that is filled or copied, as a shift. */
export const UNITS_OF_PLACE_SHIFT = 5
/** Size of the head of a block, which holds its length. */
export const BLOCK_HEAD_BYTES = 8
/** Call report, before the first block: offsets of its members. */
export const REPORT = { fuel: 0, outputAt: 8, outputBytes: 12, errorAt: 16, dirty: 20 } as const
export const REPORT_BYTES = 24

export interface RewriteLimits {
  /** Maximum size of all memories, pages of 64 KiB. */
  readonly maxPages: number
  /** Maximum number of entries of all tables. */
  readonly maxTablePlaces: number
  /** Maximum stack, estimated from the local variables of active functions, bytes. */
  readonly stackBytes: number
  /** Maximum size of the exchange memory, pages of 64 KiB. */
  readonly exchangePages: number
  /** Fuel of the start, units. */
  readonly startFuel: number
  /** Records writes, so that instances can be restored. */
  readonly restores: boolean
  /**
   * Additional pages of each memory that the module does not see, so that a call can grow it and the instance can be
   * restored. The host adds them after instantiation.
   */
  readonly headroomPages: number
}

/** Added globals, in this order. */
const OWN_GLOBALS = [
  'fuel',
  'stack',
  'fault',
  'dirty',
  'pagesLeft',
  'placesLeft',
  'heapLeft',
  'top',
  'inputBytes',
  'outputAt',
  'outputBytes',
  'errorAt',
] as const
type OwnGlobal = (typeof OWN_GLOBALS)[number]

interface MemoryPlan {
  readonly minimum: number
  readonly maximum: number
  /** Offset of its chunks in the exchange memory, one byte each. */
  readonly chunks: number
  /** Global with the visible size, pages. */
  readonly size: number
  /** Function that marks a range as written. */
  readonly mark: number
  readonly grow: number
}

interface TablePlan {
  readonly type: number
  /** Expression for the first value of the entries. */
  readonly value: Range | null
  readonly minimum: number
  readonly maximum: number
  readonly grow: number
}

export interface Plan {
  readonly parts: ModuleParts
  readonly limits: RewriteLimits
  readonly global: Readonly<Record<OwnGlobal, number>>
  readonly memories: readonly MemoryPlan[]
  readonly tables: readonly TablePlan[]
  /** Index of the exchange memory. */
  readonly exchange: number
  /** Offset of the first block in it: the input. */
  readonly base: number
  /** Function that burns a number of units. */
  readonly burn: number
  /** Function that takes garbage-collected memory and burns fuel for it. */
  readonly reserve: number
  /** Function that allocates a block in the exchange memory. */
  readonly allocation: number
  /** Replacement of an imported function by its index. */
  readonly replacements: ReadonlyMap<number, number>
  /** Index of the first added function. */
  readonly firstFunction: number
  /** Restored globals, each with the global that holds its initial value. */
  readonly kept: readonly { readonly global: number; readonly shadow: number; readonly type: number }[]
  readonly types: TypeList
}

/** Types that are added to those of the module. */
class TypeList {
  readonly added: FunctionType[] = []
  /** Index of the first one. */
  readonly #first: number
  readonly #known = new Map<string, number>()

  constructor(first: number) {
    this.#first = first
  }

  indexOf(parameters: readonly number[], results: readonly number[]): number {
    const key = `${parameters}:${results}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const index = this.#first + this.added.push({ parameters, results }) - 1
    this.#known.set(key, index)
    return index
  }
}

/** Added functions, in order of their indices; written by `exchange-functions.ts`. */
export type AddedFunction =
  | { readonly kind: 'burn' | 'reserve' }
  | { readonly kind: 'mark' | 'grow'; readonly memory: number }
  | { readonly kind: 'table-grow'; readonly table: number }
  | { readonly kind: 'exchange'; readonly name: string }

/** @param exchanged imports of the Extism kernel that the rewriter implements, by index */
export function makePlan(
  parts: ModuleParts,
  limits: RewriteLimits,
  exchanged: ReadonlyMap<number, string>,
): { plan: Plan; added: AddedFunction[] } {
  const firstFunction = parts.imports.length + parts.functions.length
  const added: AddedFunction[] = []
  const add = (one: AddedFunction) => firstFunction + added.push(one) - 1
  let nextGlobal = parts.globals.length
  const own = OWN_GLOBALS.map((name) => [name, nextGlobal++] as const)
  const burn = add({ kind: 'burn' })
  const reserve = add({ kind: 'reserve' })
  let pagesLeft = limits.maxPages
  for (const { minimum } of parts.memories) pagesLeft -= minimum
  let chunks = 0
  const memories = parts.memories.map(({ minimum, maximum }, memory): MemoryPlan => {
    const most = Math.min(maximum ?? limits.maxPages, minimum + Math.max(0, pagesLeft))
    const mark = add({ kind: 'mark', memory })
    const plan = {
      minimum,
      maximum: most,
      chunks,
      size: nextGlobal++,
      mark,
      grow: add({ kind: 'grow', memory }),
    }
    chunks += limits.restores ? most * CHUNKS_OF_PAGE : 0
    return plan
  })
  let placesLeft = limits.maxTablePlaces
  for (const { minimum } of parts.tables) placesLeft -= minimum
  const tables = parts.tables.map(({ type, minimum, maximum, value }, table): TablePlan => {
    const most = Math.min(maximum ?? limits.maxTablePlaces, minimum + Math.max(0, placesLeft))
    return { type, value, minimum, maximum: most, grow: add({ kind: 'table-grow', table }) }
  })
  const replacements = new Map<number, number>()
  // The gateway allocates blocks even if the module does not.
  const allocation = add({ kind: 'exchange', name: 'alloc' })
  const byName = new Map([['alloc', allocation]])
  for (const [index, name] of exchanged) {
    const known = byName.get(name) ?? add({ kind: 'exchange', name })
    byName.set(name, known)
    replacements.set(index, known)
  }
  const global = Object.fromEntries(own) as Record<OwnGlobal, number>
  const kept = limits.restores ? keptGlobals(parts, global, memories, nextGlobal) : []
  const base = Math.ceil(chunks / 8) * 8 + REPORT_BYTES
  const plan: Plan = {
    parts,
    limits,
    global,
    memories,
    tables,
    exchange: parts.memories.length,
    base,
    burn,
    reserve,
    allocation,
    replacements,
    firstFunction,
    kept,
    types: new TypeList(parts.types.length),
  }
  return { plan, added }
}

function keptGlobals(
  { globals }: ModuleParts,
  own: Readonly<Record<OwnGlobal, number>>,
  memories: readonly MemoryPlan[],
  firstShadow: number,
): Plan['kept'] {
  const mutable = globals.flatMap(({ type, isMutable }, global) => (isMutable ? [{ global, type }] : []))
  const ownKept = [own.pagesLeft, own.placesLeft, ...memories.map(({ size }) => size)]
  return [...mutable, ...ownKept.map((global) => ({ global, type: VALUE.i32 }))].map((one, place) => ({
    ...one,
    shadow: firstShadow + place,
  }))
}
