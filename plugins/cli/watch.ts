/** `weir serve --watch`: runs the gateway in a child process and takes changed files while it runs, for development. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { basename, dirname, extname, join, relative } from 'node:path'
import { messageOf } from '../../kernel/errors/message-of.ts'
import { GatewayClient } from './gateway-client.ts'
import type { WatchFacts } from './ready-block.ts'

/** Delay after a change, since editors and compilers write a file in several steps, milliseconds. */
const SETTLE_MS = 200
/** After this time open requests are closed, milliseconds. */
const DRAIN_MS = 5_000
const CODE = new Set(['.ts', '.mts', '.js', '.mjs', '.cjs'])
const MODULE = '.wasm'
const IGNORED_FOLDER = /^(\..*|node_modules|target)$/
/** More folders indicate that a whole disk is watched by mistake. */
const MAX_FOLDERS = 1_000

/** @param args of the command line, without `--watch`; resolves when the gateway has ended for a signal */
export async function watchGateway(args: readonly string[]): Promise<void> {
  await new Watch(args).run()
}

class Watch {
  readonly #args: readonly string[]
  #child: ChildProcess
  #ended: Promise<unknown>
  #facts: WatchFacts | null = null
  #watchers: FSWatcher[] = []
  readonly #changed = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #isBusy = false
  #isStopping = false

  constructor(args: readonly string[]) {
    this.#args = args
    this.#child = this.#spawn()
    this.#ended = once(this.#child, 'exit')
  }

  async run(): Promise<void> {
    const stopped = Promise.withResolvers<void>()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        this.#isStopping = true
        this.#child.kill(signal)
        void this.#ended.then(() => stopped.resolve())
      })
    }
    if (await this.#becomesReady()) {
      say(`watching ${this.#watchers.length} folders for changes of the configuration, plugins and modules`)
      await stopped.promise
    }
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers) watcher.close()
    process.exitCode = this.#child.exitCode ?? 1
  }

  #spawn(): ChildProcess {
    const child = spawn(process.execPath, [...process.execArgv, process.argv[1], ...this.#args], {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    })
    return child.once('exit', () => {
      const isCrash = this.#facts !== null && !this.#isBusy && !this.#isStopping
      if (isCrash) say('the gateway ended; it starts again after the next change')
    })
  }

  /** @returns false if the child ended before */
  async #becomesReady(): Promise<boolean> {
    const ready = once(this.#child, 'message').then(([facts]) => facts as WatchFacts)
    const facts = await Promise.race([ready, this.#ended.then(() => null)])
    if (facts === null) return false
    this.#facts = facts
    this.#watchFolders(facts)
    return true
  }

  #watchFolders({ files, pluginFolders, moduleFolders }: WatchFacts): void {
    for (const watcher of this.#watchers) watcher.close()
    const folders = new Set([
      ...files.map((file) => dirname(file)),
      ...[...pluginFolders, ...moduleFolders].flatMap((folder) => foldersBelow(folder)),
    ])
    this.#watchers = [...folders].slice(0, MAX_FOLDERS).map((folder) =>
      watch(folder, (_event, name) => {
        if (name !== null) this.#note(join(folder, name))
      }).on('error', () => {}),
    )
  }

  #note(path: string): void {
    const { files = [], pluginFolders = [], moduleFolders = [] } = this.#facts ?? {}
    const isIn = (folders: readonly string[]) =>
      folders.some((folder) => !relative(folder, path).startsWith('..'))
    const isCode = CODE.has(extname(path)) && !/\.test\.\w+$/.test(path) && isIn(pluginFolders)
    const isModule = extname(path) === MODULE && isIn(moduleFolders)
    if (!isCode && !isModule && !files.includes(path)) return
    this.#changed.add(path)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#takeChanges(), SETTLE_MS)
  }

  async #takeChanges(): Promise<void> {
    if (this.#isBusy || this.#isStopping) return
    this.#isBusy = true
    while (this.#changed.size > 0 && !this.#isStopping) {
      const changed = [...this.#changed]
      this.#changed.clear()
      if (changed.every((path) => extname(path) === MODULE) && this.#child.exitCode === null)
        await this.#reloadModules(changed)
      else await this.#restart(changed)
    }
    this.#isBusy = false
  }

  async #reloadModules(changed: readonly string[]): Promise<void> {
    const { url = null, apiKey } = this.#facts ?? {}
    if (url === null) return
    const client = new GatewayClient({ url, apiKey })
    try {
      const { modules } = (await client.call('GET', '/wasm?detail=full')) as {
        modules: { module_uuid: string; module_meta: { name: string; file_path: string } }[]
      }
      for (const { module_uuid, module_meta } of modules) {
        if (!changed.includes(module_meta.file_path)) continue
        await client.call('PUT', `/wasm/${module_uuid}`, {})
        say(`module ${module_meta.name} reloaded from ${shown(module_meta.file_path)}`)
      }
    } catch (error) {
      say(
        `${changed.map(shown).join(', ')} not reloaded, the earlier version keeps running: ${messageOf(error)}`,
      )
    }
  }

  async #restart(changed: readonly string[]): Promise<void> {
    const names = changed.map(shown).join(', ')
    const begin = performance.now()
    if (!(await this.#wouldStart())) {
      say(`${names} not taken, the earlier version keeps running`)
      return
    }
    await this.#stopChild()
    this.#child = this.#spawn()
    this.#ended = once(this.#child, 'exit')
    if (await this.#becomesReady())
      say(`${names} changed: restarted in ${Math.round(performance.now() - begin)} ms`)
    else if (!this.#isStopping)
      say(`${names} changed: the gateway did not start; it starts again after the next change`)
  }

  /** Loads and checks the changed files in a process of its own, which prints the errors. */
  async #wouldStart(): Promise<boolean> {
    const args = [...process.execArgv, process.argv[1], ...this.#args, '--dry-run']
    const [code] = await once(
      spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] }),
      'exit',
    )
    return code === 0
  }

  async #stopChild(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#child.kill('SIGINT')
    const timer = setTimeout(() => this.#child.kill('SIGINT'), DRAIN_MS)
    await this.#ended
    clearTimeout(timer)
  }
}

/** The folder and those below it, without packages and build caches. */
function foldersBelow(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
    const below = entries.filter((one) => one.isDirectory() && !IGNORED_FOLDER.test(basename(one.name)))
    return [folder, ...below.flatMap(({ name }) => foldersBelow(join(folder, name)))]
  } catch {
    return []
  }
}

function shown(path: string): string {
  const short = relative('.', path)
  return short.startsWith('..') ? path : short
}

function say(text: string): void {
  process.stderr.write(`weir: ${text}\n`)
}
