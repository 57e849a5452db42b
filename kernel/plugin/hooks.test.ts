/** Chains of hooks: none continues for a request that is over, and none waits without a timeout. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { TextStream } from '../contracts/generation/text-stream.ts'
import type { HookName, HookSignatures } from '../contracts/hook.ts'
import type { RequestContext, RouteDefinition } from '../contracts/request.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { httpErrors } from '../http/http-errors.ts'
import { compileHooks, declareHook } from './hooks.ts'

const route = { access: 'api' } as unknown as RouteDefinition
const BYTES = Buffer.from('data: 1\n\n')
const error = httpErrors.internal_error()
const TEXT: TextStream = { kind: 'text', choice: 0, call: null }

/** Arguments of each chain, and the result that lets the next hook run. */
const CALLS: { [Name in HookName]?: { args: readonly unknown[]; passOn: unknown } } = {
  onRequest: { args: [], passOn: undefined },
  onPick: { args: ['m'], passOn: undefined },
  onGeneration: { args: [{ number: 1, model: 'm' }], passOn: undefined },
  onUpstreamRequest: { args: [{ headers: [] }], passOn: undefined },
  onResponse: { args: [{ status: 200, headers: [], body: null }], passOn: undefined },
  onEvents: { args: [BYTES, false], passOn: BYTES },
  onError: { args: [error], passOn: error },
}
const OBSERVERS: readonly HookName[] = ['onAttempt', 'onDone']
const SYNCHRONOUS: readonly HookName[] = ['onPick', 'onAttempt']

interface FakeRequest {
  isDone: boolean
  isFailing: boolean
}

/** Behaviour of one hook, and whether the request ends while it runs. */
interface Link {
  readonly isLate: boolean
  readonly leaves: 'no' | 'at once' | 'while it waits'
  readonly failsOnly: boolean
}

function chainOf(name: HookName, links: readonly Link[], request: FakeRequest, started: number[]) {
  const declared = links.map((link, index) => {
    const end = () => {
      // onError hooks run while the request is already failing.
      if (link.failsOnly && name !== 'onError') request.isFailing = true
      else request.isDone = true
    }
    const hook = () => {
      started.push(index)
      const { passOn } = CALLS[name] ?? { passOn: undefined }
      if (link.leaves === 'at once') end()
      if (!link.isLate || SYNCHRONOUS.includes(name)) return passOn
      return Promise.resolve().then(() => {
        if (link.leaves === 'while it waits') end()
        return passOn
      })
    }
    return declareHook('p', name, hook as HookSignatures[HookName], { scope: 'all' })
  })
  return compileHooks(declared, 'p', route)[name] as ((...args: unknown[]) => unknown) | null
}

const links = fc.array(
  fc.record<Link>({
    isLate: fc.boolean(),
    leaves: fc.constantFrom('no', 'no', 'no', 'at once', 'while it waits'),
    failsOnly: fc.boolean(),
  }),
  { minLength: 1, maxLength: 5 },
)

describe.each(Object.keys(CALLS) as HookName[])('%s', (name) => {
  test('no further hook runs once the request is over', async () => {
    await fc.assert(
      fc.asyncProperty(links, async (chain) => {
        const request: FakeRequest = { isDone: false, isFailing: false }
        const started: number[] = []
        await chainOf(name, chain, request, started)?.(request, ...(CALLS[name]?.args ?? []))
        const canWait = !SYNCHRONOUS.includes(name)
        const over = chain.findIndex(
          ({ leaves, isLate }) => leaves === 'at once' || (leaves === 'while it waits' && isLate && canWait),
        )
        const last = over < 0 ? chain.length - 1 : over
        expect(started).toEqual(Array.from({ length: last + 1 }, (_, index) => index))
      }),
    )
  })
})

test('every onResponse hook runs for an error response, until the client disconnects', async () => {
  const started: number[] = []
  const goesOn: Link = { isLate: true, leaves: 'no', failsOnly: false }
  const request: FakeRequest = { isDone: false, isFailing: true }
  const chain = [goesOn, goesOn, { ...goesOn, leaves: 'while it waits' } as const, goesOn]
  await chainOf('onResponse', chain, request, started)?.(request, {})
  expect(started).toEqual([0, 1, 2])
})

test.each(OBSERVERS)('%s runs every hook, whatever the state of the request', async (name) => {
  const request: FakeRequest = { isDone: true, isFailing: true }
  const started: number[] = []
  const link: Link = { isLate: true, leaves: 'at once', failsOnly: false }
  await chainOf(name, [link, link, link], request, started)?.(request, {})
  expect(started).toEqual([0, 1, 2])
})

