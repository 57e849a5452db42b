/** `weir doctor` against real gateways: findings and exit code. */
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import {
  makeFolder,
  readyGateway,
  runCommand,
  startSim,
  stopCommands,
  until,
} from '../support/built-command.ts'
import { type Certificate, TestAuthority } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'

afterEach(stopCommands)

interface Finding {
  readonly verdict: string
  readonly check: string
  readonly text: string
  readonly advice?: string
}

async function writeConfig(urls: readonly string[], kernel: Record<string, unknown> = {}) {
  const folder = makeFolder()
  const file = join(folder, 'weir.json')
  const [port, metrics, probe] = await Promise.all([freePort(), freePort(), freePort()])
  const plugins = {
    chat: {},
    health: { probe: { port: probe } },
    metrics: { port: metrics },
    storage: { dir: join(folder, 'data') },
    workers: { urls, health: { check_interval_secs: 1 } },
  }
  writeFileSync(file, JSON.stringify({ kernel: { port, threads: 1, warmUp: false, ...kernel }, plugins }))
  return file
}

async function doctor(file: string) {
  const { code, stdout } = await runCommand(['doctor', '--config', file, '--json']).ended
  const findings = JSON.parse(stdout) as Finding[]
  return { code, findings, of: (check: string) => findings.filter((finding) => finding.check === check) }
}

test('a healthy gateway has no failing check', async () => {
  const sim = await startSim('--model', 'demo')
  const file = await writeConfig([sim.url])
  const gateway = await readyGateway(runCommand(['serve', '--config', file]))
  await until(async () => (await gateway.get('/readiness')).ok)
  const { code, findings, of } = await doctor(file)
  expect(findings.filter(({ verdict }) => verdict === 'fail')).toEqual([])
  expect(code).toBe(0)
  for (const check of ['configuration', 'store', 'readiness', 'metrics', 'reload'])
    expect(of(check)[0].verdict).toBe('ok')
  expect(of('worker')).toEqual([{ verdict: 'ok', check: 'worker', text: `${sim.url}: ready` }])
  expect(of('clock')[0].verdict).toBe('ok')
  expect(of('certificate')[0].verdict).toBe('skip')

  const { stdout } = await runCommand(['doctor', '--config', file]).ended
  expect(stdout).toMatch(/^ok +readiness +http:/m)

  const text = readFileSync(file, 'utf8')
  writeFileSync(file, '{ "kernel": { "port": -1 } }')
  gateway.command.signal('SIGHUP')
  await gateway.command.line(/configuration not reloaded/)
  writeFileSync(file, text)
  expect((await doctor(file)).of('reload')[0]).toMatchObject({
    verdict: 'fail',
    advice: expect.stringContaining('weir config apply'),
  })
})

test('failed checks come with advice, and the exit code is 1', async () => {
  const dead = `http://127.0.0.1:${await freePort()}`
  const file = await writeConfig([dead], { http: { maxConnections: 10_000_000 } })
  const gateway = await readyGateway(runCommand(['serve', '--config', file]))
  await until(async () => (await gateway.get('/liveness')).ok)
  const { code, of } = await doctor(file)
  expect(code).toBe(1)
  expect(of('readiness')[0]).toMatchObject({
    verdict: 'fail',
    advice: expect.stringContaining('weir workers'),
  })
  expect(of('worker')[0]).toMatchObject({ text: expect.stringContaining(`${dead}: `), verdict: 'warn' })
  expect(of('descriptors')[0]).toMatchObject({
    verdict: 'fail',
    advice: expect.stringContaining('LimitNOFILE'),
  })
})

test('a certificate that was renewed but not reloaded is reported', async () => {
  const authority = new TestAuthority()
  const [first, second] = [authority.issue('first'), authority.issue('second', 40)]
  const live = { certFile: join(authority.folder, 'live.pem'), keyFile: join(authority.folder, 'live.key') }
  const use = (one: Certificate) => {
    copyFileSync(one.certFile, live.certFile)
    copyFileSync(one.keyFile, live.keyFile)
  }
  use(first)
  const file = await writeConfig([], { tls: live })
  await readyGateway(runCommand(['serve', '--config', file]))
  expect((await doctor(file)).of('certificate')).toHaveLength(1)
  use(second)
  expect((await doctor(file)).of('certificate')[1]).toMatchObject({
    verdict: 'warn',
    text: expect.stringContaining('no longer the one in'),
  })
  authority.remove()
})

test('without a gateway, each check of it fails with a one-line text', async () => {
  const { code, findings, of } = await doctor(await writeConfig([]))
  expect(code).toBe(1)
  expect(of('readiness')[0].text).toContain('ECONNREFUSED')
  expect(of('workers')[0]).toMatchObject({ verdict: 'fail', text: expect.stringContaining('no gateway') })
  expect(findings.every(({ text }) => !text.includes('\n'))).toBe(true)
})

test('an invalid configuration is the only finding', async () => {
  const { code, findings } = await doctor(await writeConfig([], { port: -1 }))
  expect(code).toBe(1)
  expect(findings).toEqual([
    expect.objectContaining({
      verdict: 'fail',
      check: 'configuration',
      text: expect.stringContaining('kernel.port'),
    }),
  ])
})

test.skipIf(process.getuid?.() === 0)(
  'a data directory without write permission fails the store check',
  async () => {
    const file = await writeConfig([])
    chmodSync(join(file, '..'), 0o500)
    const { of } = await doctor(file)
    chmodSync(join(file, '..'), 0o700)
    expect(of('store')[0]).toMatchObject({ verdict: 'fail' })
  },
)
