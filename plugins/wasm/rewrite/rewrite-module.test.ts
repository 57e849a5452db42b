/** Rewritten modules give the same results, stay within the limits, and can be restored. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { countedProgram, program } from '../../../test/fixtures/wasm/random-program.ts'
import { assemble } from '../../../test/fixtures/wasm/wat.ts'
import { runs } from '../../../test/support/thorough.ts'
import { GuestExchange } from '../instances/guest-exchange.ts'
import { GuestSnapshot } from '../instances/guest-snapshot.ts'
import { ByteWriter } from './byte-writer.ts'
import { BadModule } from './module-rejected.ts'
import type { RewriteLimits } from './plan.ts'
import { EXPORT_PREFIX, rewriteModule } from './rewrite-module.ts'

const LIMITS: RewriteLimits = {
  maxPages: 64,
  maxTablePlaces: 1_000,
  stackBytes: 65_536,
  exchangePages: 16,
  startFuel: 1_000_000,
  restores: true,
  headroomPages: 4,
}
const FUEL = 10_000_000

type Run = (...args: number[]) => number
const instantiate = (bytes: Uint8Array<ArrayBuffer>) =>
  new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports

/** A rewritten module with its exchange memory, as in the gateway. */
function open(bytes: Uint8Array<ArrayBuffer>, limits: Partial<RewriteLimits> = {}) {
  const { bytes: rewritten, layout } = rewriteModule(bytes, { ...LIMITS, ...limits })
  const exports = instantiate(rewritten)
  const exchange = new GuestExchange(exports, layout)
  const snapshot = layout.restores ? new GuestSnapshot(exports, layout, exchange, true) : null
  const run = (name: string, ...args: number[]) => {
    exchange.begin(new Uint8Array(0), FUEL)
    try {
      return (exports[name] as Run)(...args)
    } finally {
      exchange.end()
    }
  }
  const stackLeft = () => (exports[`${EXPORT_PREFIX}global:stack`] as WebAssembly.Global).value as number
  return { exports, exchange, snapshot, run, burnt: () => FUEL - exchange.end(), stackLeft }
}

/** Builds a module section by section. */
function newModule() {
  const out = new ByteWriter()
  out.write([0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0])
  const section = (id: number, write: (content: ByteWriter) => void) => {
    const content = new ByteWriter()
    write(content)
    out.byte(id)
    out.u32(content.length)
    out.copy(content.view())
  }
  return { out, section }
}

const memoryOf = (exports: WebAssembly.Exports, name = 'm') =>
  Buffer.from((exports[name] as WebAssembly.Memory).buffer)

/** Run by fresh instances only. */
const COLLECTED: Readonly<Record<string, string>> = {
  'structs and arrays that refer to one another': `(module
    (rec (type $node (struct (field $value (mut i32)) (field $next (mut (ref null $node))))) (type $list (array (mut (ref null $node)))))
    (type $text (array (mut i16))) (data $d "abcdefgh")
    (func (export "f") (param $n i32) (result i32) (local $head (ref null $node)) (local $all (ref null $list)) (local $i i32) (local $sum i32)
      (local.set $all (array.new $list (ref.null $node) (i32.const 20)))
      (loop $l
        (local.set $head (struct.new $node (local.get $i) (local.get $head)))
        (array.set $list (local.get $all) (local.get $i) (local.get $head))
        (br_if $l (i32.lt_s (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
      (struct.set $node $value (local.get $head) (i32.const 100))
      (block $end (loop $walk
        (local.set $sum (i32.add (local.get $sum) (struct.get $node $value (br_on_null $end (local.get $head)))))
        (local.set $head (struct.get $node $next (local.get $head)))
        (br $walk)) (unreachable))
      (i32.add (local.get $sum) (i32.add (array.len (local.get $all))
        (array.get_u $text (array.new_data $text $d (i32.const 2) (i32.const 3)) (i32.const 1))))))`,
  'casts, small integers and references to functions': `(module
    (type $shape (sub (struct (field i32)))) (type $circle (sub $shape (struct (field i32) (field i64)))) (type $f (func (param i32) (result i32)))
    (elem declare func $double) (func $double (type $f) (i32.mul (local.get 0) (i32.const 2)))
    (global $kept (mut (ref $f)) (ref.func $double)) (global $any (mut anyref) (ref.null any)) (table $t 3 (ref null $shape))
    (func $again (type $f) (return_call_ref $f (i32.add (local.get 0) (i32.const 1)) (global.get $kept)))
    (func $area (param (ref null $shape)) (result i32) (local $c (ref null $circle))
      (block $is (result (ref $circle))
        (drop (br_on_cast $is (ref null $shape) (ref $circle) (local.get 0)))
        (return (i32.const 7)))
      (local.set $c) (i32.wrap_i64 (struct.get $circle 1 (local.get $c))))
    (func (export "f") (param $n i32) (result i32)
      (global.set $any (ref.i31 (local.get $n)))
      (table.set $t (i32.const 1) (struct.new $circle (i32.const 1) (i64.const 50)))
      (i32.add (call_ref $f (local.get $n) (global.get $kept))
        (i32.add (call $again (local.get $n)) (i32.add (i31.get_s (ref.cast (ref i31) (global.get $any)))
          (i32.add (call $area (table.get $t (i32.const 1))) (call $area (struct.new $shape (i32.const 3)))))))))`,
}

