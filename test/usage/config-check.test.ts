/** `weir config check` reports what would stop the start, with its position, and warns about the rest. */

import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { makeFolder, runCommand, stopCommands } from '../support/built-command.ts'
import { TestAuthority } from '../support/certificates.ts'

const authority = new TestAuthority()

afterEach(stopCommands)
afterAll(() => authority.remove())

async function check(text: string, more: Record<string, string> = {}) {
  const folder = makeFolder()
  for (const [name, content] of Object.entries(more)) writeFileSync(join(folder, name), content)
  const file = join(folder, 'weir.yaml')
  writeFileSync(file, text)
  const { code, stdout, stderr } = await runCommand(['config', 'check', file]).ended
  expect(stderr).not.toMatch(/\n\s+at /)
  return {
    code,
    stdout,
    problems: stderr
      .replaceAll(`${file}:`, '')
      .split('\n')
      .map((line) => line.trim()),
  }
}

test('every file that the start needs, in one run', async () => {
  const { code, problems } = await check(`kernel:
  caFile: /nowhere/ca.pem
  tls: { certFile: /nowhere/tls.crt, keyFile: /nowhere/tls.key }
plugins:
  auth: {}
  kubernetes:
    selector: { app: vllm }
    kubeconfig: /nowhere/kubeconfig
  wasm:
    modules:
      - name: a
        file_path: /nowhere/a.wasm
        module_type: Middleware
        attach_points: [{ Middleware: OnRequest }]
`)
  expect(code).toBe(2)
  expect(problems).toEqual([
    'weir: the configuration has 5 problems',
    '2:3: kernel.caFile cannot be read (ENOENT): /nowhere/ca.pem',
    '3:10: kernel.tls.certFile cannot be read (ENOENT): /nowhere/tls.crt',
    '3:38: kernel.tls.keyFile cannot be read (ENOENT): /nowhere/tls.key',
    '8:5: plugins.kubernetes.kubeconfig cannot be read (ENOENT): /nowhere/kubeconfig',
    '12:9: plugins.wasm.modules.0.file_path cannot be read (ENOENT): /nowhere/a.wasm',
    '',
  ])
})

test('what a plugin checks itself is reported beside other problems, and ports in use with them', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const { code, problems } = await check(`kernel: { port: 99999 }
plugins:
  auth: { apiKey: \${APIKEY}, tenantKeys: ["shared:x"] }
  health: { probe: { port: ${port} } }
  limits: { tenants: { overrides: [{ tenant: foo }] }, queueSize: many, burts: 1 }
`)
  server.close()
  expect(code).toBe(2)
  expect(problems.map((line) => line.split(' ').slice(0, 4).join(' '))).toEqual([
    'weir: warning: 4:22: plugins.health.probe.port',
    'weir: the configuration has',
    '1:11: kernel.port must be',
    '3:11: plugins.auth.apiKey is not',
    '3:43: plugins.auth.tenantKeys.0 is reserved:',
    '5:73: plugins.limits.burts is not',
    '5:56: plugins.limits.queueSize must be',
    '5:38: plugins.limits.tenants.overrides.0.tenant must be',
    '',
  ])
})

test('a certificate with the key of another one', async () => {
  const [one, another] = [authority.issue('one'), authority.issue('another')]
  const { code, problems } = await check(
    `kernel:\n  tls: { certFile: ${one.certFile}, keyFile: ${another.keyFile} }\nplugins: { health: {} }\n`,
  )
  expect(code).toBe(2)
  expect(problems[1]).toMatch(/^2:3: kernel\.tls has a certificate and a key that cannot be used/)
})

test('ports in use, and files that are read later, are warnings', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const { code, stdout, problems } = await check(`kernel: { port: 0, policy: round_robin }
plugins:
  auth: {}
  health: { probe: { port: ${port} } }
  grpc: { caFile: /nowhere/grpc.pem }
`)
  server.close()
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('is valid') })
  expect(problems).toEqual([
    'weir: warning: 5:11: plugins.grpc.caFile cannot be read (ENOENT): /nowhere/grpc.pem',
    `weir: warning: 4:22: plugins.health.probe.port is in use on this machine, got ${port}: by the running gateway, or by a program that would keep it from starting`,
    '',
  ])
})

