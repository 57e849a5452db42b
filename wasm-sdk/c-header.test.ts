/** The header for C, where the machine has a compiler for it: clang, or zig with a clang inside. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { buildModule } from '../plugins/wasm/project/build.ts'
import { toInput } from '../plugins/wasm/testing/case-input.ts'
import { checkOutput } from '../plugins/wasm/testing/checked-output.ts'
import { checkModule } from '../plugins/wasm/testing/conformance.ts'
import { ModuleRunner } from '../plugins/wasm/testing/runner.ts'
import { BUILD_LIMIT_MS, reasonToSkip } from './fixtures/built-modules.ts'

const run = promisify(execFile)
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const COMPILERS = [
  ['clang', '--target=wasm32'],
  ['zig', 'cc', '--target=wasm32-freestanding'],
  ['python-zig', 'cc', '--target=wasm32-freestanding'],
] as const

/** Null when no compiler of this machine builds it; throws what a compiler says that knows the target. */
async function compile(outFile: string): Promise<Uint8Array | null> {
  const rest = ['-O2', '-nostdlib', '-Wall', '-Werror', '-I', here('c'), '-Wl,--no-entry', '-o', outFile]
  for (const [command, ...target] of COMPILERS) {
    try {
      await run(command, [...target, ...rest, here('fixtures/echo-c/module.c')])
      return Uint8Array.from(await readFile(outFile))
    } catch (cause) {
      const { code, stderr = '' } = cause as { code?: unknown; stderr?: string }
      if (code !== 'ENOENT' && !/unable to create target|wasm-ld|unknown target/.test(stderr)) throw cause
    }
  }
  return null
}

test(
  'a module in C gives back text as it came and passes the check',
  async ({ skip }) => {
    const folder = await mkdtemp(join(tmpdir(), 'weir-c-'))
    try {
      const bytes = await compile(join(folder, 'module.wasm'))
      if (bytes === null) {
        console.warn('skipped: neither clang for wasm32 nor zig is installed')
        return skip('no compiler for C')
      }
      expect((await checkModule(bytes)).findings).toEqual([])
      const runner = await ModuleRunner.open({ bytes, config: { grüße: 'Zürich 😀' } })
      const { head } = toInput({ on: 'OnRequest', expect: {} }, {}, 0)
      for (const body of ['', 'ü', '日本', '😀 Größe', 'x'.repeat(1_000)]) {
        const { output, logs } = await runner.call('OnRequest', head, Buffer.from(body))
        const answer = checkOutput(output, 'OnRequest')
        expect([answer.body?.toString(), answer.headers_set]).toEqual([body, [['x-name', '日本']]])
        expect(logs).toEqual([{ level: 'info', text: 'Zürich 😀' }])
      }
      const call = (args: unknown) =>
        toInput({ on: 'OnToolCall', tool: { arguments: args }, expect: {} }, {}, 0)
      for (const [args, action, text] of [
        [{}, 'reject', 'größe'],
        [{ q: '日本' }, 'modify', '{"q":"日本"}'],
      ] as const) {
        const { head, body } = call(args)
        const answer = checkOutput((await runner.call('OnToolCall', head, body)).output, 'OnToolCall')
        expect([answer.action, answer.body?.toString()]).toEqual([action, text])
      }
      await runner.close()
    } finally {
      await rm(folder, { recursive: true })
    }
  },
  BUILD_LIMIT_MS,
)

test(
  'the module on the page about C builds, passes the check, and refuses whom it says',
  async ({ skip }) => {
    const [, source] = (await readFile(here('c/README.md'), 'utf8')).match(/^```c\n([\s\S]*?)^```$/m) ?? []
    const directory = await mkdtemp(join(tmpdir(), 'weir-c-page-'))
    try {
      await writeFile(join(directory, 'module.c'), source ?? '')
      const built = await buildModule({ directory })
      if (!built.isOk) {
        const reason = reasonToSkip(built)
        if (reason === null) throw new Error(built.output)
        console.warn(`skipped: ${reason}`)
        return skip(reason)
      }
      const bytes = Uint8Array.from(await readFile(built.file))
      expect((await checkModule(bytes)).findings).toEqual([])
      const runner = await ModuleRunner.open({ bytes, config: { closed: 'bis später' } })
      const { head } = toInput({ on: 'OnRequest', expect: {} }, {}, 0)
      const { output } = await runner.call('OnRequest', head)
      const { action, status, body } = checkOutput(output, 'OnRequest')
      expect([action, status, body?.toString()]).toEqual(['reject', 503, 'bis später'])
      await runner.close()
    } finally {
      await rm(directory, { recursive: true })
    }
  },
  BUILD_LIMIT_MS,
)
