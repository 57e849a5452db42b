import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Type } from '#kernel'
import { checkSection } from './check-section.ts'

const schema = Type.Object({
  port: Type.Integer({ minimum: 0, maximum: 65535, default: 80 }),
  level: Type.Union([Type.Literal('info'), Type.Literal('warn')], { default: 'info' }),
  limits: Type.Object(
    { rate: Type.Optional(Type.Number()), burst: Type.Integer({ default: 1 }) },
    { default: {} },
  ),
  urls: Type.Array(Type.String(), { default: [] }),
  labels: Type.Record(Type.String(), Type.String(), { default: {} }),
  token: Type.Optional(Type.Union([Type.String({ secret: true }), Type.Null()])),
  keys: Type.Array(Type.String(), { default: [], secret: true }),
})

function check(section: Record<string, unknown>) {
  return checkSection(schema, section, ['plugins', 'demo']).findings.map(({ path, text, got }) => ({
    at: path.slice(2).join('.'),
    text,
    ...(got === undefined ? {} : { got }),
  }))
}

describe('checkSection', () => {
  test('names what replaces a removed key, and no inherited property does', () => {
    const renamed = Type.Object({ headMs: Type.Integer() }, { replacedKeys: { firstByteMs: 'headMs' } })
    const { findings } = checkSection(renamed, { firstByteMs: 1, toString: 2, headMs: 3 }, ['kernel'])
    expect(findings.map(({ text }) => text)).toEqual([
      'was removed; use headMs',
      expect.stringMatching(/^is not known/),
    ])
  })

  test('fills every default and does not modify its input', () => {
    const given = { limits: {} }
    const { value, findings } = checkSection(schema, given, [])
    expect(findings).toEqual([])
    expect(value).toEqual({ port: 80, level: 'info', limits: { burst: 1 }, urls: [], labels: {}, keys: [] })
    expect(given).toEqual({ limits: {} })
  })

  test('reports every error at once, unknown keys and wrong values', () => {
    const found = check({
      prot: 1,
      port: 'x',
      level: 'loud',
      limits: { brust: 2, rate: true },
      urls: ['a', 7],
    })
    expect(found).toEqual([
      { at: 'prot', text: 'is not known; did you mean plugins.demo.port?' },
      { at: 'limits.brust', text: 'is not known; did you mean plugins.demo.limits.burst?' },
      { at: 'port', text: 'must be an integer', got: '"x"' },
      { at: 'level', text: 'must be one of "info", "warn"', got: '"loud"' },
      { at: 'limits.rate', text: 'must be a number', got: 'true' },
      { at: 'urls.1', text: 'must be a string', got: '7' },
    ])
  })

  test('names missing required keys', () => {
    const { findings } = checkSection(Type.Object({ dir: Type.String() }), {}, ['plugins', 'storage'])
    expect(findings).toEqual([{ path: ['plugins', 'storage', 'dir'], text: 'is required' }])
  })

  test('lists the known keys if none is similar, and reports if there are none', () => {
    expect(check({ zzzzzzzz: 1 })[0].text).toMatch(/^is not known; known here: port, level, /)
    const { findings } = checkSection(Type.Object({}), { any: 1 }, [])
    expect(findings[0].text).toBe('is not known; there are no settings here')
  })

  test('never prints a wrong secret', () => {
    const found = check({ token: { hunter2: 'hunter2' }, keys: ['fine', { hunter2: 1 }] })
    expect(found.map(({ at }) => at)).toContain('keys.1')
    expect(JSON.stringify(found.map(({ at: _, ...shown }) => shown))).not.toContain('hunter2')
  })

  test('accepts any key of a record but checks its values', () => {
    expect(check({ labels: { zone: 'a', 'x-y.z': 'b' } })).toEqual([])
    expect(check({ labels: { zone: 3 } })).toEqual([
      { at: 'labels.zone', text: 'must be a string', got: '3' },
    ])
  })

  test('checks unions of objects and accepts the keys of each branch', () => {
    const union = Type.Object({
      store: Type.Union([
        Type.Object({ dir: Type.String() }, { additionalProperties: false }),
        Type.Object({ url: Type.String() }, { additionalProperties: false }),
      ]),
    })
    expect(checkSection(union, { store: { url: 'x' } }, []).findings).toEqual([])
    expect(checkSection(union, { store: { ulr: 'x' } }, []).findings[0].text).toContain(
      'did you mean store.url?',
    )
    expect(checkSection(union, { store: 3 }, []).findings).toHaveLength(1)
  })

  test('for any JSON there is no exception, and without findings every known key has its type', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (section) => {
        const { value, findings } = checkSection(schema, section as Record<string, unknown>, [])
        if (findings.length > 0) return
        expect(Number.isInteger(value.port)).toBe(true)
        expect(Array.isArray(value.urls)).toBe(true)
      }),
    )
  })

  test('each unknown key is found once, at its own path, however deep', () => {
    const unknownKey = fc.string({ minLength: 1 }).map((key) => `?${key}`)
    fc.assert(
      fc.property(fc.uniqueArray(unknownKey), fc.uniqueArray(unknownKey), (outer, inner) => {
        const limits = Object.fromEntries(inner.map((key) => [key, 1]))
        const section = { ...Object.fromEntries(outer.map((key) => [key, 1])), limits }
        const paths = checkSection(schema, section, []).findings.map(({ path }) => JSON.stringify(path))
        const wanted = [...outer.map((key) => [key]), ...inner.map((key) => ['limits', key])]
        expect(paths.sort()).toEqual(wanted.map((path) => JSON.stringify(path)).sort())
      }),
    )
  })
})
