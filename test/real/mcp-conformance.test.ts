/**
 * The client scenarios of the protocol's own conformance suite, against the gateway's connection to tool servers. What
 * needs a person at a browser (an authorization code) is not the gateway's: users bring their token with the request.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeFolder } from '../support/built-command.ts'

const SUITE = join(
  import.meta.dirname,
  '../parts/node_modules/@modelcontextprotocol/conformance/dist/index.js',
)
const CLIENT = join(import.meta.dirname, '../fixtures/mcp-conformance-client.mjs')

/** Runs one scenario; its results are files that the suite writes where it is told to. */
function run(scenario: string, version: string | null): Promise<{ code: number; output: string }> {
  const command = `${process.execPath} ${CLIENT}`
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [
        SUITE,
        'client',
        '--command',
        command,
        '--scenario',
        scenario,
        '--timeout',
        '60000',
        '-o',
        makeFolder(),
        ...(version === null ? [] : ['--spec-version', version]),
      ],
      { timeout: 120_000, maxBuffer: 1 << 26 },
      (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), output: stdout + stderr }),
    )
  })
}

const skip = !existsSync(SUITE)

/** By revision of the protocol. */
const scenarios = {
  '2025-11-25': ['initialize', 'tools_call', 'sse-retry', 'auth/pre-registration'],
  '2026-07-28': [
    'tools_call',
    'request-metadata',
    'sep-2322-client-request-state',
    'http-standard-headers',
    'http-custom-headers',
    'http-invalid-tool-headers',
    'json-schema-ref-no-deref',
    'json-schema-2020-12-preservation',
    'auth/pre-registration',
  ],
  extension: ['auth/client-credentials-basic', 'auth/client-credentials-jwt'],
}

for (const [version, names] of Object.entries(scenarios))
  test.skipIf(skip).each(names)(
    `${version}: %s passes whole (skipped where the suite is not installed)`,
    async (name) => {
      const at = version === 'extension' ? null : version
      let { code, output } = await run(name, at)
      // The suite wants to see the client again within half a second, whatever else the machine does.
      for (let i = 0; i < 2 && code !== 0 && name === 'sse-retry'; i++)
        ({ code, output } = await run(name, at))
      const failed = /Passed: \d+\/\d+, (\d+) failed/.exec(output)?.[1]
      expect({ code, failed }, output.slice(-2_000)).toEqual({ code: 0, failed: '0' })
    },
  )

test.skipIf(skip)(
  'a server that asks its user something is told that nobody answers here (skipped where the suite is not installed)',
  async () => {
    const { code, output } = await run('elicitation-sep1034-client-defaults', '2025-11-25')
    expect(code).toBe(1)
    expect(output).toContain('Elicitation failed: MCP error -32601')
  },
)
