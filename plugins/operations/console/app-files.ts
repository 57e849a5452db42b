/** The built pages of the console, read once per thread. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { installedFile, type RequestContext } from '#kernel'
import { consoleErrors } from './errors.ts'

const INDEX = 'index.html'
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
}

/** Pages run no inline code, load nothing from other origins, and cannot be framed. */
const HEADERS = [
  'content-security-policy',
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options',
  'nosniff',
  'x-frame-options',
  'DENY',
  'referrer-policy',
  'no-referrer',
  'cross-origin-opener-policy',
  'same-origin',
  'cross-origin-resource-policy',
  'same-origin',
  'vary',
  'accept-encoding',
]
const REVALIDATED = ['cache-control', 'no-cache']
/** Names contain the hash of the content. */
const IMMUTABLE = ['cache-control', 'public, max-age=31536000, immutable']
const ZIPPED = ['content-encoding', 'gzip']

interface AppFile {
  readonly type: string
  readonly plain: Buffer
  readonly zipped: Buffer
}

export class AppFiles {
  /** By name; empty if the pages were not built. */
  #files: ReadonlyMap<string, AppFile> = new Map()

  /** @returns false if the pages were not built */
  load(): boolean {
    const folder = findFolder()
    if (folder === null) return false
    const read = (name: string) => readFileSync(new URL(name, folder))
    const names = readdirSync(folder).filter((name) => TYPES[extname(name)] !== undefined)
    this.#files = new Map(
      names.map((name) => [
        name,
        { type: TYPES[extname(name)], plain: read(name), zipped: read(`${name}.gz`) },
      ]),
    )
    return true
  }

  /** @throws console_not_built, console_file_not_found */
  send(ctx: RequestContext, name: string = INDEX): void {
    if (this.#files.size === 0) throw consoleErrors.console_not_built()
    const file = this.#files.get(name)
    if (file === undefined) throw consoleErrors.console_file_not_found(name)
    const isZipped = /\bgzip\b/.test(ctx.header('accept-encoding') ?? '')
    ctx.send(200, file.type, isZipped ? file.zipped : file.plain, [
      ...HEADERS,
      ...(name === INDEX ? REVALIDATED : IMMUTABLE),
      ...(isZipped ? ZIPPED : []),
    ])
  }
}

/** Sources use what was built, too. */
function findFolder(): URL | null {
  const folder = installedFile('dist/plugins/operations/console/app/')
  return existsSync(new URL(INDEX, folder)) ? folder : null
}
