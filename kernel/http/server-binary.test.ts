import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { createLogger } from '../observe/log.ts'
import { serverLibrary } from './server-app.ts'
import { checkServerBinary } from './server-binary.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-binary-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = join(folder, 'uws.node')
const CONTENT = 'a build of our own'
const sha256 = hash('sha256', CONTENT)
beforeEach(() => writeFileSync(path, CONTENT))

const warnings: object[] = []
const log = {
  ...createLogger({ level: 'silent', thread: 0 }),
  warn: (fields: object) => void warnings.push(fields),
}
const check = (more: { expected?: string; path?: string | null; platform?: string }) =>
  checkServerBinary({ expected: undefined, log, ...more })

test('the checked binary is the loaded one, with a known digest on the platform of the lock file', () => {
  expect(serverLibrary.App).toBeDefined()
  expect(() => check({ expected: 'none' })).toThrow(/uws[^/]*\.node has SHA-256 [0-9a-f]{64}, expected none/)
  check({})
  const pinned = process.platform === 'linux' && process.arch === 'x64'
  expect(warnings.splice(0)).toHaveLength(pinned ? 0 : 1)
})

test.runIf(process.platform === 'linux')('the found file is the one that this process has mapped', () => {
  const [mapped] =
    /\S+\.node$/m.exec(readFileSync('/proc/self/maps', 'latin1').replace(/^(?!.*uws).*$/gm, '')) ?? []
  expect(() => check({ expected: 'none' })).toThrow(`binary ${mapped} has`)
})

test('another binary is rejected on a known platform, unless its digest is configured', () => {
  expect(() => check({ path, platform: 'linux-x64-127' })).toThrow(
    expect.objectContaining({
      name: 'BootError',
      message: expect.stringContaining(`${path} has SHA-256 ${sha256}, expected f687e7c3`),
    }),
  )
  check({ path, platform: 'linux-x64-127', expected: sha256 })
})

test('an unknown digest is logged, and a configured one still applies', () => {
  check({ path, platform: 'plan9-x64-127' })
  expect(warnings.splice(0)).toEqual([{ path, platform: 'plan9-x64-127', sha256 }])
  const expected = '0'.repeat(64)
  expect(() => check({ path, platform: 'plan9-x64-127', expected })).toThrow(`expected ${expected}`)
})

test('a missing binary is left to the loader', () => {
  check({ path: null })
  expect(warnings).toEqual([])
})
