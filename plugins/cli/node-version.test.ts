import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { unsuitableNode } from './node-version.ts'

test('another Node is named in one line, with what is needed', () => {
  for (const version of ['18.20.8', '20.20.2', '22.11.0', '23.0.0', '24.1.0']) {
    expect(unsuitableNode(version)).toMatch(
      new RegExp(`^weir: Node 22, from 22\\.12 on, is needed; this is Node ${version} \\(.*\\)$`),
    )
  }
  for (const version of ['22.12.0', '22.23.3']) expect(unsuitableNode(version)).toBeNull()
})

test('the guard asks for what package.json asks for', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
  expect(engines.node).toBe('>=22.12 <23')
})
