/** Findings of the conformance check, and their advice. */
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { tinyModule } from '../../../test/fixtures/wasm/tiny-module.ts'
import { assemble } from '../../../test/fixtures/wasm/wat.ts'
import { EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import { BUILD_LIMIT_MS, BUSY_LIMIT_MS, builtModule } from '../../../wasm-sdk/fixtures/built-modules.ts'
import { checkModule } from './conformance.ts'

vi.setConfig({ testTimeout: BUSY_LIMIT_MS })

/** Sections of a handwritten module with one function `() -> i32`. */
interface Hand {
  readonly imports?: readonly { module: string; name: string; type?: number }[]
  readonly exports?: readonly string[]
  readonly minPages?: number
  /** Code of the function, without the end. Default: returns 0. */
  readonly code?: readonly number[]
}

const I32 = 0x7f
const I64 = 0x7e
/** Function types by index. */
const TYPES = [
  [0x60, 0, 1, I32],
  [0x60, 1, I64, 1, I64],
  [0x60, 1, I64, 1, I32],
]

function handmade({
  imports = [],
  exports = ['on_request'],
  minPages = 1,
  code = [0x41, 0],
}: Hand): Uint8Array {
  const text = (value: string) => [value.length, ...Buffer.from(value)]
  const section = (id: number, content: readonly number[]) => [id, content.length, ...content]
  const list = (items: readonly (readonly number[])[]) => [items.length, ...items.flat()]
  const functionIndex = imports.length
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, list(TYPES)),
    ...section(
      2,
      list(imports.map(({ module, name, type = 1 }) => [...text(module), ...text(name), 0, type])),
    ),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, ...toLeb(minPages)]),
    ...section(7, list(exports.map((name) => [...text(name), 0, functionIndex]))),
    ...section(10, [1, code.length + 2, 0, ...code, 0x0b]),
  ])
}

const toLeb = (value: number) => (value < 128 ? [value] : [(value & 127) | 128, value >> 7])
const codesOf = async (...parameters: Parameters<typeof checkModule>) =>
  (await checkModule(...parameters)).findings.map(({ code }) => code)

test('a module with a valid output passes; a missing description is only a warning', async () => {
  const report = await checkModule(handmade({}))
  expect(report.isOk).toBe(true)
  expect(report.findings.map(({ code, level }) => [code, level])).toEqual([['no_description', 'warning']])
})

test('a component is rejected with the target to build instead', async () => {
  const report = await checkModule(Uint8Array.from([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0]))
  expect(report).toMatchObject({ isOk: false, module: { format: 'component' } })
  expect(report.findings[0].next).toContain('wasm32-unknown-unknown')
})

test.each([
  ['nothing', new Uint8Array(0), 'the file is empty'],
  ['text', Buffer.from('(module)'), 'the file is not a WebAssembly module'],
  ['a truncated module', handmade({}).subarray(0, 30), 'invalid module: the file ends too early'],
])('%s is not a module', async (_, bytes, message) => {
  expect((await checkModule(bytes)).findings).toMatchObject([{ code: 'not_a_module', message }])
})

describe('exports', () => {
  test('must include the one of the attach point', async () => {
    const { findings } = await checkModule(handmade({}), { attachPoints: ['OnRequest', 'OnError'] })
    expect(findings).toContainEqual(
      expect.objectContaining({ code: 'export_missing', message: expect.stringContaining('on_error') }),
    )
  })

  test('without a handler, or with a misspelled one, are reported', async () => {
    const { findings, isOk } = await checkModule(handmade({ exports: ['onRequest'] }))
    expect(isOk).toBe(false)
    expect(findings.map(({ code }) => code)).toEqual(['no_handler', 'export_unknown', 'no_description'])
    for (const name of Object.values(EXPORT_OF_ATTACH_POINT)) expect(findings[0].next).toContain(name)
  })
})