const FEATURES: Readonly<Record<string, string>> = {
  'recursion and branches': `(module (func $fib (export "f") (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0))
      (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2))))))))`,
  'vectors, with lanes stored': `(module (memory 1) (func (export "f") (param i32) (result i32)
    (v128.store offset=16 (i32.const 0) (i32x4.splat (local.get 0)))
    (v128.store32_lane offset=4 2 (i32.const 4090) (i32x4.mul (v128.load (i32.const 16)) (v128.const i32x4 1 2 3 4)))
    (i32.add (i32.load (i32.const 4094)) (i8x16.extract_lane_u 3 (i8x16.shuffle 0 1 2 19 4 5 6 7 8 9 10 11 12 13 14 15 (v128.load (i32.const 16)) (v128.load (i32.const 0)))))))`,
  'several memories and bulk instructions': `(module (memory $a 1) (memory $b 2) (data $d "abcdef")
    (func (export "f") (param i32) (result i32)
      (memory.init $b $d (i32.const 100) (i32.const 1) (i32.const 4))
      (memory.copy $a $b (i32.const 8) (i32.const 100) (i32.const 4))
      (memory.fill $b (i32.const 5000) (local.get 0) (i32.const 9000))
      (i32.add (i32.load $a (i32.const 8)) (i32.add (i32.load8_u $b (i32.const 13999)) (memory.size $b)))))`,
  'tail calls': `(module (func $loop (export "f") (param i32) (result i32) (return_call $down (local.get 0) (i32.const 0)))
    (func $down (param i32 i32) (result i32)
      (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
      (return_call $down (i32.sub (local.get 0) (i32.const 1)) (i32.add (local.get 1) (local.get 0)))))`,
  'exceptions that cross calls': `(module (tag $t (param i32)) (func $deep (param i32) (result i32)
      (if (i32.eqz (local.get 0)) (then (throw $t (i32.const 42))))
      (call $deep (i32.sub (local.get 0) (i32.const 1))))
    (func (export "f") (param i32) (result i32) (local $sum i32) (local $n i32)
      (loop $again
        (local.set $sum (i32.add (local.get $sum) (try (result i32) (do (call $deep (local.get 0))) (catch $t (pop i32)))))
        (br_if $again (i32.lt_s (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 300))))
      (local.get $sum)))`,
  'exceptions that are kept as references': `(module (tag $t (param i32)) (tag $u) (table $x 2 exnref) (global $kept (mut exnref) (ref.null exn))
    (func $deep (param i32) (result i32)
      (if (i32.eqz (local.get 0)) (then (throw $t (i32.const 42))))
      (if (i32.eq (local.get 0) (i32.const 7)) (then (throw $u)))
      (call $deep (i32.sub (local.get 0) (i32.const 1))))
    (func $again (param i32) (result i32 exnref)
      (block $caught (result i32 exnref) (try_table (catch_ref $t $caught) (drop (call $deep (local.get 0)))) (unreachable)))
    (func (export "f") (param i32) (result i32) (local $sum i32) (local $n i32) (local $e exnref)
      (loop $more
        (block $other (result exnref)
          (try_table (catch_all_ref $other)
            (call $again (local.get 0)) (local.set $e)
            (local.set $sum (i32.add (local.get $sum)))
            (block $thrown (result i32) (try_table (catch $t $thrown) (throw_ref (local.get $e))) (unreachable))
            (local.set $sum (i32.add (local.get $sum))))
          (ref.null exn))
        (global.set $kept)
        (local.set $sum (i32.add (local.get $sum) (ref.is_null (global.get $kept))))
        (br_if $more (i32.lt_s (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 40))))
      (table.set $x (i32.const 1) (global.get $kept))
      (i32.add (local.get $sum) (ref.is_null (table.get $x (i32.const 1))))))`,
  'tables of functions and references': `(module (type $u (func (param i32) (result i32))) (table $t 4 10 funcref) (table $x 2 externref)
    (elem (table $t) (i32.const 1) func $double $next)
    (func $double (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
    (func $next (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
    (func (export "f") (param i32) (result i32)
      (drop (table.grow $t (ref.null func) (i32.const 2)))
      (table.set $t (i32.const 5) (ref.func $next))
      (i32.add (table.size $t) (call_indirect $t (type $u) (call_indirect $t (type $u) (local.get 0) (i32.const 5)) (i32.const 1)))))`,
  'blocks with several results': `(module (func (export "f") (param i32) (result i32 i32) (local $n i32)
    (loop $l (br_if $l (i32.lt_s (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 9))))
    (if (param) (result i32 i32) (local.get 0) (then (return (local.get $n) (i32.const 3))) (else (i32.const 1) (local.get $n)))))`,
}

