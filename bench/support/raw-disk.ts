/** What the disk gives by itself: appends of one size, each synced before the next. */
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** @returns appends a second that are on disk, for so long one after another; blocks meanwhile */
export function syncsPerSecond(dir: string, bytes: number, forMs: number): number {
  const path = join(dir, 'raw-disk')
  const file = openSync(path, 'w')
  const part = Buffer.alloc(bytes, 0x61)
  const startedAtMs = performance.now()
  let count = 0
  try {
    while (performance.now() - startedAtMs < forMs) {
      writeSync(file, part)
      fdatasyncSync(file)
      count++
    }
  } finally {
    closeSync(file)
    rmSync(path)
  }
  return (count / (performance.now() - startedAtMs)) * 1_000
}
