/** Standard output as log lines see it: prompt for the few that matter, buffered for the many. */
import { isatty } from 'node:tty'
import { pino } from 'pino'
import { toTerminalLine } from './log-format.ts'

/** Takes whole lines, line feed included. */
export interface LineSink {
  write(line: string): void
}

const STDOUT = 1
/** Pipes take writes up to this size as a whole, so lines of several threads never mix. @source POSIX PIPE_BUF on Linux */
const WRITE_BYTES = 4_096
/** Lines beyond this are dropped while the reader stands still. */
const MAX_BUFFERED_BYTES = 8_388_608
/** At the end of a thread a reader that stands still is waited for this many times, 100 ms each. */
const MAX_EXIT_RETRIES = 10

/** One for all loggers of a thread. */
let prompt: LineSink | null = null

/** Writes each line before `write` returns, unless the reader stands still. */
export function promptStdout(): LineSink {
  prompt ??= readable(openStdout({ sync: true }))
  return prompt
}

/**
 * Writes in the background; what is left is written when the thread exits.
 *
 * @param onDrop called for each line that is dropped because the reader stands still
 */
export function bufferedStdout(onDrop: () => void): LineSink {
  const stdout = openStdout({ sync: false, maxLength: MAX_BUFFERED_BYTES, maxWrite: WRITE_BYTES })
  stdout.on('drop', onDrop)
  return readable(stdout)
}

function openStdout(options: Parameters<typeof pino.destination>[0] & object) {
  let retriesLeft = Number.POSITIVE_INFINITY
  const stdout = pino.destination({
    ...options,
    fd: STDOUT,
    retryEAGAIN: () => {
      retriesLeft -= 1
      return retriesLeft >= 0
    },
  })
  // A full disk or a vanished reader costs log lines, not the gateway.
  stdout.on('error', () => {})
  // The library does this on the main thread only; in a worker thread the event means the end of that thread.
  process.once('exit', () => {
    retriesLeft = MAX_EXIT_RETRIES
    try {
      stdout.flushSync()
    } catch {
      // The reader of the log is gone or stands still: there is nobody left to tell.
    }
  })
  return stdout
}

/** The same for all threads: each writes to the descriptor itself, so no line waits for the main thread. */
function readable(stdout: LineSink): LineSink {
  if (!isatty(STDOUT)) return stdout
  return { write: (line) => stdout.write(toTerminalLine(line)) }
}
