/**
 * Preloaded by every process and thread that tests start: strips the types of each source file once and caches the
 * result, because doing it in each thread quadruples its start-up cost. Lines and columns are kept.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import * as module from 'node:module'
import { fileURLToPath } from 'node:url'
import threads from 'node:worker_threads'

const KEPT = new URL('../../node_modules/.cache/weir-tests-stripped/', import.meta.url)

/** Threads with their own options or environment would not preload anything. */
class PreloadedWorker extends threads.Worker {
  /** @param {string | URL} file @param {import('node:worker_threads').WorkerOptions} [options] */
  constructor(file, options = {}) {
    const execArgv = options.execArgv ?? process.execArgv
    super(file, { ...options, execArgv: [...execArgv, `--import=${import.meta.url}`] })
  }
}

// Tests also start Node versions without these functions.
if (module.registerHooks !== undefined && module.stripTypeScriptTypes !== undefined) {
  mkdirSync(KEPT, { recursive: true })
  module.registerHooks({
    load(url, context, next) {
      if (!/^file:(?!.*\/node_modules\/).*\.ts(\?|$)/.test(url)) return next(url, context)
      return { format: 'module', source: stripped(fileURLToPath(url)), shortCircuit: true }
    },
  })
  threads.Worker = PreloadedWorker
  module.syncBuiltinESMExports()
}

/** @param {string} file @returns {string} */
function stripped(file) {
  const source = readFileSync(file, 'utf8')
  const name = createHash('sha256').update(process.version).update(source).digest('hex')
  const kept = new URL(`${name}.js`, KEPT)
  try {
    return readFileSync(kept, 'utf8')
  } catch {
    const result = module.stripTypeScriptTypes(source)
    const own = new URL(`${name}.${process.pid}.${threads.threadId}`, KEPT)
    writeFileSync(own, result)
    renameSync(own, kept)
    return result
  }
}