describe('a rewritten module', () => {
  test.each(Object.entries(FEATURES))('gives the same results: %s', (_, text) => {
    const bytes = assemble(text)
    for (const restores of [true, false]) {
      for (const argument of [0, 1, 7, 12]) {
        const before = (instantiate(bytes).f as Run)(argument)
        const after = open(bytes, { restores })
        expect(after.run('f', argument)).toEqual(before)
        expect(after.burnt()).toBeGreaterThan(0)
        expect(after.exports['weir:global:stack']).toMatchObject({ value: LIMITS.stackBytes })
      }
    }
  })

  test.each(Object.entries(COLLECTED))('gives the same results: %s', (_, text) => {
    const bytes = assemble(text, true)
    for (const argument of [1, 7, 12]) {
      const before = (instantiate(bytes).f as Run)(argument)
      const after = open(bytes)
      expect(after.run('f', argument)).toEqual(before)
      expect(after.burnt()).toBeGreaterThan(0)
      expect(after.exports['weir:global:stack']).toMatchObject({ value: LIMITS.stackBytes })
    }
    const reused = { ...LIMITS, restores: false }
    expect(() => rewriteModule(bytes, reused)).toThrow('register it with `instance: fresh`')
  })

  test('behaves like the original for any program, uses deterministic fuel, and can be restored', () => {
    fc.assert(
      fc.property(program, fc.integer(), fc.integer(), (bytes, first, second) => {
        const plain = instantiate(bytes)
        const guest = open(bytes)
        const memoryAtFirst = memoryOf(guest.exports)
        const untouched = Buffer.from(memoryAtFirst)
        const expected = (plain.run as Run)(first)
        expect(guest.run('run', first)).toBe(expected)
        const burnt = guest.burnt()
        const seen = memoryOf(guest.exports)
        const plainMemory = memoryOf(plain)
        expect(seen.subarray(0, plainMemory.length).equals(plainMemory)).toBe(true)
        if (guest.snapshot?.restore() !== true) return
        expect(memoryOf(guest.exports).equals(untouched)).toBe(true)
        // A call with another input in between.
        guest.run('run', second)
        if (guest.snapshot.restore() !== true) return
        expect(guest.run('run', first)).toBe(expected)
        expect(guest.burnt()).toBe(burnt)
      }),
      { numRuns: runs(400) },
    )
  })

  test.each([true, false])(
    'burns at least the fuel of every instruction that it runs (restores: %s)',
    (restores) => {
      fc.assert(
        fc.property(countedProgram, fc.integer(), ({ plain, counted }, input) => {
          const reference = instantiate(counted)
          const guest = open(plain, { restores })
          expect(guest.run('run', input)).toBe((reference.run as Run)(input))
          const run = Number((reference.n as WebAssembly.Global).value)
          expect(guest.burnt()).toBeGreaterThanOrEqual(run)
          expect(guest.stackLeft()).toBe(LIMITS.stackBytes)
        }),
        { numRuns: runs(200) },
      )
    },
  )

  test('burns for code behind a switch only when it runs, also if the code in front of it continues there', () => {
    // As Go compiles a function with calls: a loop around a switch over the places at which it continues.
    const spinning = (count: number) => {
      const guest = open(
        assemble(`(module (global $g (mut i32) (i32.const 0))
          (func (export "f") (param $n i32) (result i32) (local $at i32)
            (loop $l
              (block $rest
                (block $spin (br_table $spin $rest (local.get $at)))
                (local.set $n (i32.sub (local.get $n) (i32.const 1)))
                (br_if $l (local.get $n))
                (local.set $at (i32.const 1)))
              ${'(global.set $g (i32.const 1))'.repeat(count)})
            (global.get $g)))`),
      )
      guest.run('f', 100)
      return guest.burnt() as number
    }
    expect(spinning(200) - spinning(100)).toBe(200)
  })

  test('uses the same fuel for each round of a loop, and a single round costs its body', () => {
    const loop = '(loop $l BODY (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))'
    const stores = (count: number) => '(i32.store (local.get 0) (i32.const 7))'.repeat(count)
    const opened = (code: string) =>
      open(assemble(`(module (memory 1) (func (export "f") (param i32) (result i32) ${code} (i32.const 0)))`))
    // Bodies that are duplicated, and one that is too long for it.
    for (const count of [0, 1, 10, 100]) {
      const looped = opened(loop.replace('BODY', stores(count)))
      const straight = opened(`${stores(count)} (drop (i32.sub (local.get 0) (i32.const 1)))`)
      const burnt = [straight, ...new Array(20).fill(looped)].map((guest, rounds) => {
        guest.run('f', rounds)
        return guest.burnt() as number
      })
      const round = burnt[2] - burnt[1]
      expect(round).toBeGreaterThanOrEqual(3 * count + 4)
      for (let rounds = 3; rounds <= 20; rounds++) expect(burnt[rounds]).toBe(burnt[1] + (rounds - 1) * round)
      expect(Math.abs(burnt[1] - burnt[0])).toBeLessThanOrEqual(2)
    }
  })

  test('with nested loops grows only up to the limit', () => {
    const nops = new Array<number>(60).fill(0x01)
    const depth = 3
    const nest = Array.from({ length: depth }, () => [0x03, 0x40, ...nops, 0x20, 0, 0x0d, 0]).flat()
    for (let i = 0; i < depth; i++) nest.push(0x0b)
    const body = [0, ...Array.from({ length: 25 }, () => nest).flat(), 0x0b]
    const count = 300
    const { out, section } = newModule()
    section(1, (content) => content.write([1, 0x60, 1, 0x7f, 0]))
    section(3, (content) => {
      content.u32(count)
      for (let i = 0; i < count; i++) content.byte(0)
    })
    section(10, (content) => {
      content.u32(count)
      for (let i = 0; i < count; i++) {
        content.u32(body.length)
        content.write(body)
      }
    })
    const bytes = Uint8Array.from(out.view())
    expect(bytes.length).toBeGreaterThan(1_500_000)
    // Fuel takes about twenty bytes per branch; the number of duplicated bodies is limited per module.
    expect(rewriteModule(bytes, LIMITS).bytes.length).toBeLessThan(2 * bytes.length)
  })

  test('marks memory once for all stores to one frame, also after branches, but not for another frame', () => {
    const bytesOf = (code: string) => {
      const text = `(module (memory 1) (func (export "f") (param i32) ${code}))`
      return (
        rewriteModule(assemble(text), LIMITS).bytes.length -
        rewriteModule(assemble(text), { ...LIMITS, restores: false }).bytes.length
      )
    }
    const store = (offset: number) => `(i32.store offset=${offset} (local.get 0) (i32.const 7))`
    const once = bytesOf(store(0))
    expect(bytesOf([0, 8, 64, 250].map(store).join(''))).toBe(once)
    const sum = (constant: number) =>
      `(i32.store (i32.add (local.get 0) (i32.const ${constant})) (i32.const 7))`
    expect(bytesOf([sum(240), store(8), sum(20), store(200)].join(''))).toBe(bytesOf(sum(240)))
    expect(bytesOf(`${store(0)} (if (local.get 0) (then ${store(4)}) (else ${store(8)})) ${store(12)}`)).toBe(
      once,
    )
    for (const code of [
      `${store(0)} ${store(300)}`,
      `${store(0)} ${sum(-8)}`,
      `(if (local.get 0) (then ${store(4)}) (else ${store(8)}))`,
      `${store(0)} (local.set 0 (i32.const 5000)) ${store(0)}`,
      `${store(0)} (loop $l ${store(4)} (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))`,
    ])
      expect(bytesOf(code), code).toBeGreaterThan(once + 8)
  })

  test('keeps no state of a call: globals of every type, growth, exchange memory', () => {
    const guest = open(
      assemble(`(module (memory (export "m") 1) (global $a (mut i64) (i64.const 5)) (global $b (mut f64) (f64.const 1.5))
        (global $v (mut v128) (v128.const i32x4 1 2 3 4)) (global $x (mut externref) (ref.null extern)) (global $f (mut funcref) (ref.func $noop))
        (func $noop) (func (export "look") (result i32)
          (i32.add (i32.add (i32.wrap_i64 (global.get $a)) (i32.trunc_f64_s (global.get $b)))
            (i32.add (i32x4.extract_lane 0 (global.get $v)) (i32.add (memory.size) (ref.is_null (global.get $f))))))
        (func (export "change") (result i32) (global.set $a (i64.const 70)) (global.set $b (f64.const 80)) (global.set $f (ref.null func))
          (global.set $v (i32x4.splat (i32.const 90))) (drop (memory.grow (i32.const 2))) (i64.store (i32.const 131064) (i64.const -1)) (memory.size)))`),
    )
    expect(guest.run('look')).toBe(5 + 1 + 1 + 1)
    expect(guest.run('change')).toBe(3)
    expect(guest.snapshot?.restore()).toBe(true)
    expect(guest.run('look')).toBe(5 + 1 + 1 + 1)
    expect(memoryOf(guest.exports).some((byte) => byte !== 0)).toBe(false)
  })

  test('keeps no object of a call, and is not restored after a change of an object that was there before', () => {
    const guest = open(
      assemble(
        `(module (type $box (struct (field (mut i32)))) (global $first (ref $box) (struct.new $box (i32.const 5)))
          (global $held (mut (ref $box)) (struct.new $box (i32.const 6)))
          (func (export "look") (result i32) (i32.add (struct.get $box 0 (global.get $first)) (struct.get $box 0 (global.get $held))))
          (func (export "replace") (global.set $held (struct.new $box (i32.const 70))))
          (func (export "change") (struct.set $box 0 (global.get $first) (i32.const 70))))`,
        true,
      ),
    )
    guest.run('replace')
    expect(guest.run('look')).toBe(75)
    expect(guest.snapshot?.restore()).toBe(true)
    expect(guest.run('look')).toBe(11)
    guest.run('change')
    expect(guest.snapshot?.restore()).toBe(false)
  })

  test('is not restored after a changed table or a dropped segment', () => {
    const text = (code: string) =>
      assemble(
        `(module (table 2 funcref) (memory 1) (data $d "x") (elem $e func) (func (export "f") ${code}) (func (export "g")))`,
      )
    const changes = ['(table.set (i32.const 0) (ref.null func))', '(data.drop $d)', '(elem.drop $e)']
    for (const code of changes) {
      const guest = open(text(code))
      guest.run('g')
      expect(guest.snapshot?.restore()).toBe(true)
      guest.run('f')
      expect(guest.snapshot?.restore()).toBe(false)
    }
  })
})

