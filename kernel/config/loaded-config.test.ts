import { describe, expect, test } from 'vitest'
import { configDigests, type LoadedConfig } from './loaded-config.ts'

const KEY = Buffer.from('key')
const digests = (kernel: object, plugins: object, key = KEY) =>
  configDigests({ kernel, plugins } as unknown as LoadedConfig, key)

describe('digests of a configuration', () => {
  test('one per section, the same for any order of members', () => {
    const a = digests(
      { threads: 2, log: { level: 'info', file: 'x' } },
      { chat: {}, limits: { rate: [1, 2] } },
    )
    const b = digests(
      { log: { file: 'x', level: 'info' }, threads: 2 },
      { limits: { rate: [1, 2] }, chat: {} },
    )
    expect(a).toEqual(b)
    expect(Object.keys(a).sort()).toEqual(['chat', 'kernel', 'limits'])
  })

  test('a change shows in its section only', () => {
    const a = digests({ threads: 2 }, { limits: { rate: [1, 2] }, chat: {} })
    const b = digests({ threads: 2 }, { limits: { rate: [2, 1] }, chat: {} })
    expect(a.limits).not.toBe(b.limits)
    expect([a.chat, a.kernel]).toEqual([b.chat, b.kernel])
  })

  test('a list and an object of its places differ', () => {
    expect(digests({}, { a: { x: ['p'] } }).a).not.toBe(digests({}, { a: { x: { 0: 'p' } } }).a)
    expect(digests({}, { a: { x: { p: 1 } } }).a).not.toBe(digests({}, { a: { x: [['p', 1]] } }).a)
  })

  test('what each gateway has of its own does not count', () => {
    const a = digests({ host: '10.0.0.1', port: 1 }, { mesh: { name: 'gw-1', address: null, mesh: 'prod' } })
    const b = digests({ host: '10.0.0.2', port: 2 }, { mesh: { name: 'gw-2', address: 'x:1', mesh: 'prod' } })
    expect(a).toEqual(b)
  })

  test('another key gives other digests', () => {
    expect(digests({}, { auth: { apiKey: 'k' } })).not.toEqual(
      digests({}, { auth: { apiKey: 'k' } }, Buffer.from('other')),
    )
  })
})
