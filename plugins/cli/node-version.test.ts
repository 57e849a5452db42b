import { execFile } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { unsuitableNode } from './node-version.ts'

test('an unsupported Node version is reported in one line, with the required one', () => {
  for (const version of ['18.20.8', '20.20.2', '22.11.0', '23.0.0', '24.1.0']) {
    expect(unsuitableNode(version)).toMatch(
      new RegExp(`^weir: Node 22, from 22\\.12 on, is needed; this is Node ${version} \\(.*\\)$`),
    )
  }
  for (const version of ['22.12.0', '22.23.3']) expect(unsuitableNode(version)).toBeNull()
})

test('the check requires the version of package.json', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
  expect(engines.node).toBe('>=22.12 <23')
})

test('npm prints no engine warning in a clone, on any Node', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-npm-'))
  try {
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "engines": { "node": ">=99" } }')
    copyFileSync('.npmrc', join(folder, '.npmrc'))
    const { stderr } = await promisify(execFile)('npm', ['install', '--offline'], { cwd: folder })
    expect(stderr).toBe('')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
