/** Error tables: codes are unique and well formed. */
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { definedErrors } from '../../kernel/errors/define-errors.ts'
import { ROOT, readSource, scan, sourceFiles } from './source-scan.ts'

beforeAll(async () => {
  const tables = sourceFiles(['{kernel,plugins}/**/*.ts']).filter(
    (file) =>
      file !== 'kernel/errors/define-errors.ts' && /\bdefineErrors\(/.test(scan(readSource(file)).code),
  )
  for (const file of tables) await import(join(ROOT, file))
})

test('error tables exist', () => {
  expect(new Set(definedErrors.map(({ module }) => module)).size).toBeGreaterThan(5)
})

test('a code is unique in its module', () => {
  const seen = new Set<string>()
  const twice = definedErrors
    .map(({ module, code }) => `${module}: ${code}`)
    .filter((row) => seen.size === seen.add(row).size)
  expect(twice).toEqual([])
})

test('a code has the same kind in every module', () => {
  const kinds = Map.groupBy(definedErrors, ({ code }) => code)
  const mixed = [...kinds]
    .filter(([, rows]) => new Set(rows.map(({ kind }) => kind)).size > 1)
    .map(([code]) => code)
  expect(mixed).toEqual([])
})

test('codes are snake_case', () => {
  expect(
    definedErrors.map(({ code }) => code).filter((code) => !/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(code)),
  ).toEqual([])
})