test('modules from URLs that could not be loaded are reported without a request', async () => {
  const { code, problems } = await check(`plugins:
  auth: {}
  wasm:
    sources: { origins: [https://ghcr.io] }
    modules:
      - { name: a, file_path: "https://example.com/a.wasm", module_type: Middleware, attach_points: [{ Middleware: OnRequest }] }
      - { name: b, file_path: "oci://ghcr.io", module_type: Middleware, attach_points: [{ Middleware: OnRequest }] }
`)
  expect(code).toBe(2)
  expect(problems).toEqual([
    'weir: the configuration has 4 problems',
    '6:9: plugins.wasm.modules.0.sha256 must be the SHA-256 of the module, which file_path loads from a URL',
    '6:20: plugins.wasm.modules.0.file_path must lie at an origin of plugins.wasm.sources.origins (got https://example.com)',
    '7:9: plugins.wasm.modules.1.sha256 must be the SHA-256 of the module, which file_path loads from a URL',
    '7:20: plugins.wasm.modules.1.file_path oci://ghcr.io must be a reference such as oci://ghcr.io/team/module:1.0',
    '',
  ])
})

test('conditions that an attach point of a module cannot evaluate are reported', async () => {
  const { code, problems } = await check(`plugins:
  auth: {}
  wasm:
    modules:
      - name: guard
        file_path: /modules/guard.wasm
        module_type: Middleware
        attach_points: [{ Middleware: OnToolCall }, { Middleware: OnRequest }]
        match: { headers: { x-team: a }, models: [m] }
      - name: picker
        file_path: /modules/picker.wasm
        module_type: Middleware
        attach_points: [{ Middleware: OnPick }]
        match: { models: [m], share: 0.5 }
`)
  expect(code).toBe(2)
  expect(problems.filter((line) => line.includes('.match.'))).toEqual([
    '9:18: plugins.wasm.modules.0.match.headers is not available for OnToolCall, an attach point of the module guard: its match may have models, tenants, share',
    '14:31: plugins.wasm.modules.1.match.share is not available for OnPick, an attach point of the module picker: its match may have models',
  ])
})

test.each([
  ['no plugin', 'export default 1', 'the default export of the module is not a plugin'],
  ['no schema', "export default { manifest: { name: 'mine' } }", 'is not a plugin'],
  ['a syntax error', 'export default {{', 'cannot be imported'],
  ['an exception', "throw new Error('boom')", 'cannot be imported: boom'],
  [
    'an exception in register',
    "export default { manifest: { name: 'mine', config: { type: 'object' } }, register() { null.x } }",
    'plugin mine failed in register',
  ],
])('a plugin file with %s is reported in one line', async (_, content, text) => {
  const { code, problems } = await check('plugins:\n  mine: { $path: ./mine.mjs }\n', {
    'mine.mjs': content,
  })
  expect(code).toBe(2)
  expect(problems[1]).toMatch(/^2:3: /)
  expect(problems[1]).toContain(text)
  expect(problems).toHaveLength(3)
})

test('models without a price are a warning while cost budgets exist', async () => {
  const config = (prices: string) => `plugins:
  auth: {}
  usage:
    budgets: [{ tenant: "*", cost: 5 }]
    prices: [${prices}]
`
  const some = '{ model: m, input: 1, output: 2 }'
  expect((await check(config(some))).problems).toContainEqual(
    expect.stringMatching(/^weir: warning: 5:5: plugins\.usage\.prices has no price for '\*'/),
  )
  const all = await check(config(`${some}, { model: "*", input: 1, output: 2 }`))
  expect(all.code).toBe(0)
  expect(all.problems.join('\n')).not.toContain('warning')
})
