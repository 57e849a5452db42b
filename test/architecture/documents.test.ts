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

test('the commands of CONTRIBUTING.md name scripts, files and scenarios that exist', () => {
  const commands = [...read('CONTRIBUTING.md').matchAll(/```sh\n(.*?)```/gs)].flatMap(([, block]) =>
    block.split('\n').map((line) => line.replace(/ +#.*$/, '').trim()),
  )
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const isKnown = (command: string) => {
    const [program, verb, name, ...rest] = command.split(' ')
    if (program === 'npx') return verb === 'vitest' && existsSync(join(ROOT, rest[0] ?? name))
    if (program !== 'npm') return false
    if (verb === 'ci' || scripts[verb] !== undefined) return true
    if (verb !== 'run' || scripts[name] === undefined) return false
    const [, scenario] = rest
    return name !== 'bench' || scenario === undefined || read('bench/scenarios/catalog.ts').includes(scenario)
  }
  expect(commands.filter((command) => command !== '').length).toBeGreaterThan(6)
  expect(commands.filter((command) => command !== '' && !isKnown(command))).toEqual([])
})