describe('imports', () => {
  test('of an unknown host function are reported with a similar name', async () => {
    const { findings } = await checkModule(
      handmade({ imports: [{ module: 'extism:host/user', name: 'kv_got' }] }),
    )
    expect(findings).toContainEqual({
      level: 'problem',
      code: 'import_unknown',
      message: 'the module imports extism:host/user.kv_got, which the gateway does not provide',
      next: 'did you mean kv_get?',
    })
  })

  test('with a wrong signature are reported with the right one', async () => {
    const { findings } = await checkModule(
      handmade({ imports: [{ module: 'extism:host/user', name: 'kv_get', type: 2 }] }),
    )
    expect(findings).toContainEqual(
      expect.objectContaining({ code: 'import_signature', next: 'declare it as (i64) -> (i64)' }),
    )
  })

  test('of WASI are a separate problem', async () => {
    const imports = [{ module: 'wasi_snapshot_preview1', name: 'fd_write' }]
    expect(await codesOf(handmade({ imports }))).toContain('import_wasi')
  })
})

test('memory that starts above the limit is a problem', async () => {
  expect(await codesOf(handmade({ minPages: 200 }), { limits: { memoryPages: 100 } })).toContain(
    'memory_too_large',
  )
})

test('a handler that never returns is a problem', async () => {
  const endless = [0x03, 0x40, 0x0c, 0, 0x0b, 0x41, 0]
  expect(await codesOf(handmade({ code: endless }), { limits: { timeoutMs: 500 } })).toContain('too_slow')
})

test('a handler that traps on a plain request is a warning, as it may lack its settings', async () => {
  const report = await checkModule(handmade({ code: [0x00] }))
  expect(report.isOk).toBe(true)
  expect(report.findings.map(({ code }) => code)).toContain('call_failed')
})

test('an empty description is a warning, since the gateway accepts it', async () => {
  const { findings, isOk } = await checkModule(handmade({ exports: ['on_request', 'describe'] }))
  expect(isOk).toBe(true)
  expect(findings).toMatchObject([{ code: 'description', message: '`describe` outputs nothing' }])
})

test('HTTP of Extism is rejected with the action that replaces it', async () => {
  const imports = [{ module: 'extism:host/env', name: 'http_status_code', type: 0 }]
  const { findings } = await checkModule(handmade({ imports }))
  expect(findings).toContainEqual(
    expect.objectContaining({ code: 'import_http', next: expect.stringContaining('action fetch') }),
  )
})

test.each([
  ['(module (memory 1 2 shared) (func (export "on_request") (result i32) (i32.const 0)))', 'shared'],
  ['(module (memory i64 1) (func (export "on_request") (result i32) (i32.const 0)))', '64-bit'],
  [
    '(module (memory 1) (func (export "on_request") (result i32) (i32.atomic.load (i32.const 0))))',
    'atomic instructions',
  ],
])('the unsupported feature of %s is reported as such', async (text, name) => {
  const { findings } = await checkModule(assemble(text))
  expect(findings).toContainEqual(
    expect.objectContaining({ code: 'unsupported_feature', message: expect.stringContaining(name) }),
  )
})

describe('OnPick', () => {
  const LOOP = `(loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 200000))))`
  const picks = (start: string, handler: string) =>
    assemble(`(module (memory 1)
      (func (export "_initialize") (local $i i32) ${start})
      (func (export "on_pick") (result i32) (local $i i32) ${handler} (i32.const 0)))`)

  test('has the fuel of a call on the data thread', async () => {
    const { findings, isOk } = await checkModule(picks('', LOOP))
    expect(isOk).toBe(false)
    const message = expect.stringContaining('its fuel of 400000 units (plugins.wasm.inline.fuel)')
    expect(findings).toContainEqual(expect.objectContaining({ code: 'too_slow', message }))
    const limits = { inline: { fuel: 10_000_000, maxBodyBytes: 0 } }
    expect((await checkModule(picks('', LOOP), { limits })).isOk).toBe(true)
  })

  test('requires a start that does not block the data thread', async () => {
    expect((await checkModule(picks(LOOP, ''))).isOk).toBe(true)
    const { findings } = await checkModule(picks(LOOP.replace('200000', '400000'), ''))
    const message = expect.stringMatching(/^the start of the module uses \d+ units of fuel; OnPick allows/)
    expect(findings).toContainEqual(expect.objectContaining({ code: 'rejected', message }))
  })
})