describe('a limit', () => {
  const endless: Readonly<Record<string, string>> = {
    'a loop': '(loop $l (br $l))',
    'a loop after unreachable code':
      '(block (br 0) (loop (nop))) (loop $l (block (br 0) (loop (nop)) (unreachable)) (br $l))',
    'tail calls': '(return_call $f)',
    'a loop of fills': '(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 60000)) (br $l))',
    'a loop that catches': '(loop $l (try (do (throw $t)) (catch $t (br $l))))',
    'recursion in all directions': '(call $f) (call $f)',
  }
  test('of fuel ends many calls of a long function that calls nothing, in code without loops', () => {
    const long = '(global.set $g (i32.div_s (global.get $g) (i32.const 3)))'.repeat(2_000)
    const arms = '(if (global.get $g) (then (call $long) (call $long) (call $long) (call $long)))'.repeat(
      2_000,
    )
    const text = `(module (global $g (export "g") (mut i32) (i32.const 0)) (global $n (export "n") (mut i32) (i32.const 0))
      (func $long (global.set $n (i32.add (global.get $n) (i32.const 1))) ${long} (global.set $g (i32.const 1)))
      (func (export "f") (call $long) ${arms}))`
    const guest = open(assemble(text))
    expect(() => guest.run('f')).toThrow(WebAssembly.RuntimeError)
    expect(guest.exchange.brokenLimit).toBe('fuel')
    // The fuel of the test is enough for 500 calls.
    expect((guest.exports.n as WebAssembly.Global).value).toBeLessThan(600)
  })

  test.each(Object.entries(endless))('of fuel or stack ends %s', (_, code) => {
    const guest = open(assemble(`(module (tag $t) (memory 1) (func $f (export "f") ${code}))`))
    expect(() => guest.run('f')).toThrow(WebAssembly.RuntimeError)
    expect(guest.exchange.brokenLimit).toMatch(/fuel|stack/)
  })

  test('of stack ends a recursion through a table, of functions of several types', () => {
    const text = `(module (type $s (sub (func (param (ref null func))))) (type $t (sub $s (func (param (ref null func)))))
      (type $u (func (param i64) (result i32))) (table funcref (elem $g $h))
      (func (export "f") (drop (call $h (i64.const 1))))
      (func $g (type $t) (drop (call_indirect (type $u) (i64.const 1) (i32.const 1))))
      (func $h (type $u) (call_indirect (type $s) (ref.null func) (i32.const 0)) (i32.const 2)))`
    const guest = open(assemble(text, true))
    expect(() => guest.run('f')).toThrow(WebAssembly.RuntimeError)
    expect(guest.exchange.brokenLimit).toBe('stack')
  })

  const collected: Readonly<Record<string, string>> = {
    'one array': '(drop (array.new_default $a (local.get 0)))',
    'arrays of two bytes': '(loop $l (global.set $kept (array.new_default $a (i32.const 9000))) (br $l))',
    structs: '(loop $l (drop (struct.new $s (ref.null $a) (i64.const 1))) (br $l))',
    'arrays of given entries':
      '(loop $l (drop (array.new_fixed $a 3 (i32.const 1) (i32.const 2) (i32.const 3))) (br $l))',
  }
  test.each(Object.entries(collected))('of memory ends a call that creates %s', (_, code) => {
    const text = `(module (type $a (array (mut i16))) (type $s (struct (field (ref null $a)) (field i64)))
      (global $kept (mut (ref null $a)) (ref.null $a)) (func (export "f") (param i32) ${code}))`
    const guest = open(assemble(text, true), { maxPages: 4 })
    expect(() => guest.run('f', 200_000)).toThrow(WebAssembly.RuntimeError)
    expect(guest.exchange.brokenLimit).toBe('heap')
    const initial =
      '(module (type $a (array i8)) (global (ref $a) (array.new_default $a (i32.const 100000))))'
    expect(() => rewriteModule(assemble(initial, true), { ...LIMITS, maxPages: 4 })).toThrow('bytes of data')
  })

  const branches: Readonly<Record<string, string>> = {
    'a branch on a null reference': '(loop $l (drop (br_on_null $l (ref.null $f))))',
    'a call of a reference': '(call_ref $f (ref.func $g)) (call_ref $f (ref.func $g))',
    'a tail call of a reference': '(return_call_ref $f (ref.func $g))',
  }
  test.each(Object.entries(branches))('of fuel or stack ends %s', (_, code) => {
    const guest = open(assemble(`(module (type $f (func)) (func $g (export "f") (type $f) ${code}))`, true))
    expect(() => guest.run('f')).toThrow(WebAssembly.RuntimeError)
    expect(guest.exchange.brokenLimit).toMatch(/fuel|stack/)
  })

  test('of the stack is counted exactly, also after exceptions', () => {
    const bytes = assemble(FEATURES['exceptions that cross calls'])
    const guest = open(bytes, { stackBytes: 4_000 })
    // Forty calls deep 300 times: only open calls count.
    expect(guest.run('f', 40)).toBe(300 * 42)
    expect(() => guest.run('f', 60)).toThrow(WebAssembly.RuntimeError)
    expect(guest.exchange.brokenLimit).toBe('stack')
  })

  test('of memory applies to all memories together', () => {
    const bytes = assemble(`(module (memory $a 2) (memory $b 1) (func (export "f") (param i32) (result i32)
      (i32.add (i32.mul (memory.grow $a (local.get 0)) (i32.const 100)) (memory.grow $b (local.get 0)))))`)
    expect(open(bytes, { maxPages: 11 }).run('f', 4)).toBe(201)
    expect(open(bytes, { maxPages: 11 }).run('f', 5)).toBe(199)
    expect(open(bytes, { maxPages: 11 }).run('f', -1)).toBe(-101)
    expect(() => rewriteModule(bytes, { ...LIMITS, maxPages: 2 })).toThrow(
      'requires 3 memory pages; the limit is 2',
    )
  })

  test('of memory applies to data segments, active or passive', () => {
    const [large, small] = [40_000, 30_000].map((bytes) => `"${'x'.repeat(bytes)}"`)
    const bytes = assemble(`(module (memory $a 1) (memory $b 1)
      (data (memory $a) (i32.const 8) ${large}) (data (memory $b) (i32.const 8) ${small}) (data $kept ${large})
      (func (export "f") (param i32) (result i32) (i32.load8_u (local.get 0))))`)
    expect(open(bytes, { maxPages: 2 }).run('f', 9)).toBe('x'.charCodeAt(0))
    const kept = assemble(`(module (memory 1) (data $a ${large}) (data $b ${small}) (func (export "f")))`)
    expect(() => rewriteModule(kept, { ...LIMITS, maxPages: 1 })).toThrow(
      'has 70000 bytes of data; the limit of its memories is 65536',
    )
  })

  test('of tables applies at the start and on growth', () => {
    for (const type of ['func', 'extern']) {
      const bytes = assemble(
        `(module (table $a 10 ${type}ref) (table $b 5 funcref) (func (export "f") (param i32) (result i32) (table.grow $a (ref.null ${type}) (local.get 0))))`,
      )
      const guest = open(bytes, { maxTablePlaces: 20 })
      expect([guest.run('f', 6), guest.run('f', 5), guest.run('f', 1), guest.run('f', -5)]).toEqual([
        -1, 10, -1, -1,
      ])
      expect(() => rewriteModule(bytes, { ...LIMITS, maxTablePlaces: 14 })).toThrow('have 15 entries')
    }
  })
})

