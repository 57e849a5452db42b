/** Deadlines of hooks that a request waits for: a promise that never settles must not hold it open. */
import type { HookName, HookSignatures } from '../contracts/hook.ts'
import { defineErrors } from '../errors/define-errors.ts'

const DEFAULT_MS = 30_000

const hookErrors = defineErrors('plugin', {
  hook_timeout: {
    kind: 'internal',
    source: 'gateway',
    text: (hook: string, plugin: string, limitMs: number) =>
      `the ${hook} hook of plugin ${plugin} did not settle within ${limitMs} ms`,
  },
})

const AWAITED: ReadonlySet<HookName> = new Set([
  'onRequest',
  'onGeneration',
  'onPromptText',
  'onUpstreamRequest',
  'onResponse',
  'onEvents',
  'onError',
])

/**
 * Wraps a hook with a deadline; a synchronous result costs one comparison.
 *
 * @param limitMs milliseconds; 0 disables the deadline
 */
export function withDeadline<Name extends HookName>(
  hook: HookSignatures[Name],
  name: Name,
  plugin: string,
  limitMs = DEFAULT_MS,
): HookSignatures[Name] {
  if (limitMs === 0) return hook
  if (name === 'onText')
    return withEditDeadline(hook as HookSignatures['onText'], plugin, limitMs) as HookSignatures[Name]
  if (!AWAITED.has(name)) return hook
  const run = hook as (...args: never[]) => unknown
  const limited = (...args: never[]) => {
    const pending = run(...args)
    return pending instanceof Promise ? withTimeout(pending, name, plugin, limitMs) : pending
  }
  return limited as HookSignatures[Name]
}

/** Applies the deadline to each piece of text. */
function withEditDeadline(
  open: HookSignatures['onText'],
  plugin: string,
  limitMs: number,
): HookSignatures['onText'] {
  return (ctx, stream) => {
    const editor = open(ctx, stream)
    if (!editor) return editor
    return {
      edit(text, isLast) {
        const pending = editor.edit(text, isLast)
        return pending instanceof Promise ? withTimeout(pending, 'onText', plugin, limitMs) : pending
      },
    }
  }
}

/** @throws hook_timeout (500) */
function withTimeout<T>(pending: Promise<T>, name: HookName, plugin: string, limitMs: number): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const timer = setTimeout(() => reject(hookErrors.hook_timeout(name, plugin, limitMs)), limitMs)
  void pending.finally(() => clearTimeout(timer)).then(resolve, reject)
  return promise
}
