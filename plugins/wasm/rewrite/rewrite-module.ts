/** Rewrites a core module: functions burn fuel, memories and tables are limited, and the state can be restored. */

import { scanBodies } from './body-traits.ts'
import { ByteWriter } from './byte-writer.ts'
import { type Code, i32, i64 } from './code.ts'
import {
  addedFunction,
  EXCHANGE_FUNCTIONS,
  type FunctionCode,
  heapUnits,
  hostFunctions,
} from './exchange-functions.ts'
import {
  FUNCTION_TYPE,
  type FunctionType,
  KIND,
  kindName,
  type ModuleParts,
  type Range,
  readParts,
  SECTION,
  TABLE_WITH_VALUE,
} from './module-parts.ts'
import { BadModule, UnsupportedFeature } from './module-rejected.ts'
import { OP, VALUE } from './opcodes.ts'
import { BLOCK_HEAD_BYTES, makePlan, PAGE_BYTES, type Plan, type RewriteLimits } from './plan.ts'
import { BodyRewriter } from './rewrite-body.ts'
import { heapBytes, nullable, typeBytes } from './value-types.ts'

/** Prefix of added exports. */
export const EXPORT_PREFIX = 'weir:'
const MAX_MEMORIES = 100
const MAX_TABLES = 100
export const KERNEL_NAMESPACE = 'extism:host/env'
const [HAS_MAXIMUM, MUTABLE] = [1, 1]

/** Layout of a rewritten module. */
export interface Layout {
  readonly memories: readonly { readonly chunks: number; readonly headroomPages: number }[]
  /** Offset of the input's block in the exchange memory. */
  readonly base: number
  readonly restores: boolean
  /** Exported kernel functions, for guests that call their imports by reference. */
  readonly exchanged: readonly string[]
}

export interface Rewritten {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly layout: Layout
}

/**
 * @param bytes a module that V8 accepts
 * @throws BadModule for an unsupported feature, or initial sizes above the limits
 */
export function rewriteModule(bytes: Uint8Array, limits: RewriteLimits): Rewritten {
  const parts = readParts(bytes)
  checkLimits(parts, limits)
  const { plan, added } = makePlan(parts, limits, exchangedImports(parts))
  const host = hostFunctions(plan)
  const functions = [...added.map((one) => addedFunction(plan, one)), ...host]
  const exchanged = new Map(
    added.flatMap((one, index) =>
      one.kind === 'exchange' ? [[one.name, plan.firstFunction + index] as const] : [],
    ),
  )
  const firstHost = plan.firstFunction + added.length
  const exported = new Map([
    ...exchanged,
    ['burn', plan.burn],
    ...host.map(({ name }, index) => [name, firstHost + index] as const),
  ])
  return {
    bytes: new ModuleWriter(plan, functions, exported).write(),
    layout: {
      memories: plan.memories.map(({ minimum, maximum, chunks }) => ({
        chunks,
        headroomPages: limits.restores ? Math.min(limits.headroomPages, maximum - minimum) : 0,
      })),
      base: plan.base,
      restores: limits.restores,
      exchanged: [...exchanged.keys()],
    },
  }
}

function checkLimits(
  { imports, memories, tables, exports, dataBytes, types }: ModuleParts,
  { maxPages, maxTablePlaces, restores }: RewriteLimits,
): void {
  const foreign = imports.find(({ kind }) => kind !== KIND.function)
  if (foreign !== undefined)
    throw new BadModule(
      `the module imports ${foreign.module}.${foreign.name}, a ${kindName(foreign.kind)}; only functions can be imported`,
    )
  if (!restores && types.some(({ bytes }) => bytes !== undefined))
    throw new UnsupportedFeature(
      'the module has garbage-collected types, whose memory is limited for each call; register it with `instance: fresh`',
    )
  const pages = memories.reduce((sum, { minimum }) => sum + minimum, 0)
  if (pages > maxPages)
    throw new BadModule(`the module requires ${pages} memory pages; the limit is ${maxPages}`)
  if (dataBytes > maxPages * PAGE_BYTES)
    throw new BadModule(
      `the module has ${dataBytes} bytes of data; the limit of its memories is ${maxPages * PAGE_BYTES}`,
    )
  const places = tables.reduce((sum, { minimum }) => sum + minimum, 0)
  if (places > maxTablePlaces)
    throw new BadModule(`the tables of the module have ${places} entries; the limit is ${maxTablePlaces}`)
  if (memories.length > MAX_MEMORIES || tables.length > MAX_TABLES)
    throw new BadModule(`the module has more than ${MAX_MEMORIES} memories or ${MAX_TABLES} tables`)
  const taken = exports.find(({ name }) => name.startsWith(EXPORT_PREFIX))
  if (taken !== undefined)
    throw new BadModule(`the module exports ${taken.name}, a name that is reserved for the gateway`)
}

