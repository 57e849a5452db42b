/** Deadline of asynchronous hooks: a promise that never settles must not hold a request open. */
import type { HookName } from '../contracts/hook.ts'
import { defineErrors } from '../errors/define-errors.ts'

/** Default deadline of a hook, milliseconds. */
export const DEFAULT_HOOK_MS = 30_000

const hookErrors = defineErrors('plugin', {
  hook_timeout: {
    kind: 'internal',
    source: 'gateway',
    text: (hook: string, plugin: string, limitMs: number) =>
      `the ${hook} hook of plugin ${plugin} did not settle within ${limitMs} ms`,
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
 * Wraps a hook with a deadline; a synchronous result costs one comparison.
 *
 * @param limitMs 0 disables the deadline
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
    return pending instanceof Promise ? withTimeout(pending, name, plugin, limitMs) : pending
  }
  return limited as Hook
}

/** @throws hook_timeout (500) */
function withTimeout<T>(pending: Promise<T>, name: HookName, plugin: string, limitMs: number): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const timer = setTimeout(() => reject(hookErrors.hook_timeout(name, plugin, limitMs)), limitMs)
  void pending.finally(() => clearTimeout(timer)).then(resolve, reject)
  return promise
}
