/** Tool filters and approval rules. */
import { expect, test } from 'vitest'
import type { ListedTool } from '#kernel'
import { isAllowed, needsApproval } from './open-server.ts'

const tool = (name: string, readOnlyHint?: boolean): ListedTool => ({
  name,
  description: null,
  inputSchema: { type: 'object' },
  annotations: readOnlyHint === undefined ? null : { readOnlyHint },
})

test('a list of names allows these, an empty list none, no list all', () => {
  expect(isAllowed(tool('a'), { toolNames: ['a'] })).toBe(true)
  expect(isAllowed(tool('b'), { toolNames: ['a'] })).toBe(false)
  expect(isAllowed(tool('a'), { toolNames: [] })).toBe(false)
  expect(isAllowed(tool('a'), {})).toBe(true)
  expect(isAllowed(tool('a'), undefined)).toBe(true)
})

test('read_only keeps tools with the read-only hint', () => {
  expect(isAllowed(tool('a', true), { isReadOnly: true })).toBe(true)
  expect(isAllowed(tool('a', false), { isReadOnly: true })).toBe(false)
  expect(isAllowed(tool('a'), { isReadOnly: true })).toBe(false)
  expect(isAllowed(tool('a', true), { isReadOnly: true, toolNames: ['b'] })).toBe(false)
})

test('approval: always, never, by name, by hint; tools without a matching rule need approval', () => {
  expect(needsApproval(tool('a'), 'always', 'never')).toBe(true)
  expect(needsApproval(tool('a'), 'never', 'always')).toBe(false)
  expect(needsApproval(tool('a'), undefined, 'never')).toBe(false)
  expect(needsApproval(tool('a'), undefined, 'always')).toBe(true)
  const rule = { always: { toolNames: ['w'] }, never: { toolNames: ['r', 'w'] } }
  expect(needsApproval(tool('r'), rule, 'never')).toBe(false)
  expect(needsApproval(tool('w'), rule, 'never')).toBe(false)
  expect(needsApproval(tool('x'), rule, 'never')).toBe(true)
  expect(needsApproval(tool('x', true), { never: { isReadOnly: true } }, 'never')).toBe(false)
  expect(needsApproval(tool('x'), { never: {} }, 'never')).toBe(true)
})

test('the cost for long lists of names and tools is linear', () => {
  const toolNames = Array.from({ length: 200_000 }, (_, i) => `t${i}`)
  const tools = toolNames.slice(-50_000).map((name) => tool(name))
  const before = process.cpuUsage()
  expect(tools.every((tool) => isAllowed(tool, { toolNames }))).toBe(true)
  const { user, system } = process.cpuUsage(before)
  // Usually some tens of milliseconds; quadratic work would take half a minute.
  expect((user + system) / 1_000).toBeLessThan(8_000)
}, 300_000)
