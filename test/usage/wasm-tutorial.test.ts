/**
 * Runs the tutorial of modules as written: every shell command of `wasm-sdk/README.md` in order, in one shell, in an
 * empty folder; the output must contain what the tutorial shows.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { buildModule } from '../../plugins/wasm/project/build.ts'
import { newProject } from '../../plugins/wasm/project/new-project.ts'
import { reasonToSkip } from '../../wasm-sdk/fixtures/built-modules.ts'
import { makeFolder, stopCommands } from '../support/built-command.ts'
import { freePort } from '../support/free-port.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const TUTORIAL = new URL('../../wasm-sdk/README.md', import.meta.url)
/** Compilers and a gateway are slow on a loaded machine. */
const LIMIT_MS = 600_000
const RUST_CHAPTER = /rust/i

interface Step {
  /** Heading above the step. */
  readonly chapter: string
  readonly commands: string
  /** Lines that the output must contain; `…` matches anything. */
  readonly shown: readonly string[]
}

const steps = readSteps(readFileSync(TUTORIAL, 'utf8'))

afterEach(stopCommands)

test('every chapter with steps has commands', () => {
  const chapters = new Set(steps.map(({ chapter }) => chapter))
  expect([...chapters].map((chapter) => chapter.slice(0, 2))).toEqual([
    '1.',
    '3.',
    '4.',
    '5.',
    '6.',
    '7.',
    '8.',
  ])
  expect(steps.filter(({ shown }) => shown.length > 0).length).toBeGreaterThan(10)
})

test('every command of the tutorial prints what the tutorial shows', { timeout: LIMIT_MS }, async () => {
  const reason = await reasonAgainstRust()
  if (reason !== null) console.warn(`the chapter on Rust is skipped: ${reason}`)
  const runnable = steps.filter(({ chapter }) => reason === null || !RUST_CHAPTER.test(chapter))
  const { code, outputs, rest } = await runShell(runnable)
  for (const [at, { chapter, commands, shown }] of runnable.entries()) {
    const output = outputs[at] ?? ''
    for (const line of shown) expect(output, `${chapter}\n${commands}`).toMatch(toPattern(line))
  }
  expect({ code, rest }).toEqual({ code: 0, rest: '' })
})

function readSteps(markdown: string): Step[] {
  const found: { chapter: string; commands: string; shown: string[] }[] = []
  let chapter = ''
  for (const [, heading, language, block] of markdown.matchAll(/^## (.+)$|^```(\w+)\n([\s\S]*?)^```$/gm)) {
    if (heading !== undefined) chapter = heading
    else if (language === 'sh') found.push({ chapter, commands: block, shown: [] })
    else if (language === 'text') found.at(-1)?.shown.push(...block.split('\n').filter((line) => line !== ''))
  }
  return found
}

/** Null if this machine can build the Rust template; otherwise the reason. */
async function reasonAgainstRust(): Promise<string | null> {
  const directory = `${makeFolder()}/probe`
  await newProject({ directory, name: 'probe', language: 'rust' })
  const built = await buildModule({ directory })
  return built.isOk ? null : reasonToSkip(built)
}

/** Runs all steps in one bash, which stops at the first failing command; background jobs are killed. */
async function runShell(runnable: readonly Step[]) {
  const mark = '=== step done ==='
  const script = [
    'set -eu',
    `trap 'kill $(jobs -p) 2> /dev/null || true; cat gateway.log 2> /dev/null || true' EXIT`,
    ...runnable.flatMap(({ commands }) => [commands, `printf '\\n%s\\n' '${mark}'`]),
    'trap - EXIT',
  ].join('\n')
  const [api, metrics, engine] = [await freePort(), await freePort(), await freePort()]
  const child = spawn('bash', ['-c', `exec 2>&1\n${script}`], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      HOME: process.env.HOME ?? '',
      TMPDIR: makeFolder(),
      WEIR_PORT: String(api),
      WEIR_METRICS_PORT: String(metrics),
      SIM_PORT: String(engine),
      CARGO_TARGET_DIR: process.env.CARGO_TARGET_DIR ?? '',
    },
  })
  const exit = once(child, 'exit')
  const parts = (await text(child.stdout)).split(`\n${mark}\n`)
  const [code] = (await exit) as [number | null]
  return { code, outputs: parts, rest: parts.at(-1) ?? '' }
}

function toPattern(line: string): RegExp {
  const parts = line.trim().split(/\s*…\s*/)
  const escaped = parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  // Column widths of a table depend on its content.
  return new RegExp(escaped.map((part) => part.replaceAll(/ {2,}/g, ' +')).join('.*'))
}