describe('unsupported features are rejected by name', () => {
  test.each([
    ['(module (import "a" "b" (memory 1)))', 'a.b, a memory; only functions'],
    ['(module (memory 1) (func (drop (i32.atomic.load (i32.const 0)))))', 'atomic instructions'],
    ['(module (func (export "weir:begin")))', 'reserved for the gateway'],
    ['(module (import "extism:host/env" "alloc" (func (param i32))) (func))', 'a wrong signature'],
  ])('%s', (text, message) => {
    expect(() => rewriteModule(assemble(text), LIMITS)).toThrow(message)
    expect(() => rewriteModule(assemble(text), LIMITS)).toThrow(BadModule)
  })

  /** A type index whose bytes equal the start of a `v128.const`, which would hide sixteen bytes. */
  const DISGUISED = [0xfd, 0x0c]
  const ENDLESS = [0x03, 0x40, 0x0c, 0, 0x0b]
  const pad = (code: readonly number[]) => [...code, ...new Array<number>(16 - code.length).fill(0x01)]
  const NULL = [0xd0, ...DISGUISED]
  const TYPED = [0x63, ...DISGUISED]
  test.each([
    ['a block', [0x02, ...TYPED, ...pad([...ENDLESS, ...NULL]), 0x0b, 0x1a]],
    ['a loop', [0x03, ...TYPED, ...pad([...ENDLESS, ...NULL]), 0x0b, 0x1a]],
    ['a block that catches', [0x06, ...TYPED, ...pad([...ENDLESS, ...NULL]), 0x0b, 0x1a]],
    ['an arm', [0x41, 1, 0x04, ...TYPED, ...pad([...ENDLESS, ...NULL]), 0x05, ...NULL, 0x0b, 0x1a]],
    ['a choice', [...NULL, ...NULL, 0x41, 0, 0x1c, 1, ...TYPED, ...pad(ENDLESS), 0x1a]],
  ])('%s with a typed reference that hides an endless loop ends', (_, code) => {
    const bytes = moduleOf(code, [])
    expect(WebAssembly.validate(bytes)).toBe(true)
    const guest = open(bytes)
    expect(() => guest.run('f')).toThrow(WebAssembly.RuntimeError)
    expect(guest.exchange.brokenLimit).toBe('fuel')
  })

  test('elements with a typed reference are read whole', () => {
    // A passive segment without elements.
    const bytes = moduleOf([], [1, 5, ...TYPED, 0])
    expect(WebAssembly.validate(bytes)).toBe(true)
    expect(WebAssembly.validate(rewriteModule(bytes, LIMITS).bytes)).toBe(true)
  })

  /** A module with one function, and enough types for the wanted index of the last. */
  function moduleOf(code: readonly number[], elements: readonly number[]): Uint8Array<ArrayBuffer> {
    const types = 0x7d + (0x0c << 7) + 1
    const { out, section } = newModule()
    section(1, (content) => {
      content.u32(types)
      for (let i = 0; i < types; i++) content.write([0x60, 0, 0])
    })
    section(3, (content) => content.write([1, 0]))
    section(7, (content) => content.write([1, 1, 0x66, 0, 0]))
    if (elements.length > 0) section(9, (content) => content.write(elements))
    section(10, (content) => {
      content.byte(1)
      content.u32(code.length + 2)
      content.write([0, ...code, 0x0b])
    })
    return Uint8Array.from(out.view())
  }
})

test('any valid module is rewritten into a valid module or rejected with a message', () => {
  const valid = [
    ...Object.values(FEATURES).map((text) => assemble(text)),
    ...Object.values(COLLECTED).map((text) => assemble(text, true)),
  ]
  const damaged = fc
    .tuple(
      fc.constantFrom(...valid),
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 4 }),
    )
    .map(([bytes, edits]) => {
      const copy = Uint8Array.from(bytes)
      for (const [at, value] of edits) copy[8 + (at % (copy.length - 8))] = value
      return copy
    })
  let taken = 0
  fc.assert(
    fc.property(damaged, (bytes) => {
      if (!WebAssembly.validate(bytes)) return
      try {
        const { bytes: rewritten } = rewriteModule(bytes, LIMITS)
        expect(WebAssembly.validate(rewritten)).toBe(true)
        taken++
      } catch (error) {
        expect(error).toBeInstanceOf(BadModule)
      }
    }),
    { numRuns: runs(4_000) },
  )
  expect(taken).toBeGreaterThan(100)
})
