/** Test projects: unit tests beside the code, and the suites under test/ that use real sockets and threads. */
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** The default of one second is too short for a busy machine. */
const expectation = { poll: { timeout: 15_000 } }

// Threads and commands of tests share a compile cache inside the repository.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('./node_modules/.cache/weir-tests', import.meta.url))

// They also share a cache of sources without types.
const preload = new URL('./test/support/strip-types-once.js', import.meta.url)
process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --import=${preload.href}`.trim()

const source = {
  // Examples import the gateway by its package name.
  resolve: {
    conditions: ['weir-source'],
    alias: [
      {
        find: /^weir-gateway\/testing$/,
        replacement: fileURLToPath(new URL('./plugins/testing.ts', import.meta.url)),
      },
      { find: /^weir-gateway$/, replacement: fileURLToPath(new URL('./plugins/public.ts', import.meta.url)) },
    ],
  },
  ssr: { resolve: { conditions: ['weir-source'] } },
}

/** Flows that measure seconds or less, or load the whole machine: they run one by one, after everything else. */
const FLOWS_ALONE = [
  'chaos',
  'faults',
  'mesh-membership',
  'mesh-routing',
  'mesh-serving',
  'mesh-signals',
  'mesh-writes',
  'shared-limits',
  'wasm-versions-load',
].map((name) => `test/flows/${name}.test.ts`)

const UNIT_TESTS = ['kernel', 'plugins', 'proto', 'wasm-sdk', 'bench'].map((root) => `${root}/**/*.test.ts`)
const API_TESTS = ['test/api/**/*.test.ts']

/** Tests with fake timers, and tests of their process, such as its memory: what other files have left in it would disturb them. */
const needsOwnProcess = (file: string) =>
  /useFakeTimers|memoryUsage|readdirSync\('\/proc\/self\/fd|errorsPage/.test(readFileSync(file, 'utf8'))
const ISOLATED_UNIT_TESTS = globSync(UNIT_TESTS).filter(needsOwnProcess)
const ISOLATED_API_TESTS = globSync(API_TESTS).filter(needsOwnProcess)

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      {
        ...source,
        test: {
          name: 'unit',
          // Importing the modules once per worker halves the time of these many small files; none depends on a fresh module.
          isolate: false,
          expect: expectation,
          // Property tests are slow on a busy machine.
          testTimeout: 180_000,
          hookTimeout: 180_000,
          include: UNIT_TESTS,
          exclude: ISOLATED_UNIT_TESTS,
        },
      },
      {
        ...source,
        test: {
          name: 'unit-isolated',
          include: ISOLATED_UNIT_TESTS,
          expect: expectation,
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
      {
        ...source,
        test: {
          name: 'architecture',
          include: ['test/architecture/**/*.test.ts'],
          expect: expectation,
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
      {
        ...source,
        test: {
          name: 'contract',
          include: ['test/contract/**/*.test.ts'],
          expect: expectation,
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
      {
        ...source,
        test: {
          name: 'api',
          // Importing the gateway and compiling its schemas once per process is a fifth of the whole.
          isolate: false,
          include: API_TESTS,
          exclude: ISOLATED_API_TESTS,
          pool: 'forks',
          expect: expectation,
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
      {
        ...source,
        test: {
          name: 'api-isolated',
          include: ISOLATED_API_TESTS,
          pool: 'forks',
          expect: expectation,
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          // Third-party clients and engines that are installed separately; `npm run test:real`.
          name: 'real',
          include: ['test/real/**/*.test.ts'],
          pool: 'forks',
          expect: expectation,
          testTimeout: 600_000,
          hookTimeout: 600_000,
        },
      },
      {
        test: {
          // The built command with real clients; no test depends on speed.
          name: 'usage',
          include: ['test/usage/**/*.test.ts', 'test/flows/**/*.test.ts'],
          exclude: FLOWS_ALONE,
          pool: 'forks',
          expect: expectation,
          testTimeout: 600_000,
          hookTimeout: 600_000,
        },
      },
      {
        test: {
          name: 'flows',
          include: FLOWS_ALONE,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
          pool: 'forks',
          expect: expectation,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
})
