/**
 * Runs the guides of modules and plugins and the tutorial of modules from the packed package: every command, in order, in an
 * empty folder with the package; the output must contain what the document shows.
 */
import { execFile, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RunningCommand, stopCommands } from '../support/built-command.ts'
import { readSteps, runSteps, type Step, toPattern } from '../support/document-steps.ts'
import { freePort } from '../support/free-port.ts'
import { packGateway, userEnv, userFolder } from '../support/packed-gateway.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Installs, compilers and gateways are slow on a loaded machine. */
const LIMIT_MS = 900_000

/** Chapters of a language, with the probe of its compiler. */
const COMPILERS: Readonly<Record<string, readonly string[]>> = {
  Rust: ['cargo --version', 'rustc --print target-libdir --target wasm32-unknown-unknown | xargs ls'],
  Go: ['go version'],
  C: ['clang --target=wasm32 --version || zig version || python-zig version'],
}

let folder: ReturnType<typeof userFolder>

/** The first of the compilers of a chapter that is not installed, as its probe. */
async function missingFor(chapter: string): Promise<string | undefined> {
  for (const probe of COMPILERS[chapter] ?? []) {
    const found = await run('bash', ['-c', probe], { env: userEnv }).then(
      () => true,
      () => false,
    )
    if (!found) return probe
  }
}

