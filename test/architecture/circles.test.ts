/** No import cycles: files of a cycle can only be understood and changed together. */
import { posix } from 'node:path'
import { expect, test } from 'vitest'
import { importsOf, readSource, sourceFiles } from './source-scan.ts'

const files = sourceFiles(['{kernel,plugins,wasm-sdk}/**/*.ts'])
const imports = new Map(
  files.map((file) => [
    file,
    importsOf(readSource(file))
      .map(({ specifier }) => posix.join(posix.dirname(file), specifier))
      .filter((to) => files.includes(to)),
  ]),
)

function reach(from: string): Set<string> {
  const seen = new Set<string>()
  const open = [from]
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    for (const to of imports.get(file) ?? []) {
      if (!seen.has(to)) open.push(to)
      seen.add(to)
    }
  }
  return seen
}

const reached = new Map(files.map((file) => [file, reach(file)]))
const circles = new Set(
  files
    .filter((file) => reached.get(file)?.has(file))
    .map((file) =>
      files.filter((other) => reached.get(file)?.has(other) && reached.get(other)?.has(file)).join(', '),
    ),
)

test('no files import each other in a cycle', () => {
  expect([...circles]).toEqual([])
})
