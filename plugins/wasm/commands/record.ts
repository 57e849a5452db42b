/** `weir wasm record`: writes live exchanges of a running gateway as a case; the gateway redacts them. */
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { clientOf, GatewayRefusal } from '../../cli/gateway-client.ts'
import { CliError } from '../../cli/output.ts'
import { readCount } from './arguments.ts'
import { plural } from './units.ts'

interface RecordOptions {
  readonly count: string
  readonly seconds: string
  readonly bodies?: boolean
  readonly title?: string
}

export async function recordCase(command: Command, file: string, options: RecordOptions): Promise<void> {
  const order = {
    count: readCount('--count', options.count),
    seconds: readCount('--seconds', options.seconds),
    bodies: options.bodies === true,
  }
  const { steps } = (await clientOf(command)
    .call('POST', '/wasm/record', order)
    .catch((error: unknown) => {
      if (!(error instanceof GatewayRefusal) || error.status !== 400) throw error
      throw new CliError(
        `${error.message}\n  set plugins.wasm.allowRecording: true in the gateway configuration`,
      )
    })) as { steps: unknown[] }
  if (steps.length === 0) throw new CliError('no module was called during the recording; nothing was written')
  const title = options.title ?? 'recorded from a running gateway'
  await mkdir(dirname(file), { recursive: true })
  // Live requests: readable by the owner only, even if the file existed.
  await writeFile(file, `${JSON.stringify({ title, steps }, null, 2)}\n`, { mode: 0o600 })
  await chmod(file, 0o600)
  console.log(
    `${plural(steps.length, 'step')} in ${file}; run 'weir wasm test --update' to add the expected results`,
  )
}
