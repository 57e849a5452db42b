/** Tool names as exposed to the model. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { exposeNames } from './exposed-names.ts'

test('two servers and a function with one name get three names, and the function keeps its own', () => {
  const names = exposeNames(
    ['search'],
    [
      { label: 'docs', name: 'search' },
      { label: 'web', name: 'search' },
      { label: 'web', name: 'fetch' },
    ],
  )
  expect(names).toEqual(['mcp_docs_search', 'mcp_web_search', 'fetch'])
})

test('names are sanitised, and stay different if that makes them equal', () => {
  const names = exposeNames(
    [],
    [
      { label: 'a', name: 'read file' },
      { label: 'a', name: 'read.file' },
      { label: 'a', name: 'x'.repeat(100) },
      { label: 'a', name: `${'x'.repeat(100)}y` },
      { label: null, name: 'web_search' },
    ],
  )
  expect(names[0]).toBe('mcp_a_read_file')
  expect(names[1]).toBe('mcp_a_read_file_2')
  expect(names[2]).not.toBe(names[3])
  expect(names[4]).toBe('web_search')
})

test('for any tool names, exposed names are valid, different and deterministic', () => {
  const label = fc.constantFrom('a', 'b', 'mcp_a', 'a_2')
  const tool = fc.record({
    label: fc.option(label),
    name: fc.oneof(fc.constantFrom('s', 's_2', 'mcp_a_s'), fc.string()),
  })
  fc.assert(
    fc.property(fc.array(fc.constantFrom('s', 'mcp_a_s', 's_2')), fc.array(tool), (taken, tools) => {
      const names = exposeNames(taken, tools)
      expect(names).toHaveLength(tools.length)
      expect(new Set([...taken, ...names]).size).toBe(new Set(taken).size + names.length)
      for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
      expect(exposeNames(taken, tools)).toEqual(names)
    }),
  )
})

test.each([
  ['that become equal', (i: number) => String.fromCharCode(0x4e00 + i)],
  [
    'in pairs that differ only at their ends',
    (i: number) => `${i % 2 === 0 ? '中' : '文'}${'x'.repeat(55)}${(i >> 1).toString(36).padStart(2, '0')}`,
  ],
])('many names %s are exposed with few lookups each', (_kind, nameOf) => {
  const count = 2_000
  const tools = Array.from({ length: count }, (_, i) => ({ label: 'a', name: nameOf(i) }))
  const { has } = Set.prototype
  let looks = 0
  Set.prototype.has = function (this: Set<unknown>, value: unknown) {
    looks++
    return has.call(this, value)
  }
  let names: string[]
  try {
    names = exposeNames([], tools)
  } finally {
    Set.prototype.has = has
  }
  expect(new Set(names).size).toBe(count)
  expect(looks).toBeLessThan(10 * count)
})
