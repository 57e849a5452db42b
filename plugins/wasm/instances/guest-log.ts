/** Log lines of one call of a guest: so many, so long, and the rest is only counted. */
import type { LogLine } from '../threads/guest-task.ts'

const MAX_LINES = 64

export class GuestLog {
  readonly lines: LogLine[] = []
  /** Lines beyond those that are kept. */
  dropped = 0

  write(level: LogLine[0], text: string): void {
    if (this.lines.length < MAX_LINES) this.lines.push([level, text])
    else this.dropped++
  }

  clear(): void {
    if (this.lines.length > 0) this.lines.length = 0
    this.dropped = 0
  }
}
