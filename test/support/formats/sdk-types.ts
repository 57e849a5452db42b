/** Types of the SDKs, read with the TypeScript compiler: members, whether they are optional, and their kinds. */
import { join } from 'node:path'
import {
  API,
  type Checker,
  type Project,
  SymbolFlags,
  type Type,
  TypeFlags,
  type UnionType,
} from 'typescript/unstable/sync'
import { ROOT } from '../../architecture/source-scan.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** A type as far as values are made of it. */
export type Shape =
  | { readonly kind: 'value'; readonly value: Json }
  | { readonly kind: 'string' | 'number' | 'boolean' | 'any' }
  | { readonly kind: 'array'; readonly of: () => readonly Shape[] }
  /** `id` is the same for the same type. */
  | { readonly kind: 'object'; readonly id: number; readonly members: () => readonly Member[] }

export interface Member {
  readonly name: string
  readonly isOptional: boolean
  readonly isNullable: boolean
  /** More than one for a union; null and undefined are left out. */
  readonly shapes: () => readonly Shape[]
}

/** Exists for the compiler only, beside the packages. */
const CONFIG = join(ROOT, 'sdk-types.json')

/** A type in a module; with `list`, an object with a list of such values under that name. */
export type SdkType = readonly [module: string, type: string, list?: string]

/** Reads exported types of packages. */
export function readSdkTypes<Name extends string>(
  types: Readonly<Record<Name, SdkType>>,
): { readonly shapes: Readonly<Record<Name, Shape>>; close(): void } {
  const source = join(ROOT, 'sdk-types.ts')
  const entries = Object.entries<SdkType>(types)
  const files = new Map([
    [CONFIG, JSON.stringify({ compilerOptions: { module: 'nodenext', strict: true }, files: [source] })],
    [
      source,
      entries
        .map(([name, [module, type, list]]) => {
          const read = `import('${module}').${type}`
          return `export type ${name} = ${list === undefined ? read : `{ ${list}: ${read}[] }`}`
        })
        .join('\n'),
    ],
  ])
  const api = new API({
    cwd: ROOT,
    fs: { readFile: (name) => files.get(name), fileExists: (name) => files.has(name) || undefined },
  })
  const project = api.updateSnapshot({ openProjects: [CONFIG] }).getProject(CONFIG) as Project
  const { checker } = project
  const file = project.program.getSourceFile(source)
  if (file === undefined) throw new Error(`${source} was not read`)
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(file) as never)
  const shapes = Object.fromEntries(
    exported.map((symbol) => {
      const [shape] = shapesOf(checker, checker.getDeclaredTypeOfSymbol(symbol))
      return [symbol.name, shape]
    }),
  ) as Record<Name, Shape>
  return { shapes, close: () => api.close() }
}

function shapesOf(checker: Checker, type: Type | undefined): readonly Shape[] {
  if (type === undefined) return []
  const { flags } = type
  if (flags & (TypeFlags.Null | TypeFlags.Undefined | TypeFlags.Never)) return []
  // A boolean is the union of its two values.
  if (flags & TypeFlags.Boolean) return [{ kind: 'boolean' }]
  if (flags & TypeFlags.Union) {
    const all = ((type as UnionType).getTypes() ?? []).flatMap((one) => shapesOf(checker, one)).sort(byValue)
    const isBoolean = (shape: Shape) => shape.kind === 'value' && typeof shape.value === 'boolean'
    const others = all.filter((shape) => !isBoolean(shape))
    return all.filter(isBoolean).length === 2 ? [...others, { kind: 'boolean' }] : all
  }
  if (flags & TypeFlags.StringLiteral || flags & TypeFlags.NumberLiteral || flags & TypeFlags.BooleanLiteral)
    return [{ kind: 'value', value: (type as unknown as { value: Json }).value }]
  if (flags & (TypeFlags.String | TypeFlags.TemplateLiteral)) return [{ kind: 'string' }]
  if (flags & TypeFlags.Number) return [{ kind: 'number' }]
  if (checker.isArrayLikeType(type))
    return [{ kind: 'array', of: once(() => shapesOf(checker, checker.getTypeArguments(type as never)[0])) }]
  // A string that autocompletes: `string & {}`.
  if (flags & TypeFlags.Intersection) {
    const isText = ((type as UnionType).getTypes() ?? []).some((one) => one.flags & TypeFlags.String)
    if (isText) return [{ kind: 'string' }]
  }
  if (flags & (TypeFlags.Object | TypeFlags.Intersection)) return [objectOf(checker, type)]
  return [{ kind: 'any' }]
}

/** Of each compiler: reading the members of a type takes many requests to its process. */
const objects = new WeakMap<Checker, Map<number, Shape>>()

function objectOf(checker: Checker, type: Type): Shape {
  const { id } = type as unknown as { id: number }
  const known = objects.get(checker) ?? new Map<number, Shape>()
  objects.set(checker, known)
  const shape = known.get(id) ?? { kind: 'object', id, members: once(() => membersOf(checker, type)) }
  known.set(id, shape)
  return shape
}

/** Literals first: the compiler's order of them differs from run to run. */
function byValue(one: Shape, other: Shape): number {
  const key = (shape: Shape) => (shape.kind === 'value' ? `0${shape.value}` : '1')
  return key(one) < key(other) ? -1 : Number(key(one) > key(other))
}

function membersOf(checker: Checker, type: Type): readonly Member[] {
  return checker.getPropertiesOfType(type).map((symbol) => {
    const own = checker.getTypeOfSymbol(symbol)
    return {
      name: symbol.name,
      isOptional: (symbol.flags & SymbolFlags.Optional) !== 0,
      isNullable: isNullable(own),
      shapes: once(() => shapesOf(checker, own)),
    }
  })
}

function isNullable(type: Type | undefined): boolean {
  if (type === undefined || !(type.flags & TypeFlags.Union)) return false
  return ((type as UnionType).getTypes() ?? []).some(({ flags }) => flags & TypeFlags.Null)
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | null = null
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
