/**
 * Stops taking connections while the process has no descriptor left. The library would try to accept again and again,
 * with a whole core, as the connection it cannot take stays in the queue.
 */
import { closeSync, openSync } from 'node:fs'
import type { Logger } from '../contracts/log.ts'

const LOOK_MS = 200
/** So many must be free again before connections are taken. */
const FREE_AGAIN = 16

interface Accepting {
  pauseAccepting(): void
  /** @returns false when it did not work */
  resumeAccepting(): Promise<boolean>
}

/** @param onChange true when connections are no longer taken @returns stops watching */
export function watchDescriptors(
  server: Accepting,
  log: Logger,
  onChange: (isPaused: boolean) => void,
): () => void {
  let isPaused = false
  const look = async () => {
    if (!isPaused && !canOpen(1)) {
      isPaused = true
      server.pauseAccepting()
      onChange(true)
      log.error({}, 'no descriptor is left: new connections are refused until some are free; raise ulimit -n')
    } else if (isPaused && canOpen(FREE_AGAIN) && (await server.resumeAccepting())) {
      isPaused = false
      onChange(false)
      log.info({}, 'descriptors are free again: connections are taken')
    }
  }
  let isLooking = false
  const timer = setInterval(() => {
    if (isLooking) return
    isLooking = true
    void look()
      .catch((err: unknown) => log.error({ err }, 'descriptors could not be looked at'))
      .finally(() => {
        isLooking = false
      })
  }, LOOK_MS).unref()
  return () => clearInterval(timer)
}

function canOpen(count: number): boolean {
  const opened: number[] = []
  try {
    while (opened.length < count) opened.push(openSync('/dev/null', 'r'))
    return true
  } catch {
    return false
  } finally {
    for (const one of opened) closeSync(one)
  }
}
