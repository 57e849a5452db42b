/** Standard output as log lines see it: prompt for the few that matter, buffered for the many. */
import { isatty } from 'node:tty'
import { isMainThread } from 'node:worker_threads'
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

/** Until lines that wait are tried again, milliseconds. */
const RETRY_MS = 100

/** One for all loggers of a thread. */
let prompt: LineSink | null = null

/** Told of each prompt line that is dropped; the same as for buffered lines, once there is somebody to tell. */
let onPromptDrop = () => {}

/**
 * Writes each line before `write` returns. While the reader stands still, lines wait (and are dropped beyond a limit)
 * rather than the thread.
 */
export function promptStdout(): LineSink {
  if (prompt !== null) return prompt
  const stdout = openStdout({ sync: true, maxLength: MAX_BUFFERED_BYTES }, 0)
  let isRetrying = false
  stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code !== 'EAGAIN' || isRetrying) return
    isRetrying = true
    // The next line would take those that wait along; there may be none for long.
    setTimeout(() => {
      isRetrying = false
      stdout.write('')
    }, RETRY_MS).unref()
  })
  stdout.on('drop', () => onPromptDrop())
  prompt = readable(stdout)
  return prompt
}

/**
 * Writes in the background; what is left is written when the thread exits.
 *
 * @param onDrop called for each line that is dropped because the reader stands still
 */
export function bufferedStdout(onDrop: () => void): LineSink {
  const stdout = openStdout(
    { sync: false, maxLength: MAX_BUFFERED_BYTES, maxWrite: WRITE_BYTES },
    Number.POSITIVE_INFINITY,
  )
  stdout.on('drop', onDrop)
  onPromptDrop = onDrop
  return readable(stdout)
}

/** @param retries how often a write that finds no room is tried again; each time takes 100 ms, of the thread if it is prompt */
function openStdout(options: Parameters<typeof pino.destination>[0] & object, retries: number) {
  // A pipe that Node has opened as a stream no longer blocks who writes to it, from any thread.
  if (isMainThread) void process.stdout
  let retriesLeft = retries
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
