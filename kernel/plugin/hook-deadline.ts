/** The time limit of a hook that answers later: a promise that nobody settles must not hold a request for ever. */
import type { HookName } from '../contracts/hook.ts'
import { defineErrors } from '../errors/define-errors.ts'

/** Unless a hook says otherwise, in milliseconds. @source contracts/hook.ts */
export const DEFAULT_HOOK_MS = 30_000

const hookErrors = defineErrors('plugin', {
  hook_timeout: {
    kind: 'internal',
    source: 'gateway',
    text: (hook: string, plugin: string, limitMs: number) =>
      `the ${hook} hook of plugin ${plugin} has not settled within ${limitMs} ms`,
  },
})

/** The hooks that a request waits for. */
const AWAITED: ReadonlySet<HookName> = new Set([
  'onRequest',
  'onUpstreamRequest',
  'onResponse',
  'onEvents',
  'onError',
])

/**
 * The same hook with an end to its waiting; one that answers at once pays one comparison.
 *
 * @param limitMs 0: no limit
 */
export function withDeadline<Hook extends (...args: never[]) => unknown>(
  hook: Hook,
  name: HookName,
  plugin: string,
  limitMs: number,
): Hook {
  if (limitMs === 0 || !AWAITED.has(name)) return hook
  const limited = (...args: never[]) => {
    const pending = hook(...args)
    return pending instanceof Promise ? inTime(pending, name, plugin, limitMs) : pending
  }
  return limited as Hook
}

/** @throws hook_timeout (500) */
function inTime<T>(pending: Promise<T>, name: HookName, plugin: string, limitMs: number): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const timer = setTimeout(() => reject(hookErrors.hook_timeout(name, plugin, limitMs)), limitMs)
  void pending.finally(() => clearTimeout(timer)).then(resolve, reject)
  return promise
}
