/** Random programs for property tests: always valid, always ending, writing to memory wherever they like. */
import fc from 'fast-check'
import { ByteWriter } from './byte-writer.ts'

/** Bytes of instructions. */
type Code = readonly number[]

const LOCALS = 4
/** Locals that count loops, one for each depth of nesting. */
const MAX_DEPTH = 3
const MUTABLE_GLOBALS = 2

function number(value: number): number[] {
  const writer = new ByteWriter()
  writer.signed(value | 0)
  return [...writer.view()]
}

const local = fc.integer({ min: 0, max: LOCALS - 1 })
const constant = fc
  .oneof(fc.integer(), fc.integer({ min: 0, max: 65_536 }))
  .map((value) => [0x41, ...number(value)])
/** Addition to exclusive or, without divisions, which may trap. */
const OPERATORS = [0x6a, 0x6b, 0x6c, 0x71, 0x72, 0x73, 0x46, 0x48, 0x4b]

const { expression } = fc.letrec<{ expression: Code }>((tie) => ({
  expression: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    constant,
    local.map((index) => [0x20, index]),
    fc.integer({ min: 0, max: MUTABLE_GLOBALS - 1 }).map((index) => [0x23, index]),
    fc.constant([0x3f, 0]),
    fc
      .tuple(tie('expression'), tie('expression'), fc.constantFrom(...OPERATORS))
      .map(([a, b, op]) => [...a, ...b, op]),
    // Loads stay within the first page.
    tie('expression').map((at) => [...at, 0x41, ...number(0xfff0), 0x71, 0x28, 0, 4]),
  ),
}))

const within = (at: Code): Code => [...at, 0x41, ...number(0xffe0), 0x71]

function statement(depth: number): fc.Arbitrary<Code> {
  const simple: fc.Arbitrary<Code>[] = [
    fc.tuple(local, expression).map(([index, value]) => [...value, 0x21, index]),
    fc
      .tuple(fc.integer({ min: 0, max: MUTABLE_GLOBALS - 1 }), expression)
      .map(([index, value]) => [...value, 0x24, index]),
    fc
      .tuple(expression, expression, fc.constantFrom(0x36, 0x3a, 0x3b), fc.integer({ min: 0, max: 20 }))
      .map(([at, value, op, offset]) => [...within(at), ...value, op, 0, offset]),
    fc.tuple(expression, expression).map(([at, value]) => [...within(at), ...value, 0xad, 0x37, 0, 3]),
    fc
      .tuple(expression, expression, fc.integer({ min: 0, max: 30 }))
      .map(([at, value, count]) => [...within(at), ...value, 0x41, count, 0xfc, 0x0b, 0]),
    fc
      .tuple(expression, expression, fc.integer({ min: 0, max: 30 }))
      .map(([to, from, count]) => [...within(to), ...within(from), 0x41, count, 0xfc, 0x0a, 0, 0]),
    fc.integer({ min: 0, max: 3 }).map((pages) => [0x41, pages, 0x40, 0, 0x1a]),
    expression.map((value) => [...value, 0x10, 1, 0x1a]),
  ]
  if (depth === 0) return fc.oneof(...simple)
  const counter = LOCALS + depth
  return fc.oneof(
    ...simple,
    fc
      .tuple(expression, block(depth - 1), block(depth - 1))
      .map(([condition, then, otherwise]) => [...condition, 0x04, 0x40, ...then, 0x05, ...otherwise, 0x0b]),
    fc
      .tuple(expression, block(depth - 1), block(depth - 1))
      .map(([condition, before, after]) => [0x02, 0x40, ...before, ...condition, 0x0d, 0, ...after, 0x0b]),
    // A table of branches, and code that only they reach.
    fc
      .tuple(expression, block(depth - 1), block(depth - 1))
      .map(([which, first, second]) => [
        ...[0x02, 0x40, 0x02, 0x40, 0x02, 0x40, ...which, 0x0e, 2, 0, 1, 2, 0x0b],
        ...[...first, 0x0c, 1, 0x0b, ...second, 0x0b],
      ]),
    fc
      .tuple(fc.integer({ min: 1, max: 4 }), block(depth - 1))
      .map(([times, body]) => [
        ...[0x41, times, 0x21, counter, 0x03, 0x40, ...body],
        ...[0x20, counter, 0x41, 1, 0x6b, 0x22, counter, 0x0d, 0, 0x0b],
      ]),
    expression.map((value) => [...value, 0x04, 0x40, 0x20, 0, 0x0f, 0x0b]),
    ...loops(depth),
  )
}

