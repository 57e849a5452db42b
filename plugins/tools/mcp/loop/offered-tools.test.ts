/** Tools of a turn by the names that tool choices use. */
import { expect, test } from 'vitest'
import type { ToolReference } from '#kernel'
import type { OpenServer } from '../tools/open-server.ts'
import { OfferedTools, offerFor } from './offered-tools.ts'

const server = (label: string, builtIn: object | null = null) =>
  ({ plan: { label, builtIn, config: null, request: null, isHidden: false } }) as unknown as OpenServer
const tool = (name: string) => ({ name, description: null, inputSchema: {}, annotations: null })
const functions = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ type: 'function' as const, function: { name: `f${i}` } }))

test('a choice can name functions, tools of one server or of any, and built-in ones', () => {
  const offered = new OfferedTools(
    functions(1),
    [
      { server: server('Docs'), tools: [tool('read'), tool('find')] },
      { server: server('web'), tools: [tool('find')] },
      { server: server('own', { config: { type: 'web_search' } }), tools: [tool('find')] },
    ],
    'never',
  )
  const references: readonly (readonly [ToolReference, string[]])[] = [
    [{ kind: 'function', name: 'f0' }, ['f0']],
    [{ kind: 'function', name: 'read' }, []],
    [{ kind: 'mcp', label: 'docs' }, ['read', 'mcp_Docs_find']],
    [{ kind: 'mcp', label: 'WEB', name: 'find' }, ['mcp_web_find']],
    [{ kind: 'mcp', label: 'web', name: 'read' }, []],
    [{ kind: 'mcp', label: null, name: 'find' }, ['mcp_Docs_find', 'mcp_web_find']],
    [{ kind: 'mcp', label: 'own' }, []],
    [{ kind: 'built_in', type: 'web_search' }, ['web_search']],
    [{ kind: 'built_in', type: 'file_search' }, []],
  ]
  for (const [reference, names] of references) expect(offered.namesOf(reference)).toEqual(names)
})

test('the cost of many allowed functions is linear', () => {
  const all = functions(60_000)
  const tools = all.map((one) => ({ kind: 'function' as const, name: one.function.name }))
  const before = process.cpuUsage()
  const { only } = offerFor(
    { mode: 'allowed', tools, isRequired: false },
    new OfferedTools(all, [], 'never'),
    0,
  )
  const { user, system } = process.cpuUsage(before)
  expect(only?.size).toBe(all.length)
  // Usually some tens of milliseconds; quadratic work would take many seconds.
  expect((user + system) / 1_000).toBeLessThan(4_000)
}, 300_000)
