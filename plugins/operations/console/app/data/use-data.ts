/** Data of a route that a component shows, read again at an interval while the page is visible. */
import { useCallback, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type ApiError, call } from './api.ts'
import { connections } from './connection.ts'
import { useStore } from './store.ts'

export interface Data<T> {
  /** Null before the first response. */
  readonly value: T | null
  /** Of the latest attempt; the value before it stays. */
  readonly error: ApiError | null
  /** Reads again now. */
  reload(): Promise<void>
}

/**
 * @param path null reads nothing
 * @param intervalMs time between a response and the next request; 0 reads once
 */
export function useData<T>(path: string | null, intervalMs = 0): Data<T> {
  const [state, setState] = useState<{ path: string | null; value: T | null; error: ApiError | null }>({
    path: null,
    value: null,
    error: null,
  })
  const connection = useStore(connections)
  const latest = useRef(path)
  latest.current = path

  const reload = useCallback(async () => {
    if (path === null) return
    try {
      const value = await call<T>('GET', path)
      if (latest.current === path) setState({ path, value, error: null })
    } catch (error) {
      // The frame of the page shows that the gateway does not respond.
      if (latest.current === path && (error as ApiError).status !== 0)
        setState((before) => ({
          path,
          value: before.path === path ? before.value : null,
          error: error as ApiError,
        }))
    }
  }, [path])

  // A new connection reads again. A layout effect, because others wait until the page without the data is painted.
  useLayoutEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isOpen = true
    const run = async () => {
      if (!document.hidden) await reload()
      if (isOpen && intervalMs > 0) timer = setTimeout(run, intervalMs)
    }
    run()
    return () => {
      isOpen = false
      clearTimeout(timer)
    }
  }, [reload, intervalMs, connection])

  // While another path loads, the rows before it stay visible, so that filters do not make the page jump.
  return { value: state.value, error: state.path === path ? state.error : null, reload }
}
