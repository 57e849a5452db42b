import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { SavedConfigs } from './file-source.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-saved-'))
const dir = join(folder, 'history')
const open = () => new SavedConfigs(dir, '/etc/weir/weir.yaml')

afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('the last ten different configurations are kept, newest first, for the owner only', () => {
  const saved = open()
  expect(saved.list('')).toEqual([])
  for (let count = 1; count <= 12; count++) {
    saved.add(`text: ${count}`, count * 1000)
    saved.add(`text: ${count}`, count * 1000 + 1)
  }
  writeFileSync(join(dir, 'notes.txt'), 'not a copy')
  const list = open().list('text: 5')
  expect(list.map(({ appliedAtMs }) => appliedAtMs / 1000)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3])
  expect(list.flatMap(({ isRunning }, index) => (isRunning ? index : []))).toEqual([7])
  expect(readFileSync(list[0].path, 'utf8')).toBe('text: 12')
  expect(list[0].path).toMatch(/1970-01-01T00-00-12\.000Z\.yaml$/)
  expect(readdirSync(dir)).toHaveLength(11)
  expect([dir, list[0].path].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o600])
})
