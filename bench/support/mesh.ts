/** Gateways of one mesh on a Valkey of their own. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { startGateway } from './gateway.ts'
import { freePort, startChild, temporaryDirectory, waitUntil } from './process.ts'
import type { Subject } from './subject.ts'

/** @throws if valkey-server is not on PATH */
export async function startMesh(count: number, ports: readonly number[]): Promise<Subject[]> {
  const port = await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', temporaryDirectory()]
  const valkey = startChild('valkey-server', args)
  const gateways: Subject[] = []
  try {
    await waitUntil('valkey-server is ready', 5_000, () => accepts(port))
    for (let index = 0; index < count; index++) {
      const mesh = { name: `gateway-${index}`, secret: 'bench-secret-of-the-mesh', acknowledge: 'memory' }
      const plugins = {
        storage: { dir: temporaryDirectory() },
        mesh,
        'mesh-valkey': { url: `redis://127.0.0.1:${port}` },
      }
      const gateway = await startGateway({ workerPorts: ports, kernel: { policy: 'cache_aware' }, plugins })
      gateways.push(gateway)
    }
  } catch (error) {
    for (const gateway of gateways) await gateway.stop()
    await valkey.stop()
    throw error
  }
  const [first, ...rest] = gateways
  const stop = async () => {
    await first.stop()
    await valkey.stop()
  }
  // The rest is stopped before.
  return [...rest, { ...first, stop }]
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } finally {
    socket.destroy()
  }
}
