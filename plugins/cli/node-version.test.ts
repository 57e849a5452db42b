import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { nodeTooOld } from './node-version.ts'

test('an older Node is named in one line, with what is needed', () => {
  for (const version of ['18.20.8', '20.20.2', '22.11.0']) {
    expect(nodeTooOld(version)).toMatch(
      new RegExp(`^weir: Node 22\\.12 or newer is needed, this is Node ${version} \\(.*\\)$`),
    )
  }
  for (const version of ['22.12.0', '22.23.3', '23.0.0', '24.1.0']) expect(nodeTooOld(version)).toBeNull()
})

test('the guard asks for what package.json asks for', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
  const needed = engines.node.replace('>=', '')
  expect(nodeTooOld(`${needed}.0`)).toBeNull()
  expect(nodeTooOld(`22.${Number(needed.split('.')[1]) - 1}.0`)).not.toBeNull()
})
