/** Where everything lies that the rewriter adds to a module: always behind what the module has, so that no index moves. */
import type { FunctionType, ModuleParts } from './module-parts.ts'

/** Bytes of a module's memory that are put back together. A power of two; the shift of addresses. */
export const CHUNK_SHIFT = 12
export const PAGE_BYTES = 65_536
const CHUNKS_OF_PAGE = PAGE_BYTES >> CHUNK_SHIFT
/** Bytes that one unit of fuel moves, as a shift. */
export const BYTES_OF_UNIT_SHIFT = 4
/** Units for one place of a table that is filled or copied, as a shift: that is not done in bulk. */
export const UNITS_OF_PLACE_SHIFT = 5
/** Of a block, before its bytes: how long it is. */
export const BLOCK_HEAD_BYTES = 8
/** What is told of a call when it is over, before the first block: places in it, bytes. */
export const REPORT = { fuel: 0, outputAt: 8, outputBytes: 12, errorAt: 16, dirty: 20 } as const
export const REPORT_BYTES = 24

export interface RewriteLimits {
  /** Of all memories together, pages of 64 KiB. */
  readonly maxPages: number
  /** Of all tables together. */
  readonly maxTablePlaces: number
  /** Of calls that have not returned, estimated from what each keeps in local variables, bytes. */
  readonly stackBytes: number
  /** Of what guest and gateway exchange in one call, pages of 64 KiB. */
  readonly exchangePages: number
  /** Units for code that runs when the module is instantiated. */
  readonly startFuel: number
  /** An instance can be put back to how it was; false spares the notes that this takes. */
  readonly restores: boolean
  /**
   * Pages that each memory has beyond what the module sees of it, so that a call may grow it and the next finds it as
   * small as it was. The host adds them once the module is instantiated.
   */
  readonly headroomPages: number
}

/** Globals that are added, in this order. */
const OWN_GLOBALS = [
  'fuel',
  'stack',
  'fault',
  'dirty',
  'pagesLeft',
  'placesLeft',
  'top',
  'inputBytes',
  'outputAt',
  'outputBytes',
  'errorAt',
] as const
export type OwnGlobal = (typeof OWN_GLOBALS)[number]

export interface MemoryPlan {
  readonly minimum: number
  readonly maximum: number
  /** Offset of its chunks in the exchange memory, one byte each. */
  readonly chunks: number
  /** Global that holds how many pages the module sees. */
  readonly size: number
  /** Function that notes a range as written. */
  readonly mark: number
  readonly grow: number
}

export interface TablePlan {
  readonly type: number
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
  /** Function that makes a block in the exchange memory. */
  readonly allocation: number
  /** Replacement of an imported function by its index. */
  readonly replacements: ReadonlyMap<number, number>
  /** First of the added functions, and what comes behind the planned ones. */
  readonly firstFunction: number
  /** Module globals that a restored instance must have back, each with the global that keeps its first value. */
  readonly kept: readonly { readonly global: number; readonly shadow: number; readonly type: number }[]
  readonly types: TypeList
}

/** The types of the module and those that are added to them. */
export class TypeList {
  readonly all: FunctionType[]
  readonly #known = new Map<string, number>()

  constructor(types: readonly FunctionType[]) {
    this.all = [...types]
  }

  indexOf(parameters: readonly number[], results: readonly number[]): number {
    const key = `${parameters}:${results}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    this.#known.set(key, this.all.length)
    this.all.push({ parameters, results })
    return this.all.length - 1
  }
}

/** What the planned functions are, in order of their indices; `exchange-functions.ts` writes them. */
export type AddedFunction =
  | { readonly kind: 'burn' }
  | { readonly kind: 'mark' | 'grow'; readonly memory: number }
  | { readonly kind: 'table-grow'; readonly table: number }
  | { readonly kind: 'exchange'; readonly name: string }

/** @param exchanged imports of the Extism kernel that become functions of the module, by their index */
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
  const tables = parts.tables.map(({ type, minimum, maximum }, table): TablePlan => {
    const most = Math.min(maximum ?? limits.maxTablePlaces, minimum + Math.max(0, placesLeft))
    return { type, minimum, maximum: most, grow: add({ kind: 'table-grow', table }) }
  })
  const replacements = new Map<number, number>()
  // The gateway itself makes blocks, whatever the module imports.
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
    allocation,
    replacements,
    firstFunction,
    kept,
    types: new TypeList(parts.types),
  }
  return { plan, added }
}

const I32 = 0x7f

function keptGlobals(
  { globals }: ModuleParts,
  own: Readonly<Record<OwnGlobal, number>>,
  memories: readonly MemoryPlan[],
  firstShadow: number,
): Plan['kept'] {
  const mutable = globals.flatMap(({ type, isMutable }, global) => (isMutable ? [{ global, type }] : []))
  const ownKept = [own.pagesLeft, own.placesLeft, ...memories.map(({ size }) => size)]
  return [...mutable, ...ownKept.map((global) => ({ global, type: I32 }))].map((one, place) => ({
    ...one,
    shadow: firstShadow + place,
  }))
}
