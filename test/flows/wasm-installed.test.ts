/** `weir wasm` in an installed package. By itself, as it packs the folder in which other tests build. */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeFolder, stopCommands } from '../support/built-command.ts'
import { weir } from '../support/short-command.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

afterAll(stopCommands)

let home: string
const command = () => join(home, 'node_modules/weir-gateway/dist/plugins/cli.js')
const installed = (...args: string[]) => weir(['wasm', ...args], { cwd: home, command: command() })

/** What `npm pack` puts in, beside links to what `npm install` would fetch. */
beforeAll(() => {
  home = makeFolder()
  mkdirSync(join(home, 'node_modules'))
  const packed = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', home], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [{ filename, files }] = JSON.parse(packed.toString()) as {
    filename: string
    files: { path: string }[]
  }[]
  expect(files.filter(({ path }) => /(^|\/)target\//.test(path))).toEqual([])
  execFileSync('tar', ['-xzf', filename], { cwd: home })
  cpSync(join(home, 'package'), join(home, 'node_modules/weir-gateway'), { recursive: true })
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (name === 'assemblyscript' || name === 'weir-gateway' || name.startsWith('.')) continue
    symlinkSync(join(ROOT, 'node_modules', name), join(home, 'node_modules', name))
  }
})

test('says how to get the compiler where it is missing, and builds and tests where it is there', async () => {
  expect(
    await installed('new', 'away', '--attach', 'OnRequest,OnResponse,OnError,OnStreamEvent'),
  ).toMatchObject({ code: 0, err: '' })
  const without = await installed('build', 'away')
  expect(without).toMatchObject({
    code: 1,
    err: expect.stringContaining('npm install --save-dev assemblyscript'),
  })
  symlinkSync(join(ROOT, 'node_modules/assemblyscript'), join(home, 'node_modules/assemblyscript'))
  expect(await installed('test', 'away')).toMatchObject({
    code: 0,
    out: expect.stringContaining('6 ok, 0 failed'),
  })
  expect(await installed('check', 'away/build/module.wasm')).toMatchObject({ code: 0, err: '' })
  const example = await installed('build', 'node_modules/weir-gateway/examples/wasm-errors')
  expect(example).toMatchObject({ code: 0, err: '' })
})

test('builds and tests a module in C, where the machine has a compiler for it', async ({ skip }) => {
  await installed('new', 'plain', '--lang', 'c')
  const built = await installed('build', 'plain')
  if (/a compiler is not installed/.test(built.err)) {
    console.warn('skipped: neither clang for wasm32 nor zig is installed')
    return skip('no compiler for C')
  }
  expect(built).toMatchObject({ code: 0, out: expect.stringContaining('attach points: OnRequest') })
  expect(await installed('test', 'plain')).toMatchObject({
    code: 0,
    out: expect.stringContaining('2 ok, 0 failed'),
  })
})

test('finds an assembler that npm installed in the project alone', async () => {
  await installed('new', 'text', '--lang', 'wat')
  mkdirSync(join(home, 'text/node_modules/.bin'), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules/binaryen/bin/wasm-as'), join(home, 'text/node_modules/.bin/wasm-as'))
  // Without the folders of this repository that `npm test` puts in front.
  const env = { PATH: [dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter) }
  const tested = await weir(['wasm', 'test', 'text'], { cwd: home, command: command(), env })
  expect(tested).toMatchObject({ code: 0, err: '', out: expect.stringContaining(' 0 failed') })
})

test('gives new projects in Rust a copy of the crate', async () => {
  await installed('new', 'rusty', '--lang', 'rust')
  const [, path] = readFileSync(join(home, 'rusty/Cargo.toml'), 'utf8').match(/path = "([^"]+)"/) ?? []
  expect(path).toBe('weir-sdk')
  expect(existsSync(join(home, 'rusty', path, 'Cargo.toml'))).toBe(true)
  expect(existsSync(join(home, 'rusty', path, 'src/lib.rs'))).toBe(true)
})
