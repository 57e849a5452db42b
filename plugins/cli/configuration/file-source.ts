/** The configuration of a running gateway: its file, read again for reloads and kept after each of them. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import type { ConfigChange, ConfigSource } from '../../../kernel/config/reload.ts'
import type { ConfigHistory, SavedConfig } from '../../../kernel/contracts/reload.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'
import { changeConfig } from './config-change.ts'
import { ConfigError, type ConfigProblem } from './config-error.ts'
import { parseSource } from './config-source.ts'
import { findPluginFile } from './find-plugin-file.ts'

/** Name of a text that is not the configuration file, for messages. */
export const PLANNED_NAME = 'configuration'

/** Text instead of the content of the configuration file. */
export interface GivenText {
  readonly text: string
  /** For messages. */
  readonly name: string
}

export interface FileSourceOptions {
  /** Loads and checks the configuration, from its file if no text is given. */
  load(given?: GivenText): Promise<LoadedConfig>
  /** Called if a copy of the configuration cannot be kept. */
  onSaveFailed(error: unknown): void
}

export class FileSource implements ConfigSource {
  readonly #file: string | null
  readonly #options: FileSourceOptions
  readonly #saved: SavedConfigs | null
  /** Content of the file in effect; null without a file. */
  #running: string | null
  #appliedAtMs = Date.now()

  /** @param config loaded from the file just now */
  constructor(config: LoadedConfig, options: FileSourceOptions) {
    this.#file = config.file
    this.#options = options
    this.#running = this.#read()
    this.#saved = config.file === null ? null : new SavedConfigs(savedConfigsDir(config), config.file)
  }

  async readChange(
    running: LoadedConfig,
    reloads: ReadonlyMap<string, readonly string[]>,
    text?: string,
  ): Promise<ConfigChange> {
    const { load } = this.#options
    if (text !== undefined) {
      rejectNewPluginFiles(text, running)
      return changeConfig(running, await load({ text, name: PLANNED_NAME }), reloads)
    }
    const content = this.#read()
    const given = content === null || this.#file === null ? undefined : { text: content, name: this.#file }
    const change = changeConfig(running, await load(given), reloads)
    return content === null ? change : { ...change, confirm: () => this.#confirm(content) }
  }

  isInstalled(text: string): boolean {
    return this.#read() === text
  }

  history(): ConfigHistory {
    return { file: this.#file, saved: this.#saved?.list(this.#running ?? '') ?? [] }
  }

  /** Null if there is no file or it cannot be read, which the loader reports. */
  #read(): string | null {
    try {
      return this.#file === null ? null : readFileSync(this.#file, 'utf8')
    } catch {
      return null
    }
  }

  /** Keeps the configuration of the start, too, once it has been replaced. */
  #confirm(content: string): void {
    const [before, appliedAtMs] = [this.#running, this.#appliedAtMs]
    this.#running = content
    if (content === before) return
    this.#appliedAtMs = Date.now()
    try {
      if (before !== null) this.#saved?.add(before, appliedAtMs)
      this.#saved?.add(content, this.#appliedAtMs)
    } catch (error) {
      this.#options.onSaveFailed(error)
    }
  }
}

/**
 * A planned text comes from a request, which must not make the gateway import a file that its operator has not configured.
 * @throws ConfigError
 */
function rejectNewPluginFiles(text: string, running: LoadedConfig): void {
  const { value, problems, locate } = parseSource(text, PLANNED_NAME)
  if (problems.length > 0) throw new ConfigError(problems)
  const sections = isObject(value) && isObject(value.plugins) ? Object.entries(value.plugins) : []
  const baseDir = running.file === null ? process.cwd() : dirname(running.file)
  const found: ConfigProblem[] = []
  for (const [name, section] of sections) {
    if (!isObject(section) || (section.$path === undefined && section.$package === undefined)) continue
    if (isRunning(name, section, running, baseDir)) continue
    found.push({
      path: `plugins.${name}`,
      text: 'is a plugin file that the gateway has not loaded, so it cannot be planned: check it with weir config check on the machine of the gateway; it needs a restart',
      where: locate(['plugins', name]),
    })
  }
  if (found.length > 0) throw new ConfigError(found)
}

function isRunning(
  name: string,
  section: Record<string, unknown>,
  { plugins }: LoadedConfig,
  baseDir: string,
): boolean {
  try {
    return Object.hasOwn(plugins, name) && findPluginFile(section, baseDir) === plugins[name].$path
  } catch {
    return false
  }
}

const MAX_COPIES = 10
/** Time of the reload in UTC, with dashes, since colons are not allowed in file names everywhere. */
const COPY_NAME = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})Z\.\w+$/

/** Copies of the configurations that a gateway applied, the last ten, in files that only its user can read. */
export class SavedConfigs {
  readonly #dir: string
  readonly #extension: string

  /** @param file configuration file; its extension is that of the copies */
  constructor(dir: string, file: string) {
    this.#dir = dir
    this.#extension = extname(file) || '.yaml'
  }

  /** Does nothing if the last copy has the same content. @throws the file system's error */
  add(text: string, appliedAtMs: number): void {
    const names = this.#names()
    const [newest] = names
    if (newest !== undefined && readFileSync(join(this.#dir, newest), 'utf8') === text) return
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 })
    const name = `${new Date(appliedAtMs).toISOString().replaceAll(':', '-')}${this.#extension}`
    writeFileSync(join(this.#dir, name), text, { mode: 0o600 })
    for (const old of names.slice(MAX_COPIES - 1)) rmSync(join(this.#dir, old), { force: true })
  }

  /** Newest first. @param running text of the running configuration */
  list(running: string): SavedConfig[] {
    return this.#names().map((name) => {
      const path = join(this.#dir, name)
      const time = name.replace(COPY_NAME, '$1T$2:$3:$4Z')
      return { path, appliedAtMs: Date.parse(time), isRunning: readFileSync(path, 'utf8') === running }
    })
  }

  #names(): string[] {
    try {
      return readdirSync(this.#dir)
        .filter((name) => COPY_NAME.test(name))
        .sort()
        .reverse()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  }
}

/** In the data directory, whether or not the storage plugin is enabled. */
function savedConfigsDir({ plugins }: LoadedConfig): string {
  return resolve(String(plugins.storage?.dir ?? 'weir-data'), 'config-history')
}
