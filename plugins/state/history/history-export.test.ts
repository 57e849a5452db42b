import { expect, test } from 'vitest'
import { makeRecord, openHistory } from '../../../test/contract/history-contract.ts'
import { MemoryStore } from '../../../test/support/memory-store.ts'
import { exportHistory, importHistory } from './history-export.ts'

async function linesOf(store: MemoryStore): Promise<string[]> {
  const lines: string[] = []
  for await (const line of exportHistory(store)) lines.push(line)
  return lines
}

async function exported(): Promise<string[]> {
  const store = new MemoryStore()
  const { responses, events } = openHistory(store)
  for (const tenant of ['a', 'b']) {
    await responses.finish(tenant, makeRecord({ in: 'tänk \u0000 🌍\u2028', out: 'a' }))
    await events.append(tenant, 'resp_1', 0, ['data: {}\n\n'])
  }
  return await linesOf(store)
}

async function* given(lines: readonly string[]): AsyncGenerator<string> {
  for (const line of lines) yield line.trimEnd()
}

test('every line is one JSON text, and an import restores everything, expiry included', async () => {
  const lines = await exported()
  for (const line of lines) expect(line.indexOf('\n')).toBe(line.length - 1)
  const store = new MemoryStore()
  expect(await importHistory(store, given(lines))).toBe(lines.length - 2)
  expect(await linesOf(store)).toEqual(lines)
  expect(lines.join('')).toContain('expiresAtMs')
})

test.each<[string, (lines: string[]) => string[], string]>([
  ['no header', (lines) => lines.slice(1), 'line 1'],
  ['another header', (lines) => lines.with(0, '{"weir":"history","version":2}'), 'line 1'],
  ['no end', (lines) => lines.slice(0, -1), 'the trailer is missing'],
  ['a record too few', (lines) => lines.toSpliced(2, 1), 'records, the file has'],
  ['something after the end', (lines) => [...lines, lines[1]], 'after the trailer'],
  ['half a line', (lines) => lines.with(2, lines[2].slice(0, 9)), 'line 3'],
  [
    'another collection',
    (lines) => lines.with(1, '{"collection":"workers","tenant":"a","id":"x","value":1}'),
    'line 2',
  ],
  ['a list', (lines) => lines.with(1, '[]'), 'line 2'],
  ['nothing', () => [], 'the trailer is missing'],
])('a file with %s is refused', async (_, change, problem) => {
  const changed = change(await exported())
  await expect(importHistory(new MemoryStore(), given(changed))).rejects.toMatchObject({
    code: 'invalid_history_file',
    message: expect.stringContaining(problem),
  })
})
