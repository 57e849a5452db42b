/** Copies of the configurations that a gateway applied, the last ten, in files that only its user can read. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { extname, join, resolve } from 'node:path'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import type { SavedConfig } from '../../../kernel/contracts/reload.ts'

const MAX_COPIES = 10
/** Time of the reload in UTC, with dashes, since colons are not allowed in file names everywhere. */
const COPY_NAME = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})Z\.\w+$/

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
export function savedConfigsDir({ plugins }: LoadedConfig): string {
  return resolve(String(plugins.storage?.dir ?? 'weir-data'), 'config-history')
}