/** @throws BadModule for an import with a wrong signature */
function exchangedImports({ imports, types }: ModuleParts): Map<number, string> {
  const found = new Map<number, string>()
  for (const [index, { module, name, type }] of imports.entries()) {
    if (module !== KERNEL_NAMESPACE || !Object.hasOwn(EXCHANGE_FUNCTIONS, name)) continue
    const expected = EXCHANGE_FUNCTIONS[name]
    const { parameters, results } = types[type]
    if (`${parameters}:${results}` !== `${expected.parameters}:${expected.results}`)
      throw new BadModule(`the module imports ${module}.${name} with a wrong signature`)
    found.set(index, name)
  }
  return found
}

class ModuleWriter {
  readonly #plan: Plan
  readonly #functions: readonly FunctionCode[]
  /** Indices of exported added functions by name without prefix. */
  readonly #exported: ReadonlyMap<string, number>
  readonly #out = new ByteWriter()

  constructor(plan: Plan, functions: readonly FunctionCode[], exported: ReadonlyMap<string, number>) {
    this.#plan = plan
    this.#functions = functions
    this.#exported = exported
  }

  write(): Uint8Array<ArrayBuffer> {
    const { parts, types } = this.#plan
    const typeIndices = this.#functions.map(({ parameters, results }) => types.indexOf(parameters, results))
    // First, since bodies may add types.
    const code = this.#code()
    const out = this.#out
    out.write([0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0])
    this.#append(SECTION.type, parts.typeGroups, types.added, writeFunctionType)
    this.#carry(SECTION.import)
    this.#append(SECTION.function, parts.functions.length, typeIndices, (section, type) => section.u32(type))
    this.#section(SECTION.table, (section) => this.#tables(section))
    this.#section(SECTION.memory, (section) => this.#memories(section))
    this.#carry(SECTION.tag)
    this.#globals()
    this.#exports()
    this.#carry(SECTION.start)
    this.#carry(SECTION.element)
    this.#carry(SECTION.dataCount)
    this.#section(SECTION.code, (section) => section.copy(code.view()))
    this.#carry(SECTION.data)
    if (parts.names !== null) this.#raw(SECTION.custom, parts.names)
    return new Uint8Array(out.view())
  }