async function runDocument(file: string): Promise<void> {
  const steps: Step[] = []
  for (const step of readSteps(readFileSync(join(ROOT, file), 'utf8'))) {
    const missing = await missingFor(step.chapter)
    if (missing === undefined) steps.push(step)
    else console.warn(`${file}: ${step.chapter} is skipped: \`${missing}\` failed`)
  }
  const [api, metrics, engine] = [await freePort(), await freePort(), await freePort()]
  const { code, outputs, seconds, rest } = await runSteps(steps, folder.path, {
    ...userEnv,
    WEIR_PORT: String(api),
    WEIR_METRICS_PORT: String(metrics),
    WEIR_GATEWAY: `http://127.0.0.1:${api}`,
    SIM_PORT: String(engine),
  })
  for (const [at, { chapter, commands, shown }] of steps.entries()) {
    const output = outputs[at] ?? ''
    for (const line of shown) expect(output, `${chapter}\n${commands}`).toMatch(toPattern(line))
  }
  const times = new Map<string, number>()
  for (const [at, { chapter }] of steps.entries())
    times.set(chapter, (times.get(chapter) ?? 0) + (seconds[at] ?? 0))
  for (const [chapter, time] of times) console.info(`${file}: ${String(time).padStart(4)} s  ${chapter}`)
  // A gateway of the document logs its end.
  expect({ code, rest: rest.replace(/^\{"level":"info".*\n/gm, '') }).toEqual({ code: 0, rest: '' })
}

describe('every command prints what the document shows', () => {
  beforeEach(async () => {
    folder = userFolder()
    await packGateway(folder.path)
  }, LIMIT_MS)
  afterEach(() => folder.remove(), LIMIT_MS)

  test.each(['docs/guide/plugins.md', 'docs/guide/wasm.md', 'wasm-sdk/README.md'])(
    '%s',
    { timeout: LIMIT_MS },
    (file) => runDocument(file),
  )
})

test('npm pack in a clone writes what is built, and nothing older', { timeout: LIMIT_MS }, async () => {
  const clone = userFolder()
  try {
    await run('git', ['clone', '-q', ROOT, clone.path])
    mkdirSync(join(clone.path, 'dist'))
    writeFileSync(join(clone.path, 'dist/moved.js'), '')
    await run('npm', ['pack'], { cwd: clone.path, env: userEnv, maxBuffer: 16 << 20 })
    const { stdout } = await run('tar', ['-tzf', 'weir-gateway-0.1.0.tgz'], { cwd: clone.path })
    expect(stdout).toContain('package/dist/plugins/cli.js\n')
    expect(stdout).not.toContain('moved.js')
  } finally {
    clone.remove()
  }
})

describe('projects', () => {
  const inFolder = (command: string, ...args: string[]) =>
    run(command, args, { cwd: folder.path, env: userEnv, maxBuffer: 16 << 20 })
  beforeAll(async () => {
    folder = userFolder()
    await packGateway(folder.path)
    writeFileSync(join(folder.path, 'package.json'), '{ "private": true }')
    await inFolder(
      'npm',
      'install',
      '--no-audit',
      '--no-fund',
      './weir-gateway-0.1.0.tgz',
      'assemblyscript@0.28',
    )
  }, LIMIT_MS)
  afterAll(async () => {
    await stopCommands()
    folder.remove()
  }, LIMIT_MS)

  test('a module and a plugin work on another machine after npm ci', { timeout: LIMIT_MS }, async () => {
    await inFolder('npx', 'weir', 'wasm', 'new', 'gate')
    await inFolder('npx', 'weir', 'plugin', 'new', 'greeting')
    const other = userFolder()
    try {
      // Neither has the folder above: the gateway and the compiler come from their own package-lock.json.
      cpSync(join(folder.path, 'weir-gateway-0.1.0.tgz'), join(other.path, 'weir-gateway-0.1.0.tgz'))
      for (const name of ['gate', 'greeting']) {
        const project = join(folder.path, name)
        await run('npm', ['install', '--package-lock-only', '--no-audit', '--no-fund'], {
          cwd: project,
          env: userEnv,
        })
        expect(existsSync(join(project, 'node_modules'))).toBe(false)
        cpSync(project, join(other.path, name), { recursive: true })
        const there = { cwd: join(other.path, name), env: userEnv, maxBuffer: 16 << 20 }
        await run('npm', ['ci', '--no-audit', '--no-fund'], there).catch((error: Error) => {
          // A mirror without the packages of other platforms gives a lock file that `npm ci` rejects.
          if (!/Missing: @uwsjs\/.* from lock file/.test(error.message)) throw error
          console.warn(`${name} is installed without npm ci: the registry lacks packages of other platforms`)
          return run('npm', ['install', '--no-audit', '--no-fund'], there)
        })
        const { stdout } = await run('npm', ['test'], there)
        expect(stdout).toMatch(/2 ok, 0 failed|# pass 2/)
      }
    } finally {
      other.remove()
    }
  })

  test('every example of a module becomes a project that passes its cases', {
    timeout: LIMIT_MS,
  }, async () => {
    const examples = readdirSync(join(folder.path, 'node_modules/weir-gateway/examples')).filter((name) =>
      name.startsWith('wasm-'),
    )
    expect(examples.length).toBeGreaterThan(10)
    for (const name of examples) {
      if (
        (name.endsWith('-rust') && (await missingFor('Rust')) !== undefined) ||
        (name.endsWith('-go') && (await missingFor('Go')) !== undefined)
      )
        continue
      await inFolder('npx', 'weir', 'wasm', 'new', `my-${name}`, '--example', name)
      const wasi = name.endsWith('-go') ? ['--wasi'] : []
      const { stdout } = await inFolder('npx', 'weir', 'wasm', 'test', `my-${name}`, ...wasi)
      expect(stdout, name).toContain(', 0 failed')
    }
  })

  test('serve --watch takes a changed plugin, and keeps the running one if the change has an error', {
    timeout: LIMIT_MS,
  }, async () => {
    await inFolder('npx', 'weir', 'plugin', 'new', 'watched')
    const port = await freePort()
    const flags = [
      '--config',
      'watched/weir.yaml',
      '--port',
      String(port),
      '--metrics-port',
      String(await freePort()),
    ]
    const command = new RunningCommand(
      spawn('node_modules/.bin/weir', ['serve', '--watch', ...flags], {
        cwd: folder.path,
        env: userEnv,
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    )
    await command.line(/watching \d+ folders/)
    const file = join(folder.path, 'watched/plugin.ts')
    const source = readFileSync(file, 'utf8')
    const greeting = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/watched`).catch(() => null)
      return response === null ? null : await response.json()
    }
    expect(await greeting()).toEqual({ text: 'good morning' })

    writeFileSync(file, source.replace('{ text: config.text })', "{ text: config.text + '!' })"))
    await command.line(/watched\/plugin\.ts changed: restarted in \d+ ms/)
    expect(await greeting()).toEqual({ text: 'good morning!' })

    writeFileSync(file, `${source}\noops(`)
    await command.line(/watched\/plugin\.ts not taken, the earlier version keeps running/)
    expect(await greeting()).toEqual({ text: 'good morning!' })

    writeFileSync(file, source)
    await expect.poll(greeting).toEqual({ text: 'good morning' })
  })
})
