/** Starts two simulated engines and a gateway, sends requests, and shows how many each engine got. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

if (Number(process.versions.node.split('.')[0]) !== 22) {
  const version = process.versions.node
  console.error(`Node 22 is needed, this is Node ${version}; in a clone try: npx node ${process.argv[1]}`)
  process.exit(1)
}

const REQUESTS = 20
/** Those of weir.yaml; where they are taken: `PORTS=41,42,43,44 node run.mjs`. */
const [PORT, METRICS_PORT, ...ENGINE_PORTS] = (process.env.PORTS ?? '30001,29001,9011,9012').split(',')
const workers = ENGINE_PORTS.flatMap((port) => ['--worker-url', `http://127.0.0.1:${port}`])
const flags = ['--log-level', 'warn', '--port', PORT, '--metrics-port', METRICS_PORT, ...workers]
const gateway = `http://127.0.0.1:${PORT}`
const command = fileURLToPath(new URL('../../dist/plugins/cli.js', import.meta.url))
const config = fileURLToPath(new URL('weir.yaml', import.meta.url))

function weir(...args) {
  return spawn(process.execPath, [command, ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
}

async function waitForWorkers(count) {
  const deadline = Date.now() + 60_000
  for (;;) {
    const response = await fetch(`${gateway}/readiness`).catch(() => null)
    if (response?.ok && (await response.json()).healthy_workers === count) return
    if (Date.now() > deadline) throw new Error('the gateway is not ready')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const processes = [
  ...ENGINE_PORTS.map((port) => weir('sim', '--port', port, '--model', 'demo', '--log-level', 'warn')),
  weir('serve', '--config', config, ...flags),
]
try {
  await waitForWorkers(ENGINE_PORTS.length)
  for (let sent = 0; sent < REQUESTS; sent++) {
    const response = await fetch(`${gateway}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer weir-demo-key', 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'demo',
        max_tokens: 8,
        messages: [{ role: 'user', content: `Hello ${sent}` }],
      }),
    })
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  }
  for (const port of ENGINE_PORTS) {
    const { requests } = await (await fetch(`http://127.0.0.1:${port}/sim/requests`)).json()
    const count = requests.filter((request) => request.path === '/v1/chat/completions').length
    console.log(`engine on port ${port}: ${count} of ${REQUESTS} requests`)
  }
} finally {
  for (const child of processes) child.kill('SIGTERM')
}