describe('onText', () => {
  const request = { isDone: false, isFailing: false } as RequestContext
  const chain = (...hooks: HookSignatures['onText'][]) =>
    compileHooks(
      hooks.map((hook) => declareHook('p', 'onText', hook, {})),
      'p',
      route,
    )
  const adding = (mark: string, isLate = false): HookSignatures['onText'] => {
    return () => ({
      edit: (text, isLast) => {
        const edited = `${text}${mark}${isLast ? '.' : ''}`
        return isLate ? Promise.resolve(edited) : edited
      },
    })
  }

  test('editors run in order, and a text that none wants has no editor', async () => {
    const unwanted = () => undefined
    expect(chain(unwanted, unwanted).onText?.(request, TEXT)).toBeUndefined()
    expect(chain(unwanted, adding('a')).onText?.(request, TEXT)?.edit('x', false)).toBe('xa')
    const editor = chain(adding('a'), unwanted, adding('b', true)).onText?.(request, TEXT)
    expect(await editor?.edit('x', false)).toBe('xab')
    expect(await editor?.edit('', true)).toBe('a.b.')
  })

  test('what one editor holds back does not reach the next, except at the end', () => {
    const seen: string[] = []
    const holding: HookSignatures['onText'] = () => ({ edit: (_, isLast) => (isLast ? 'held' : '') })
    const seeing: HookSignatures['onText'] = () => ({
      edit: (text) => {
        seen.push(text)
        return text
      },
    })
    const editor = chain(holding, seeing).onText?.(request, TEXT)
    expect([editor?.edit('a', false), editor?.edit('', true)]).toEqual(['', 'held'])
    expect(seen).toEqual(['held'])
  })

  test('only such hooks, and those that ask for it, keep bytes from passing through', () => {
    expect(chain(adding('a')).needsGenerations).toBe(true)
    expect(compileHooks([declareHook('p', 'onGeneration', () => {}, {})], 'p', route).needsGenerations).toBe(
      false,
    )
    const needing = declareHook('p', 'onGeneration', () => {}, { needsGenerations: true })
    expect(compileHooks([needing], 'p', route).needsGenerations).toBe(true)
  })
})

describe('a hook that never settles', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })
  const never = () => new Promise<never>(() => {})
  const request = { isDone: false, isFailing: false } as RequestContext

  test('an editor of onText has the timeout for each piece', async () => {
    const declared = declareHook('slow-plugin', 'onText', () => ({ edit: never }), { timeoutMs: 500 })
    const editor = compileHooks([declared], 'slow-plugin', route).onText?.(request, TEXT)
    const outcome = Promise.resolve(editor?.edit('a', false)).catch((failure) => failure)
    await vi.advanceTimersByTimeAsync(500)
    expect(((await outcome) as GatewayError).message).toContain('onText hook of plugin slow-plugin')
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each(['onRequest', 'onGeneration', 'onUpstreamRequest', 'onResponse', 'onEvents', 'onError'] as const)(
    '%s ends with an error that names hook and plugin after the timeout',
    async (name) => {
      const declared = declareHook('slow-plugin', name, never, { timeoutMs: 500 })
      const chain = compileHooks([declared], 'slow-plugin', route)[name] as (...args: unknown[]) => unknown
      const outcome = Promise.resolve(chain(request, ...(CALLS[name]?.args ?? []))).catch(
        (failure) => failure,
      )
      await vi.advanceTimersByTimeAsync(500)
      const failure = (await outcome) as GatewayError
      expect(failure).toBeInstanceOf(GatewayError)
      expect(failure.code).toBe('hook_timeout')
      expect(failure.message).toContain(`${name} hook of plugin slow-plugin`)
      expect(vi.getTimerCount()).toBe(0)
    },
  )

  test('has a timeout of 30 s by default, and none with 0', async () => {
    const settled: string[] = []
    for (const [label, options] of [
      ['default', {}],
      ['endless', { timeoutMs: 0 }],
    ] as const) {
      const declared = declareHook('p', 'onRequest', never, options)
      Promise.resolve(compileHooks([declared], 'p', route).onRequest?.(request)).catch(() =>
        settled.push(label),
      )
    }
    await vi.advanceTimersByTimeAsync(29_000)
    expect(settled).toEqual([])
    await vi.advanceTimersByTimeAsync(600_000)
    expect(settled).toEqual(['default'])
  })

  test('leaves no timer behind if it settles in time', async () => {
    const declared = declareHook('p', 'onRequest', async () => undefined, {})
    await compileHooks([declared], 'p', route).onRequest?.(request)
    expect(vi.getTimerCount()).toBe(0)
  })
})
