/** `weir wasm dev`: builds a project and registers it with a running gateway, again at every change of its sources. */
import { watch } from 'node:fs'
import { relative, resolve, sep } from 'node:path'
import type { Command } from 'commander'
import { messageOf } from '#kernel'
import { clientOf } from '../../cli/gateway-client.ts'
import { CliError } from '../../cli/output.ts'
import type { ModuleList } from '../wire.ts'
import { isProject, moduleFileOf, nameOfModule } from './arguments.ts'
import { type AddOptions, addModule, replaceModule } from './registered.ts'

interface DevOptions extends AddOptions {
  readonly watch?: boolean
}

/** Delay after a change, since editors write a file in several steps, milliseconds. */
const SETTLE_MS = 150

export async function developModule(command: Command, place: string, options: DevOptions): Promise<void> {
  if (!isProject(place))
    throw new CliError(`${place} is not a module project; create one with 'weir wasm new'`)
  await registerBuild(command, place, options)
  if (options.watch === true) await watchSources(command, place, options)
}

async function registerBuild(command: Command, place: string, options: DevOptions): Promise<void> {
  const name = options.name ?? nameOfModule(moduleFileOf(place))
  const { modules } = (await clientOf(command).call('GET', '/wasm')) as ModuleList
  if (modules.some(({ module_meta }) => module_meta.name === name))
    await replaceModule(command, name, place, options)
  else await addModule(command, place, options)
}

/** Runs until interrupted; prints errors and waits for the next change. */
function watchSources(command: Command, place: string, options: DevOptions): Promise<never> {
  const folder = resolve(place)
  console.log(`watching ${relative('.', folder) || '.'}`)
  let isBusy = false
  let isChanged = false
  const update = async () => {
    if (isBusy) {
      isChanged = true
      return
    }
    isBusy = true
    do {
      isChanged = false
      await registerBuild(command, place, options).catch((error: unknown) => {
        console.error(messageOf(error))
      })
    } while (isChanged)
    isBusy = false
  }
  let timer: NodeJS.Timeout | undefined
  return new Promise((_, reject) => {
    const watcher = watch(folder, { recursive: true }, (_event, file) => {
      if (file === null || ['build', 'target', 'node_modules'].includes(file.split(sep, 1)[0])) return
      clearTimeout(timer)
      timer = setTimeout(() => void update(), SETTLE_MS)
    })
    watcher.on('error', reject)
  })
}
