/** Files on the hot path say `@hot` in their header and keep to what that promises. */
import { expect, test } from 'vitest'
import { lineOf, readSource, type Scan, scan, sourceFiles } from './source-scan.ts'

const FORBIDDEN: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['async', /\basync\b/g],
  ['await', /\bawait\b/g],
  ['spread', /\.\.\./g],
  ['new RegExp', /\bnew RegExp\b/g],
  ['JSON', /\bJSON\./g],
]

/** Functions that run once per chunk of a body; a closure made there is made a thousand times per answer. */
const PER_CHUNK =
  /(?:^|[\s#.])(onResponseData|onClientDrain|writeStream|writeChunk|feed|onReadable|takeChunk)\s*\([^)]*\)[^{;=]*\{/g

/** Lines of hot files that do not run per request or chunk: path → text of the line → why. */
const EXCEPTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'kernel/http/hooked-writer.ts': {
    "this.send(status, 'application/json', JSON.stringify(value), headers)":
      'ctx.json is for replies made here, never for relayed ones',
    'if (headers !== undefined) all.push(...headers)':
      'extra headers of replies made here; relayed ones have none',
  },
  'kernel/http/server.ts': {
    'byPath.set(path, [...(byPath.get(path) ?? []), route])': 'routes are built once, at ready',
    "const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ')":
      'routes are built once, at ready',
    'return { ...route, hooks: NO_HOOKS, auth: null, readsBody: false, paramNames: [] }':
      'routes are built once, at ready',
  },
  'plugins/access/auth/key-table.ts': {
    'constructor(...groups: (readonly ConfiguredKey[])[]) {': 'the table is built once, at register',
  },
  'plugins/protocols/chat/serve/inference-routes.ts': {
    'responses: { 200: { description, schema: reply, streams }, ...failures },':
      'documentation, built once, at register',
  },
}

interface HotFile {
  readonly file: string
  readonly text: string
  readonly scan: Scan
}

const hotFiles: readonly HotFile[] = sourceFiles(['{kernel,plugins}/**/*.ts'])
  .map((file) => ({ file, text: readSource(file) }))
  .filter(({ text }) => /^(#!.*\n)?\s*\/\*\*(?:(?!\*\/)[\s\S])*@hot\b/.test(text))
  .map(({ file, text }) => ({ file, text, scan: scan(text) }))

const lineText = (text: string, at: number) => text.split('\n')[lineOf(text, at) - 1].trim()

function findings({ file, text, scan: { code, patterns } }: HotFile): string[] {
  const found = FORBIDDEN.flatMap(([name, pattern]) =>
    [...code.matchAll(pattern)].map((match) => ({ name, at: match.index })),
  )
  const regexes = patterns.map((at) => ({ name: 'regular expression', at }))
  return [...found, ...regexes]
    .filter(({ at }) => EXCEPTIONS[file]?.[lineText(text, at)] === undefined)
    .map(({ name, at }) => `${file}:${lineOf(text, at)} ${name}: ${lineText(text, at)}`)
}

/** From behind an opening brace to its closing one. */
function bodyFrom(code: string, start: number): string {
  let depth = 1
  let at = start
  for (; at < code.length && depth > 0; at++) depth += code[at] === '{' ? 1 : code[at] === '}' ? -1 : 0
  return code.slice(start, at)
}

test('the relay, the server and the balancer are marked as hot', () => {
  const names = hotFiles.map(({ file }) => file)
  expect(names).toEqual(
    expect.arrayContaining([
      'kernel/upstream/relay.ts',
      'kernel/http/server.ts',
      'kernel/http/context.ts',
      'kernel/balance/pick.ts',
    ]),
  )
})

test('hot files hold no async, spread, regular expression or JSON', () => {
  expect(hotFiles.flatMap(findings)).toEqual([])
})

test('the list of exceptions holds nothing that is no longer there', () => {
  const gone = Object.entries(EXCEPTIONS).flatMap(([file, lines]) => {
    const present = new Set(
      readSource(file)
        .split('\n')
        .map((line) => line.trim()),
    )
    return Object.keys(lines).filter((line) => !present.has(line))
  })
  expect(gone).toEqual([])
})

test('hot files make no closure per chunk', () => {
  const found = hotFiles.flatMap(({ file, text, scan: { code } }) =>
    [...code.matchAll(PER_CHUNK)].flatMap((match) => {
      const start = match.index + match[0].length
      // The arrow of a type assertion makes nothing.
      const body = bodyFrom(code, start).replaceAll(/\bas \([^)]*\) =>/g, (text) => ' '.repeat(text.length))
      const closure = body.search(/=>|\bfunction\b/)
      return closure < 0
        ? []
        : [`${file}:${lineOf(text, start + closure)} in ${match[1]}: ${lineText(text, start + closure)}`]
    }),
  )
  expect(found).toEqual([])
})
