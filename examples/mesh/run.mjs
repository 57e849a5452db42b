/** Starts Valkey, two simulated engines and three gateways of one mesh; kills a gateway under load, and starts it again. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

if (Number(process.versions.node.split('.')[0]) !== 22) {
  const version = process.versions.node
  console.error(`Node 22 is needed, this is Node ${version}; in a clone try: npx node ${process.argv[1]}`)
  process.exit(1)
}
const server = ['valkey-server', 'redis-server'].find((name) => !spawnSync(name, ['--version']).error)
if (server === undefined) {
  console.error('valkey-server is not on PATH; install Valkey, or redis-server from 7.2')
  process.exit(1)
}

const NAMES = ['gw-1', 'gw-2', 'gw-3']
/** Valkey, then two engines, then API and metrics of each gateway; where they are taken: `PORTS=41,42,… node run.mjs`. */
const [VALKEY_PORT, ENGINE_1, ENGINE_2, ...GATEWAY_PORTS] = (
  process.env.PORTS ?? '46379,9021,9022,30001,29001,30002,29002,30003,29003'
).split(',')
const command = fileURLToPath(new URL('../../dist/plugins/cli.js', import.meta.url))
const config = fileURLToPath(new URL('weir.yaml', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'weir-mesh-'))
const urls = NAMES.map((_, number) => `http://127.0.0.1:${GATEWAY_PORTS[number * 2]}`)
const headers = { authorization: 'Bearer weir-demo-key', 'content-type': 'application/json' }

const processes = new Set()
function start(program, args, env = {}) {
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...env },
  })
  processes.add(child)
  child.once('exit', () => processes.delete(child))
  return child
}
const weir = (args, env) => start(process.execPath, [command, ...args], env)

function startGateway(number) {
  const [port, metricsPort] = GATEWAY_PORTS.slice(number * 2)
  const workers = [ENGINE_1, ENGINE_2].flatMap((engine) => ['--worker-url', `http://127.0.0.1:${engine}`])
  const ports = ['--port', port, '--metrics-port', metricsPort]
  return weir(['serve', '--config', config, '--log-level', 'error', ...ports, ...workers], {
    GATEWAY_NAME: NAMES[number],
    WEIR_MESH_SECRET: 'a-secret-of-the-demo-mesh',
    VALKEY_URL: `redis://127.0.0.1:${VALKEY_PORT}`,
  })
}

async function until(what, check) {
  const deadline = Date.now() + 60_000
  while (!(await check().catch(() => false))) {
    if (Date.now() > deadline) throw new Error(`not within a minute: ${what}`)
    await pause(50)
  }
}
const read = async (url, path) => (await fetch(url + path, { headers })).json()
const statuses = async (url) =>
  (await read(url, '/ha/status')).nodes.map(({ name, status }) => `${name} ${status}`).join(', ')

/** As a client with a list of addresses does, it tries the next gateway if one cannot be reached. */
async function chat(count) {
  const body = JSON.stringify({
    model: 'demo',
    max_tokens: 8,
    messages: [{ role: 'user', content: `Hello ${count}` }],
  })
  for (let tries = 0; tries < urls.length; tries += 1) {
    const url = urls[(count + tries) % urls.length]
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body }).catch(
      () => null,
    )
    if (response === null) continue
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
    return response.json()
  }
  throw new Error('no gateway can be reached')
}

try {
  const files = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '', '--dir', folder]
  start(server, ['--port', VALKEY_PORT, '--bind', '127.0.0.1', '--loglevel', 'warning', ...files])
  for (const port of [ENGINE_1, ENGINE_2])
    weir(['sim', '--port', port, '--model', 'demo', '--log-level', 'warn'])
  await pause(1_000)
  const gateways = NAMES.map((_, number) => startGateway(number))
  for (const url of urls) await until(`${url} ready`, async () => (await fetch(`${url}/readiness`)).ok)
  await until('three members', async () => (await read(urls[0], '/ha/status')).node_count === 3)
  console.log(`members: ${await statuses(urls[0])}`)

  const value = Buffer.from('written on gw-1').toString('hex')
  await fetch(`${urls[0]}/ha/config`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ key: 'greeting', value }),
  })
  await until('the key on gw-3', async () => (await read(urls[2], '/ha/config/greeting')).value === value)
  console.log(`gw-3 reads: ${Buffer.from(value, 'hex')}`)

  gateways[1].kill('SIGKILL')
  let answered = 0
  for (; answered < 60; answered += 1) await chat(answered)
  console.log(`answered while gw-2 was away: ${answered} of 60`)
  await until('gw-2 down', async () => (await statuses(urls[0])).includes('gw-2 Down'))
  console.log(`members: ${await statuses(urls[0])}`)

  startGateway(1)
  await until('gw-2 back', async () => (await statuses(urls[0])).includes('gw-2 Alive'))
  await until('gw-2 ready', async () => (await fetch(`${urls[1]}/readiness`)).ok)
  console.log(`members: ${await statuses(urls[1])}`)
  console.log(`gw-2 reads: ${Buffer.from((await read(urls[1], '/ha/config/greeting')).value, 'hex')}`)
} finally {
  for (const child of [...processes].reverse()) child.kill('SIGTERM')
  while (processes.size > 0) await pause(50)
  rmSync(folder, { recursive: true, force: true })
}
