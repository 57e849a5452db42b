/** The npm package as users have it: packed, in an empty folder, run with `npx weir`. `test/real` installs it with npm. */
import { execFile, spawn } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RunningCommand, readyGateway, stopCommands, until } from '../support/built-command.ts'
import { freePort } from '../support/free-port.ts'
import { type PackedGateway, packGateway, unpackGateway, userEnv } from '../support/packed-gateway.ts'
import { weir } from '../support/short-command.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'weir-package-'))
const env = userEnv
const inFolder = { cwd: folder, env }

const command = join(folder, 'node_modules/weir-gateway/dist/plugins/cli.js')
const wasm = (...args: string[]) => weir(['wasm', ...args], { cwd: folder, command })

let packed: PackedGateway

beforeAll(async () => {
  packed = await packGateway(folder)
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  await unpackGateway(folder, packed)
})

afterAll(async () => {
  await stopCommands()
  await rm(folder, { recursive: true, force: true })
})

test('the package is built before it is packed, and contains no tests, benchmarks or build caches', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  expect(scripts.prepack).toContain('build')
  const paths = packed.files.map(({ path }) => path)
  expect(paths).toContain('dist/plugins/cli.js')
  expect(paths).toContain('README.md')
  expect(paths.filter((path) => /\.test\.|dist\/\.|^test\/|^bench\/|(^|\/)target\//.test(path))).toEqual([])
})

test('npx weir --help and --version', async () => {
  const help = await run('npx', ['--no-install', 'weir', '--help'], inFolder)
  expect(help.stdout).toContain('Usage: weir')
  const version = await run('npx', ['--no-install', 'weir', '--version'], inFolder)
  expect(version.stdout.trim()).toBe(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version)
})

test('examples of plugins that are copied out of the package pass their tests', async () => {
  for (const name of ['response-cache', 'external-auth']) {
    cpSync(join(folder, 'node_modules/weir-gateway/examples', name), join(folder, name), { recursive: true })
    // As `npm init` writes it, without a type of modules.
    const { stdout } = await run('node', ['--test', `${name}/test.ts`], inFolder)
    expect(stdout).toMatch(/^# fail 0$|^ℹ fail 0$/m)
  }
})

test('weir serve relays a chat to the simulated engine, and a plugin in the folder imports the package by name', async () => {
  copyFileSync(join(ROOT, 'examples/custom-plugin/visit-counter.ts'), join(folder, 'visit-counter.ts'))
  const port = await freePort()
  const plugins = {
    auth: { apiKey: 'a-key' },
    health: {},
    'http-workers': {},
    policies: {},
    chat: {},
    sim: { listen: { port }, models: ['demo'] },
    workers: { urls: [`http://127.0.0.1:${port}`] },
    'visit-counter': { $path: './visit-counter.ts', greeting: 'Welcome' },
  }
  writeFileSync(join(folder, 'weir.json'), JSON.stringify({ kernel: { warmUp: false }, plugins }))
  const flags = ['--config', 'weir.json', '--port', '0', '--metrics-port', '0', '--threads', '1']
  const child = spawn('node_modules/.bin/weir', ['serve', ...flags], {
    ...inFolder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const gateway = await readyGateway(new RunningCommand(child))
  await until(async () => (await gateway.get('/readiness')).status === 200)

  const body = JSON.stringify({
    model: 'demo',
    max_tokens: 4,
    messages: [{ role: 'user', content: 'Hello' }],
  })
  const headers = ['-H', 'authorization: Bearer a-key', '-H', 'content-type: application/json']
  const chat = await run('curl', ['-sSf', ...headers, '-d', body, `${gateway.url}/v1/chat/completions`])
  expect(JSON.parse(chat.stdout)).toMatchObject({ object: 'chat.completion', model: 'demo' })

  const visits = await gateway.get('/visits/ada')
  expect(await visits.json()).toEqual({
    message: expect.stringMatching(/^Welcome, ada: \d+ requests so far$/),
  })
})

test('docs/guide/plugins.md: the plugins and the template of a plugin type-check with the types of the package', async () => {
  const page = readFileSync(join(ROOT, 'docs/guide/plugins.md'), 'utf8')
  const files = [...page.matchAll(/^`([\w.-]+\.ts)`[^\n]*:\n\n```\w+\n(.*?)^```$/gms)]
  expect(files.length).toBe(4)
  const place = join(folder, 'page')
  cpSync(join(folder, 'node_modules/weir-gateway/plugins/cli/plugin-template'), place, { recursive: true })
  symlinkSync(join(folder, 'node_modules'), join(place, 'node_modules'))
  writeFileSync(join(place, 'package.json'), '{ "private": true, "type": "module" }')
  for (const [, name, text] of files) writeFileSync(join(place, name), text)
  const tsc = join(ROOT, 'node_modules/.bin/tsc')
  const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--skipLibCheck']
  const node = ['--typeRoots', join(ROOT, 'node_modules/@types'), '--types', 'node']
  const sources = ['plugin.ts', 'test.ts', ...files.map(([, name]) => name)]
  await run(tsc, ['--ignoreConfig', ...flags, '--allowImportingTsExtensions', ...node, ...sources], {
    cwd: place,
    env,
  })
})

test('examples with custom plugins start and type-check in a folder with the package', async () => {
  const examples = [
    'custom-plugin',
    'custom-frontend',
    'custom-engine',
    'external-auth',
    'gemini-engine',
    'latency-policy',
    'ollama-front',
    'response-cache',
    'semantic-cache',
  ]
  for (const name of examples) {
    cpSync(join(folder, 'node_modules/weir-gateway/examples', name), join(folder, name), { recursive: true })
    const check = ['config', 'check', `${name}/weir.yaml`]
    await run('node_modules/.bin/weir', check, { cwd: folder, env: { ...env, GEMINI_API_KEY: 'key' } })
  }
  const plugins = examples.flatMap((name) =>
    readdirSync(join(folder, name))
      .filter((file) => file.endsWith('.ts') && file !== 'test.ts')
      .map((file) => join(name, file)),
  )
  expect(plugins.length).toBeGreaterThanOrEqual(examples.length)
  const tsc = join(ROOT, 'node_modules/.bin/tsc')
  const strict = ['--noEmit', '--strict', '--allowImportingTsExtensions', '--skipLibCheck']
  const flags = [...strict, '--module', 'nodenext', '--target', 'es2024']
  const node = ['--typeRoots', join(ROOT, 'node_modules/@types'), '--types', 'node']
  await run(tsc, ['--ignoreConfig', ...flags, ...node, ...plugins], inFolder)
})

test('examples, templates and documents import and install this package', async () => {
  const texts = packed.files
    .filter(({ path }) => /\.(md|ts|mjs|js)$/.test(path) && !path.startsWith('dist/kernel/'))
    .map(({ path }) => readFileSync(join(folder, 'node_modules/weir-gateway', path), 'utf8'))
  const all = (pattern: RegExp) => [
    ...new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([, found]) => found))),
  ]
  // The compiler of AssemblyScript reads the sources below node_modules, whatever the package exports.
  const isGuest = (name: string) => /\/wasm-sdk\/assembly(\/|$)/.test(name)
  const imported = all(/(?:from|import) ['"](weir(?:[-/][^'"]*)?)['"]/g)
  expect(imported.sort()).toEqual(['weir-gateway', 'weir-gateway/testing', 'weir-gateway/wasm-sdk/assembly'])
  for (const name of imported.filter(isGuest))
    expect(existsSync(join(folder, 'node_modules', name, 'index.ts'))).toBe(true)
  const loaded = imported.filter((name) => !isGuest(name))
  const script = `await Promise.all(${JSON.stringify(loaded)}.map((name) => import(name)))`
  await run(process.execPath, ['--input-type=module', '--eval', script], inFolder)
  expect(all(/npm install (?:--\S+ )*(\S*weir[^\s`]*)/g)).toEqual([`./${packed.filename}`])
})

test('an unsupported Node version is reported in one line', async () => {
  const pretend = `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'20.20.2'})`
  const end = run(process.execPath, ['--import', pretend, command, 'serve'], inFolder)
  await expect(end).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^weir: Node 22, from 22\.12 on, is needed; this is Node 20\.20\.2 .*\n$/),
  })
})

test('weir wasm build names the missing compiler, and builds once it is installed', async () => {
  const points = 'OnRequest,OnResponse,OnError,OnStreamEvent'
  expect(await wasm('new', 'away', '--attach', points)).toMatchObject({ code: 0, err: '' })
  expect(await wasm('build', 'away')).toMatchObject({
    code: 1,
    err: expect.stringContaining('npm install --save-dev assemblyscript'),
  })
  symlinkSync(join(ROOT, 'node_modules/assemblyscript'), join(folder, 'node_modules/assemblyscript'))
  expect(await wasm('test', 'away')).toMatchObject({
    code: 0,
    out: expect.stringContaining('6 ok, 0 failed'),
  })
  expect(await wasm('check', 'away/build/module.wasm')).toMatchObject({ code: 0, err: '' })
  const example = await wasm('build', 'node_modules/weir-gateway/examples/wasm-errors')
  expect(example).toMatchObject({ code: 0, err: '' })
})

test('weir wasm builds and tests a module in C if the machine has a compiler', async ({ skip }) => {
  await wasm('new', 'plain', '--lang', 'c')
  const built = await wasm('build', 'plain')
  if (/a compiler is not installed/.test(built.err)) {
    console.warn('skipped: neither clang for wasm32 nor zig is installed')
    return skip('no compiler for C')
  }
  expect(built).toMatchObject({ code: 0, out: expect.stringContaining('attach points: OnRequest') })
  expect(await wasm('test', 'plain')).toMatchObject({
    code: 0,
    out: expect.stringContaining('2 ok, 0 failed'),
  })
})

test('weir wasm uses an assembler that is installed in the project only', async () => {
  await wasm('new', 'text', '--lang', 'wat')
  mkdirSync(join(folder, 'text/node_modules/.bin'), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules/binaryen/bin/wasm-as'), join(folder, 'text/node_modules/.bin/wasm-as'))
  // Without the folders that `npm test` adds.
  const PATH = [dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter)
  const tested = await weir(['wasm', 'test', 'text'], { cwd: folder, command, env: { PATH } })
  expect(tested).toMatchObject({ code: 0, err: '', out: expect.stringContaining(' 0 failed') })
})

test('weir wasm new --lang rust copies the crate into the project', async () => {
  await wasm('new', 'rusty', '--lang', 'rust')
  const [, path] = readFileSync(join(folder, 'rusty/Cargo.toml'), 'utf8').match(/path = "([^"]+)"/) ?? []
  expect(path).toBe('weir-sdk')
  expect(existsSync(join(folder, 'rusty', path, 'Cargo.toml'))).toBe(true)
  expect(existsSync(join(folder, 'rusty', path, 'src/lib.rs'))).toBe(true)
})
