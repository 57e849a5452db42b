/** Standard output for log lines: synchronous for events, buffered for access lines. */
import { isatty } from 'node:tty'
import { isMainThread } from 'node:worker_threads'
import { pino } from 'pino'
import { toTerminalLine } from './log-format.ts'

/** Writes whole lines, line feed included. */
export interface LineSink {
  write(line: string): void
}

const STDOUT = 1
/** Writes to a pipe up to this size are atomic, so lines of several threads never mix. @source pipe(7), PIPE_BUF */
const WRITE_BYTES = 4_096
/** Lines beyond this are dropped while the reader does not read. */
const MAX_BUFFERED_BYTES = 8_388_608
/** Retries at the end of a thread while the reader does not read, 100 ms each. */
const MAX_EXIT_RETRIES = 10

/** Interval of retries of waiting lines, milliseconds. */
const RETRY_MS = 100

/** One for all loggers of a thread. */
let prompt: LineSink | null = null

/** Called for each dropped line of `promptStdout`; set by `bufferedStdout`. */
let onPromptDrop = () => {}

/**
 * Writes each line before `write` returns. While the reader does not read, lines are buffered up to a limit and then
 * dropped; the thread is not blocked.
 */
export function promptStdout(): LineSink {
  if (prompt !== null) return prompt
  const stdout = openStdout({ sync: true, maxLength: MAX_BUFFERED_BYTES }, 0)
  let isRetrying = false
  stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code !== 'EAGAIN' || isRetrying) return
    isRetrying = true
    // The next line would flush the waiting ones, but it may be far away.
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
 * Writes in the background; the rest is written when the thread exits.
 *
 * @param onDrop called for each line dropped because the reader does not read
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

/** @param retries retries of a write that would block; each takes 100 ms, during which a synchronous write blocks the thread */
function openStdout(options: Parameters<typeof pino.destination>[0] & object, retries: number) {
  // Opening the stream makes a pipe non-blocking, for every thread.
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
  // A full disk or a closed pipe loses log lines only.
  stdout.on('error', () => {})
  // pino flushes at exit on the main thread only; in a worker thread the event is the end of that thread.
  process.once('exit', () => {
    retriesLeft = MAX_EXIT_RETRIES
    try {
      stdout.flushSync()
    } catch {
      // The reader is gone, so the failure cannot be logged.
    }
  })
  return stdout
}

/** Formats lines at a terminal. Each thread writes to the descriptor itself, so no line waits for the main thread. */
function readable(stdout: LineSink): LineSink {
  if (!isatty(STDOUT)) return stdout
  return { write: (line) => stdout.write(toTerminalLine(line)) }
}