  #code(): ByteWriter {
    const { parts } = this.#plan
    const code = new ByteWriter()
    const traits = scanBodies(parts)
    const rewriter = new BodyRewriter(this.#plan)
    code.u32(parts.bodies.length + this.#functions.length)
    for (const [index, body] of parts.bodies.entries())
      rewriter.rewrite(body, parts.types[parts.functions[index]], traits[index], code)
    for (const { locals, code: instructions } of this.#functions) {
      const body = [...(locals === 0 ? [0] : [1, locals, VALUE.i32]), ...instructions, OP.end]
      code.u32(body.length)
      code.write(body)
    }
    return code
  }

  #tables(section: ByteWriter): void {
    section.u32(this.#plan.tables.length)
    for (const { type, minimum, maximum, value } of this.#plan.tables) {
      if (value !== null) section.write([TABLE_WITH_VALUE, 0])
      section.write(typeBytes(type), [HAS_MAXIMUM])
      section.u32(minimum)
      section.u32(maximum)
      if (value !== null) section.copy(this.#plan.parts.bytes, value.from, value.to)
    }
  }

  #memories(section: ByteWriter): void {
    const { memories, base, limits } = this.#plan
    section.u32(memories.length + 1)
    const minimum = Math.ceil((base + 1) / PAGE_BYTES)
    const exchange = { minimum, maximum: minimum + limits.exchangePages }
    for (const one of [...memories, exchange]) {
      section.byte(HAS_MAXIMUM)
      section.u32(one.minimum)
      section.u32(one.maximum)
    }
  }

  #globals(): void {
    const { parts, global, limits, memories, tables, kept, base } = this.#plan
    const sum = (list: readonly { minimum: number }[]) => list.reduce((all, { minimum }) => all + minimum, 0)
    const first: Readonly<Record<number, number>> = {
      [global.fuel]: limits.startFuel,
      [global.stack]: limits.stackBytes,
      [global.pagesLeft]: limits.maxPages - sum(memories),
      [global.heapLeft]: heapUnits(limits),
      [global.placesLeft]: limits.maxTablePlaces - sum(tables),
      // Start of the blocks that the start function allocates.
      [global.top]: base + BLOCK_HEAD_BYTES,
    }
    const own = Object.values(global).map((index) => ({
      type: index === global.fuel ? VALUE.i64 : VALUE.i32,
      value: first[index] ?? 0,
    }))
    const sizes = memories.map(({ minimum }) => ({ type: VALUE.i32, value: minimum }))
    const shadows = kept.map(({ type }) => ({ type: nullable(type), value: 0 }))
    this.#append(SECTION.global, parts.globals.length, [...own, ...sizes, ...shadows], (section, one) => {
      section.write(typeBytes(one.type), [MUTABLE], constant(one.type, one.value), [OP.end])
    })
  }

  #exports(): void {
    const { parts, global, memories, exchange } = this.#plan
    const entries = [
      ...[...this.#exported].map(([name, index]) => ({
        name: EXPORT_PREFIX + name,
        kind: KIND.function,
        index,
      })),
      ...[...memories.keys()].map((index) => ({
        name: `${EXPORT_PREFIX}memory:${index}`,
        kind: KIND.memory,
        index,
      })),
      { name: `${EXPORT_PREFIX}exchange`, kind: KIND.memory, index: exchange },
      ...Object.entries(global).map(([name, index]) => ({
        name: `${EXPORT_PREFIX}global:${name}`,
        kind: KIND.global,
        index,
      })),
    ]
    this.#append(SECTION.export, parts.exports.length, entries, (section, { name, kind, index }) => {
      section.name(name)
      section.byte(kind)
      section.u32(index)
    })
  }

  /** Writes a section with additional entries. */
  #append<T>(
    id: number,
    count: number,
    entries: readonly T[],
    write: (section: ByteWriter, entry: T) => void,
  ): void {
    const range = this.#plan.parts.sections.get(id)
    this.#section(id, (section) => {
      section.u32(count + entries.length)
      if (range !== undefined)
        section.copy(this.#plan.parts.bytes, range.from + countBytes(this.#plan, range), range.to)
      for (const entry of entries) write(section, entry)
    })
  }

  #carry(id: number): void {
    const range = this.#plan.parts.sections.get(id)
    if (range !== undefined) this.#raw(id, range)
  }

  #raw(id: number, { from, to }: Range): void {
    this.#out.byte(id)
    this.#out.u32(to - from)
    this.#out.copy(this.#plan.parts.bytes, from, to)
  }

  #section(id: number, write: (section: ByteWriter) => void): void {
    const section = new ByteWriter()
    write(section)
    this.#out.byte(id)
    this.#out.u32(section.length)
    this.#out.copy(section.view())
  }
}

function writeFunctionType(section: ByteWriter, { parameters, results }: FunctionType): void {
  section.byte(FUNCTION_TYPE)
  for (const list of [parameters, results]) {
    section.u32(list.length)
    for (const type of list) section.write(typeBytes(type))
  }
}

/** Size of the entry count at the start of a section. */
function countBytes({ parts }: Plan, { from }: Range): number {
  let bytes = 1
  while (parts.bytes[from + bytes - 1] >= 0x80) bytes++
  return bytes
}

/** 0 of any type, or a number of type i32 or i64. */
function constant(type: number, value: number): Code {
  switch (type) {
    case VALUE.i32:
      return i32(value)
    case VALUE.i64:
      return i64(value)
    case VALUE.f32:
      return [OP.f32Const, 0, 0, 0, 0]
    case VALUE.f64:
      return [OP.f64Const, 0, 0, 0, 0, 0, 0, 0, 0]
    case VALUE.v128:
      return [0xfd, 0x0c, ...new Array<number>(16).fill(0)]
    default:
      return [OP.refNull, ...heapBytes(type)]
  }
}
