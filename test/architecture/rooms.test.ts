/** The README's table of rooms is what the imports say. */
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { expect, test } from 'vitest'
import { importsOf, ROOT, readSource, sourceFiles } from './source-scan.ts'

const ROW = /^\| `([a-z]+)` \| .+ \| ([a-z, ]*) ?\|$/

function documented(): Map<string, string> {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const table = readme.slice(readme.indexOf('<!-- rooms -->'), readme.indexOf('<!-- /rooms -->'))
  return new Map(
    table.split('\n').flatMap((line) => {
      const row = ROW.exec(line)
      return row === null ? [] : [[row[1], row[2].trim()] as const]
    }),
  )
}

function imported(): Map<string, string> {
  const rooms = new Map<string, Set<string>>()
  for (const file of sourceFiles(['kernel/*/**/*.ts'])) {
    if (file.includes('/fixtures/')) continue
    const [, room] = file.split('/')
    const stands = rooms.get(room) ?? new Set()
    rooms.set(room, stands)
    for (const { specifier } of importsOf(readSource(file))) {
      if (!specifier.startsWith('.')) continue
      const [, other, ...rest] = posix.join(posix.dirname(file), specifier).split('/')
      if (rest.length > 0 && other !== room) stands.add(other)
    }
  }
  return new Map([...rooms].map(([room, stands]) => [room, [...stands].sort().join(', ')]))
}

test('the README names every room of the kernel and what it stands on', () => {
  expect(new Map([...documented()].sort())).toEqual(new Map([...imported()].sort()))
})

test('the README tells the way of a streamed chat in at most 12 steps, over files that exist', () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const way = readme.slice(
    readme.indexOf('The way of one streamed chat'),
    readme.indexOf('The main thread is control'),
  )
  expect(way.match(/^\d+\. /gm)?.length).toBeLessThanOrEqual(12)
  const named = [...way.matchAll(/`((?:plugins\/)?[a-z-]+\/[a-z/-]+(?:\.ts)?)`/g)].map(([, path]) =>
    path.startsWith('plugins/') ? path : `kernel/${path}`,
  )
  const files = sourceFiles(['{kernel,plugins}/**/*.ts'])
  expect(named.filter((path) => !files.some((file) => file === path || file.startsWith(`${path}/`)))).toEqual(
    [],
  )
  expect(named.length).toBeGreaterThan(8)
})
