/** What the unit of systemd runs, with and without its tools. */
import { execFile, spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { makeFolder, RunningCommand, stopCommands } from '../support/built-command.ts'
import { freePort } from '../support/free-port.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`

afterEach(stopCommands)

/** Acts as systemd: binds the notify socket and reads its messages. */
const MANAGER = `
import socket, sys
socket_ = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
socket_.bind(sys.argv[1])
print('bound', flush=True)
while True:
    print(socket_.recv(4096).decode().replace('\\n', ' '), flush=True)
`
const missing = ['python3', 'systemd-notify'].filter(
  (program) => !PATH.split(delimiter).some((folder) => existsSync(join(folder, program))),
)
if (missing.length > 0)
  console.warn(`skipped: the unit of systemd, since there is no ${missing.join(', no ')}`)

const hasAnalyzer = PATH.split(delimiter).some((folder) => existsSync(join(folder, 'systemd-analyze')))

test.skipIf(!hasAnalyzer)('systemd-analyze reports no error in the unit and a low exposure', async () => {
  const folder = makeFolder()
  const file = join(folder, 'weir.service')
  const unit = readFileSync(join(ROOT, 'examples/systemd/weir.service'), 'utf8')
  // Programs of the unit must exist for the check; those of this test do.
  writeFileSync(file, unit.replaceAll('/usr/bin/node', process.execPath))
  expect(await run('systemd-analyze', ['verify', file])).toMatchObject({ stdout: '', stderr: '' })
  await run('systemd-analyze', ['security', '--offline=true', '--threshold=25', file])
})

test.skipIf(missing.length > 0)(
  'systemd is notified once the gateway is ready, and again when it stops',
  async () => {
    const unit = readFileSync(join(ROOT, 'examples/systemd/weir.service'), 'utf8')
    expect(unit).toMatch(/^Type=notify$/m)
    expect(unit).toMatch(/^NotifyAccess=all$/m)
    const socket = join(makeFolder(), 'notify')
    const manager = new RunningCommand(
      spawn('python3', ['-c', MANAGER, socket], { stdio: ['ignore', 'pipe', 'pipe'] }),
    )
    await manager.line(/^bound$/)
    const port = String(await freePort())
    const env = {
      PATH,
      WEIR_PORT: port,
      WEIR_METRICS_PORT: '0',
      WEIR_API_KEY: 'a-key',
      NOTIFY_SOCKET: socket,
    }
    const start = unit.match(/^ExecStart=\S+ (.*) --config \S+$/m)?.[1] as string
    const child = spawn('node', start.replace('/opt/weir/', ROOT).split(' '), {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const gateway = new RunningCommand(child)
    await manager.line(/READY=1/)
    expect((await fetch(`http://127.0.0.1:${port}/liveness`)).status).toBe(200)
    gateway.signal('SIGTERM')
    await manager.line(/STOPPING=1/)
    await gateway.stop()
    manager.signal('SIGKILL')
  },
  180_000,
)
