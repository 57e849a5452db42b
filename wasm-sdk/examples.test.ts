/** Each example builds from its source, is a module the gateway takes, and does what its cases say. */
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { languageOf } from '../plugins/wasm/project/build.ts'
import { checkModule } from '../plugins/wasm/testing/conformance.ts'
import { readCases, runCase } from '../plugins/wasm/testing/run-cases.ts'
import { isThorough } from '../test/support/thorough.ts'
import { BUILD_LIMIT_MS, builtOrReason } from './fixtures/built-modules.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
/** What a header module costs to load; the one in Rust carries more of its language with it. */
const MAX_BYTES = 30 * 1024
const MAX_RUST_BYTES = 400 * 1024
/** Whose runtime is in the module, and imports WASI. */
const IN_GO = 'examples/wasm-go'

const projects = globSync('examples/wasm-*', { cwd: ROOT }).sort()
/** Languages whose compiler is a process that takes many seconds. */
const SLOW_LANGUAGES: readonly unknown[] = ['rust', 'go']
const isTested = (project: string) => isThorough || !SLOW_LANGUAGES.includes(languageOf(join(ROOT, project)))

/** Settings without which an example rightly refuses to run. */
const SETTINGS: Readonly<Record<string, Record<string, string>>> = {
  'examples/wasm-auth': { jwt_secret: 'tell-nobody' },
  'examples/wasm-guard-model': { model: 'guard-1' },
  'examples/wasm-moderation': { url: 'https://moderation.example.com/check' },
}

test('there are ten examples, one of them in Rust too, and one each in Go and in the text format', () => {
  expect(projects).toHaveLength(13)
})

describe.each(projects.filter(isTested))('%s', (project) => {
  const isGo = project === IN_GO
  let bytes: Uint8Array | null = null
  let reason = ''

  beforeAll(async () => {
    const built = await builtOrReason(project)
    if (typeof built === 'string') reason = built
    else bytes = built
    if (reason !== '') console.warn(`skipped: ${reason}`)
  }, BUILD_LIMIT_MS)

  test('builds from source and passes the conformance check', async ({ skip }) => {
    if (bytes === null) return skip(reason)
    const report = await checkModule(bytes, { config: SETTINGS[project], usesWasi: isGo })
    expect(report.findings.map(({ code }) => code)).toEqual(isGo ? ['large_module'] : [])
    if (isGo) return
    expect(report.module.imports.filter(({ module }) => module.startsWith('wasi'))).toEqual([])
    expect(bytes.length).toBeLessThan(project.endsWith('-rust') ? MAX_RUST_BYTES : MAX_BYTES)
  })

  test('does what its cases say', async ({ skip }) => {
    if (bytes === null) return skip(reason)
    const cases = await readCases(join(ROOT, project, 'cases'))
    expect(cases.length).toBeGreaterThan(0)
    for (const { file, moduleCase } of cases) {
      const { steps } = await runCase(moduleCase, { bytes, usesWasi: isGo })
      expect(
        steps.map(({ differences }) => differences),
        file,
      ).toEqual(steps.map(() => []))
    }
  }, 180_000)
})
