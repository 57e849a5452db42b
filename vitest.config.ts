/** Test projects: unit tests beside the code, and the suites under test/ that use real sockets and threads. */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** What is waited for comes within it also on a machine that is slow and busy; by itself it is one second. */
const expectation = { poll: { timeout: 15_000 } }

// Threads and commands that tests start compile nothing that was compiled before. Not the users' own folder.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('./node_modules/.cache/weir-tests', import.meta.url))

// Nor do they take the types out of what they load, if that was done before.
const preload = new URL('./test/support/strip-types-once.js', import.meta.url)
process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --import=${preload.href}`.trim()

const source = {
  // Examples know the gateway by its name, as packages of others do.
  resolve: {
    conditions: ['weir-source'],
    alias: [
      { find: /^weir-gateway$/, replacement: fileURLToPath(new URL('./plugins/public.ts', import.meta.url)) },
    ],
  },
  ssr: { resolve: { conditions: ['weir-source'] } },
}

export default defineConfig({
  test: {
    // Most of the time is spent waiting, also on a machine with two cores.
    maxWorkers: 2,
    projects: [
      {
        ...source,
        test: {
          name: 'unit',
          expect: expectation,
          // Property tests take their time on a busy machine.
          testTimeout: 180_000,
          hookTimeout: 180_000,
          include: [
            'kernel/**/*.test.ts',
            'plugins/**/*.test.ts',
            'proto/**/*.test.ts',
            'wasm-sdk/**/*.test.ts',
            'bench/**/*.test.ts',
          ],
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
          include: ['test/api/**/*.test.ts'],
          pool: 'forks',
          expect: expectation,
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          // Large counterparties that nobody here wrote, installed apart; `npm run test:real`.
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
          // The built command as people and their clients use it; nothing here counts on how fast things are.
          name: 'usage',
          include: ['test/usage/**/*.test.ts'],
          pool: 'forks',
          expect: expectation,
          testTimeout: 600_000,
          hookTimeout: 600_000,
        },
      },
      {
        test: {
          name: 'flows',
          include: ['test/flows/**/*.test.ts'],
          // Whole gateways of several threads under load and faults, so one file at a time, after the others.
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
