/** Test projects: unit tests beside the code, and the suites under test/ that use real sockets and threads. */
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** For a busy machine: the default of an expectation that polls is one second. */
const patient = (limitMs: number) => ({
  expect: { poll: { timeout: 60_000 } },
  testTimeout: limitMs,
  hookTimeout: limitMs,
})

// Threads and commands of tests share a compile cache inside the repository.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('./node_modules/.cache/weir-tests', import.meta.url))

// They also share a cache of sources without types.
const preload = new URL('./test/support/strip-types-once.js', import.meta.url)
process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --import=${preload.href}`.trim()

/** Node itself imports the sources: what Vite makes of an import is slower wherever it is used, fivefold in tight loops. */
const source = {
  experimental: { viteModuleRunner: false, nodeLoader: false },
  execArgv: ['--conditions=weir-source'],
}

/** Flows with a thousand requests at once, and with limits per second that are to be used up: they run after everything else. */
const LOAD_FLOWS = ['chaos', 'shared-limits'].map((name) => `test/flows/${name}.test.ts`)

const UNIT_TESTS = ['kernel', 'plugins', 'proto', 'wasm-sdk', 'bench'].map((root) => `${root}/**/*.test.ts`)
/** They compile a module for each example and language; `real-unit` runs them. */
const COMPILING_TESTS = ['examples', 'new-project'].map((name) => `wasm-sdk/${name}.test.ts`)
const CONTRACT_TESTS = ['test/contract/**/*.test.ts']
const API_TESTS = ['test/api/**/*.test.ts']

/** Tests with fake timers, and tests of their process, such as its memory: what other files have left in it would disturb them. */
const needsOwnProcess = (file: string) =>
  /useFakeTimers|memoryUsage|readdirSync\('\/proc\/self\/fd|errorsPage/.test(readFileSync(file, 'utf8'))
const ISOLATED_UNIT_TESTS = globSync([...UNIT_TESTS, ...CONTRACT_TESTS]).filter(needsOwnProcess)
const ISOLATED_API_TESTS = globSync(API_TESTS).filter(needsOwnProcess)
const USAGE_TESTS = ['usage', 'flows'].map((folder) => `test/${folder}/**/*.test.ts`)
const THOROUGH_TESTS = globSync([...UNIT_TESTS, ...API_TESTS, ...USAGE_TESTS]).filter((file) =>
  readFileSync(file, 'utf8').includes('support/thorough.ts'),
)

/** Files of `test/real` that import sources. */
const REAL_SOURCES = ['chat-templates', 'token-ids'].map((name) => `test/real/${name}.test.ts`)

export default defineConfig({
  test: {
    // More than the cores of a small machine, because tests wait for timeouts, processes and sockets for half of their time.
    maxWorkers: 4,
    projects: [
      {
        test: {
          ...source,
          ...patient(180_000),
          name: 'unit',
          // Importing the modules once per worker halves the time of these many small files; none depends on a fresh module.
          isolate: false,
          include: UNIT_TESTS,
          exclude: [...ISOLATED_UNIT_TESTS, ...COMPILING_TESTS],
        },
      },
      {
        test: { ...source, ...patient(180_000), name: 'unit-isolated', include: ISOLATED_UNIT_TESTS },
      },
      {
        test: {
          ...source,
          ...patient(180_000),
          name: 'architecture',
          include: ['test/architecture/**/*.test.ts'],
        },
      },
      {
        test: {
          ...source,
          ...patient(180_000),
          name: 'contract',
          isolate: false,
          include: CONTRACT_TESTS,
          exclude: ISOLATED_UNIT_TESTS,
        },
      },
      {
        test: {
          ...source,
          ...patient(180_000),
          name: 'api',
          // Importing the gateway and compiling its schemas once per process is a fifth of the whole.
          isolate: false,
          include: API_TESTS,
          exclude: ISOLATED_API_TESTS,
          pool: 'forks',
        },
      },
      {
        test: {
          ...source,
          ...patient(180_000),
          name: 'api-isolated',
          include: ISOLATED_API_TESTS,
          pool: 'forks',
        },
      },
      {
        test: {
          ...patient(600_000),
          // Third-party clients and engines that are installed separately; `npm run test:real`.
          name: 'real',
          include: ['test/real/**/*.test.ts'],
          exclude: REAL_SOURCES,
          pool: 'forks',
        },
      },
      {
        test: {
          ...source,
          ...patient(600_000),
          // Files of other projects with all their variants, and those of `real` that import sources.
          name: 'real-unit',
          include: [...THOROUGH_TESTS, ...REAL_SOURCES],
          env: { WEIR_TEST_THOROUGH: '1' },
        },
      },
      {
        test: {
          ...source,
          ...patient(600_000),
          // The built command with real clients; no test depends on speed.
          name: 'usage',
          include: USAGE_TESTS,
          exclude: LOAD_FLOWS,
          pool: 'forks',
        },
      },
      {
        test: {
          ...patient(300_000),
          name: 'flows',
          include: LOAD_FLOWS,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
          pool: 'forks',
        },
      },
    ],
  },
})