test(
  'a reused instance whose memory grows with every call is a problem',
  async () => {
    const bytes = await builtModule('wasm-sdk/fixtures/leaking')
    expect(await codesOf(bytes)).toEqual(['memory_grows'])
  },
  BUILD_LIMIT_MS,
)

/** A module that describes its instances, with one global counter. */
function describing(instance: string, handler: string): Uint8Array {
  const description = JSON.stringify({ abi: 1, instance })
  return assemble(`(module
    (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
    (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
    (import "extism:host/env" "output_set" (func $output (param i64 i64)))
    (global $calls (mut i32) (i32.const 0))
    (memory 1) (data (i32.const 0) ${JSON.stringify(description)})
    (func (export "describe") (result i32) (local $at i64) (local $n i32)
      (local.set $at (call $alloc (i64.const ${description.length})))
      (loop $l
        (call $store (i64.add (local.get $at) (i64.extend_i32_u (local.get $n))) (i32.load8_u (local.get $n)))
        (br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const ${description.length}))))
      (call $output (local.get $at) (i64.const ${description.length})) (i32.const 0))
    (func (export "on_request") (result i32) ${handler} (i32.const 0)))`)
}

test.each(['reuse', 'shared'])(
  'an instance kept as %s that allocates in each call is a problem',
  async (instance) => {
    const bytes = describing(instance, '(drop (memory.grow (i32.const 1)))')
    const { findings } = await checkModule(bytes)
    const message = expect.stringMatching(/does not level off: 65536 bytes per call/)
    expect(findings).toEqual([expect.objectContaining({ code: 'memory_grows', message })])
  },
)

test('an instance whose memory levels off after some hundred calls is none', async () => {
  const heap = `(if (i32.lt_u (memory.size) (i32.const 400)) (then (drop (memory.grow (i32.const 1)))))`
  expect(await codesOf(describing('reuse', heap))).toEqual([])
})

test('a warm instance whose later calls fail is a problem', async () => {
  const failing = `(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (if (i32.eq (global.get $calls) (i32.const 50)) (then unreachable))`
  expect((await checkModule(describing('reuse', failing))).findings).toMatchObject([
    { code: 'reuse_failed', message: expect.stringContaining('OnRequest: call 50 of a warm instance') },
  ])
  expect(await codesOf(describing('fresh', failing))).toEqual([])
})

describe('a real module', () => {
  let bytes: Uint8Array
  beforeAll(async () => {
    bytes = await builtModule('wasm-sdk/fixtures/echo')
  }, BUILD_LIMIT_MS)

  test('has no findings except the header that it sets for show', async () => {
    const { isOk, module, findings } = await checkModule(bytes)
    expect(isOk).toBe(true)
    expect(module.attachPoints).toEqual([
      'OnRequest',
      'OnResponse',
      'OnError',
      'OnStreamEvent',
      'OnText',
      'OnPromptText',
      'OnToolCall',
      'OnPick',
    ])
    expect(findings.map(({ code }) => code)).toEqual(['ignored'])
  })
})

test('an endless start is a problem, whether it exceeds its time or its fuel first', async () => {
  const bytes = tinyModule({ exports: ['on_request'], start: true })
  for (const timeoutMs of [100, 60_000]) {
    const report = await checkModule(bytes, { limits: { timeoutMs } })
    expect(report.isOk).toBe(false)
    expect(report.findings).toContainEqual(
      expect.objectContaining({
        level: 'problem',
        code: 'rejected',
        message: expect.stringMatching(/start/),
      }),
    )
  }
})
