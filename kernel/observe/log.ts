/** Loggers: JSON lines on standard output, formatted lines at a terminal. The only user of pino. */
import { isatty } from 'node:tty'
import { isMainThread } from 'node:worker_threads'
import { type Logger as PinoLogger, type LoggerOptions as PinoOptions, pino } from 'pino'
import type { Logger, LogLevel } from '../contracts/log.ts'
import { isObject } from '../wire/is-object.ts'

export interface LoggerOptions {
  /** Lowest level that is written. */
  readonly level: LogLevel
  /** 0 for control, 1-based for data threads; a field of each line. */
  readonly thread: number
  /** Default: standard output. */
  readonly destination?: LineSink
}

export interface AccessLoggerOptions extends LoggerOptions {
  /** Called for each line dropped because the reader does not read. */
  readonly onDrop?: () => void
}

/** Field names of credentials, which are logged as `[redacted]`. */
const SECRET_FIELDS = ['authorization', 'api_key', 'apiKey', 'x-api-key', 'key']

const REDACTED = {
  paths: SECRET_FIELDS.flatMap((name) => [`["${name}"]`, `*["${name}"]`]),
  censor: '[redacted]',
}

/**
 * The logger of one thread. Each line has `level` (a word), `time` (ISO 8601, UTC), `thread`, the fields and `msg`;
 * an error goes in the field `err`. Secrets at the top of the fields or one level below are replaced.
 * A line is written before the call returns, so that none is lost when the thread dies.
 */
export function createLogger(options: LoggerOptions): Logger {
  return kept(pino({ ...baseOptions(options), redact: REDACTED }, options.destination ?? promptStdout()))
}

/** Every logger of this thread and its children; few, since they live as long as the plugins. */
const loggers = new Set<PinoLogger>()

/** Sets the level of all loggers of this thread. */
export function setLogLevel(level: LogLevel): void {
  for (const logger of loggers) logger.level = level
}

/**
 * The access logger of one thread. It does not redact, since its fields are a fixed list without secrets and redaction would
 * quadruple the cost of a line. Lines are written in the background, so that a slow reader does not delay requests, and at
 * the latest when the thread ends.
 */
export function createAccessLogger(options: AccessLoggerOptions): Logger {
  return kept(pino(baseOptions(options), options.destination ?? bufferedStdout(options.onDrop ?? (() => {}))))
}

function kept(logger: PinoLogger): PinoLogger {
  loggers.add(logger)
  return logger
}

function baseOptions({ level, thread }: LoggerOptions): PinoOptions {
  return {
    level,
    base: { thread },
    onChild: kept,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  }
}

/** Writes whole lines, line feed included. */
interface LineSink {
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
function promptStdout(): LineSink {
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
function bufferedStdout(onDrop: () => void): LineSink {
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

const COLOR: Readonly<Record<string, string>> = {
  trace: '\u001b[90m',
  debug: '\u001b[90m',
  info: '\u001b[32m',
  warn: '\u001b[33m',
  error: '\u001b[31m',
}
const RESET = '\u001b[0m'
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression detects control characters
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/

/**
 * One line such as `12:03:04.567 INFO  [0] listening port=30000`.
 * Values with blanks or control characters are quoted, so that they cannot contain terminal sequences.
 *
 * @param json one line of the logger; any other text is returned unchanged
 */
export function toTerminalLine(json: string): string {
  const fields = parseObject(json)
  if (fields === null) return json
  const { level, time, thread, msg, err, ...rest } = fields
  const word = String(level)
  const clock = String(time).slice(11, 23)
  const parts = [
    `${clock} ${COLOR[word] ?? ''}${word.toUpperCase().padEnd(5)}${RESET} [${thread}] ${show(msg)}`,
  ]
  for (const [name, value] of Object.entries(rest)) parts.push(`${name}=${show(value, true)}`)
  return `${parts.join(' ')}${showError(err)}\n`
}

function show(value: unknown, quoteBlanks = false): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? ''
  const needsQuotes = CONTROL_CHARACTER.test(value) || (quoteBlanks && (value === '' || value.includes(' ')))
  return needsQuotes ? JSON.stringify(value).replace(/[\u007f-\u009f]/g, '?') : value
}

function showError(err: unknown): string {
  if (err === undefined) return ''
  if (typeof err !== 'object' || err === null || !('stack' in err)) return ` err=${show(err, true)}`
  return String(err.stack)
    .split('\n')
    .map((line) => `\n    ${show(line)}`)
    .join('')
}

function parseObject(json: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(json)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
