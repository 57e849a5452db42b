/** Links between documents point to existing files and headings. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './source-scan.ts'

const LINK = /\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g

const documents = globSync(['*.md', '{docs,examples,plugins,wasm-sdk}/**/*.md'], {
  cwd: ROOT,
  exclude: (name) => /(^|\/)(node_modules|target)(\/|$)/.test(name),
})
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

/** Anchors as GitHub derives them from headings. */
function anchorsOf(file: string): readonly string[] {
  return [...read(file).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\- ]/gu, '')
      .replaceAll(' ', '-'),
  )
}

function isBroken(from: string, path: string, anchor: string | undefined): boolean {
  const target = path === '' ? from : normalize(join(dirname(from), path))
  return !existsSync(join(ROOT, target)) || (anchor !== undefined && !anchorsOf(target).includes(anchor))
}

test('links point to existing files and headings', () => {
  expect(documents.length).toBeGreaterThan(50)
  const broken = documents.flatMap((file) =>
    [...read(file).matchAll(LINK)]
      .filter(([, path, anchor]) => isBroken(file, path, anchor))
      .map(([link]) => `${file} ${link}`),
  )
  expect(broken).toEqual([])
})
