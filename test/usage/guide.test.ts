/** Every configuration in README.md and the guide passes `weir config check`. */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { makeFolder, runCommand, stopCommands } from '../support/built-command.ts'
import { TestAuthority } from '../support/certificates.ts'

const authority = new TestAuthority()
const { certFile, keyFile } = authority.issue('gateway')
const KEYS = {
  WEIR_API_KEY: 'key',
  ACME_CI_KEY: 'ci-key',
  WEIR_OPERATOR_KEY: 'id:name:admin:key',
  WEIR_RESPONSES_KEY: 'k'.repeat(32),
  OPENAI_API_KEY: 'key',
  SEARCH_TOKEN: 'token',
  REGISTRY_TOKEN: 'token',
  VALKEY_URL: 'redis://127.0.0.1:6379',
  WEIR_MESH_SECRET: 'm'.repeat(16),
}

const configurations = ['README.md', ...globSync('docs/guide/*.md')].flatMap((file) =>
  [...readFileSync(file, 'utf8').matchAll(/^```yaml\n(.*?)^```$/gms)]
    .map(([, text]) => text)
    .filter((text) => /^(kernel|plugins):/m.test(text))
    .map((text, index) => ({ file, index, text })),
)

afterEach(stopCommands)
afterAll(() => authority.remove())

test('the documents contain configurations', () => expect(configurations.length).toBeGreaterThan(12))

test.each(configurations)('$file, configuration $index', async ({ text }) => {
  const file = join(makeFolder(), 'weir.yaml')
  const existing = text
    .replace('/etc/weir/tls.crt', certFile)
    .replace('/etc/weir/tls.key', keyFile)
    .replace('/run/secrets/acme', certFile)
    // Only its existence is checked.
    .replace('/opt/weir/modules/team-gate.wasm', certFile)
  writeFileSync(file, existing)
  const end = await runCommand(['config', 'check', file], KEYS).ended
  expect(end).toMatchObject({ code: 0, stdout: expect.stringContaining('is valid') })
})