/** Loops that are left, begun anew and fallen out of in all ways. */
function loops(depth: number): fc.Arbitrary<Code>[] {
  const counter = LOCALS + depth
  const count = fc.integer({ min: 0, max: 5 }).map((times) => [0x41, times, 0x21, counter])
  const less = [0x20, counter, 0x41, 1, 0x6b, 0x21, counter]
  const inner = Math.max(0, depth - 2)
  const forms = [
    // Left by a branch out of it.
    fc
      .tuple(count, block(depth - 1), expression)
      .map(([times, body, condition]) => [
        ...[...times, 0x02, 0x40, 0x03, 0x40, ...body, ...condition, 0x0d, 1],
        ...[...less, 0x20, counter, 0x41, 0, 0x4a, 0x0d, 0, 0x0b, 0x0b],
      ]),
    // `while`, with `continue`.
    fc
      .tuple(count, block(depth - 1), expression, block(depth - 1))
      .map(([times, before, condition, after]) => [
        ...[...times, 0x03, 0x40, 0x20, counter, 0x04, 0x40, ...less, ...before, ...condition, 0x0d, 1],
        ...[...after, 0x0c, 1, 0x0b, 0x0b],
      ]),
    // With a result.
    fc
      .tuple(count, block(depth - 1), expression, local)
      .map(([times, body, result, index]) => [
        ...[...times, 0x03, 0x7f, ...body, ...less, 0x20, counter, 0x41, 0, 0x4a, 0x0d, 0, ...result, 0x0b],
        ...[0x21, index],
      ]),
  ]
  if (depth < 2) return forms
  return [
    ...forms,
    // Begun anew from a loop within it.
    fc
      .tuple(count, fc.integer({ min: 1, max: 4 }), block(inner), expression)
      .map(([times, rounds, body, condition]) => [
        ...[...times, 0x03, 0x40, 0x20, counter, 0x04, 0x40, ...less, 0x41, rounds, 0x21, counter - 1],
        ...[0x03, 0x40, ...body, ...condition, 0x0d, 2, 0x20, counter - 1, 0x41, 1, 0x6b, 0x22, counter - 1],
        ...[0x0d, 0, 0x0b, 0x0c, 1, 0x0b, 0x0b],
      ]),
  ]
}

function block(depth: number): fc.Arbitrary<Code> {
  return fc.array(statement(depth), { maxLength: 4 }).map((statements) => statements.flat())
}

/** A module with `run` (i32 → i32), memory, two mutable globals, and a second function that `run` calls. */
export const program: fc.Arbitrary<Uint8Array<ArrayBuffer>> = fc
  .tuple(block(MAX_DEPTH), expression, expression)
  .map(([statements, result, helper]) => toModule([...statements, ...result], helper))

function toModule(run: Code, helper: Code): Uint8Array<ArrayBuffer> {
  const out = new ByteWriter()
  out.all([0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0])
  const section = (id: number, content: Code) => {
    out.byte(id)
    out.u32(content.length)
    out.all(content)
  }
  const body = (code: Code): Code => {
    const content = new ByteWriter()
    content.all([1, LOCALS + MAX_DEPTH, 0x7f])
    content.all(code)
    content.byte(0x0b)
    const sized = new ByteWriter()
    sized.u32(content.length)
    sized.copy(content.view())
    return [...sized.view()]
  }
  section(1, [1, 0x60, 1, 0x7f, 1, 0x7f])
  section(3, [2, 0, 0])
  section(5, [1, 1, 1, 8])
  section(6, [2, 0x7f, 1, 0x41, 7, 0x0b, 0x7f, 1, 0x41, 9, 0x0b])
  section(7, [3, 3, 0x72, 0x75, 0x6e, 0, 0, 1, 0x6d, 2, 0, 1, 0x67, 3, 0])
  section(10, [2, ...body(run), ...body(helper)])
  section(11, [1, 0, 0x41, 16, 0x0b, 4, 1, 2, 3, 4])
  return Uint8Array.from(out.view())
}
