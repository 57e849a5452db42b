/** Loggers: JSON lines on standard output, formatted lines at a terminal. The only user of pino. */
import { type Logger as PinoLogger, type LoggerOptions as PinoOptions, pino } from 'pino'
import type { Logger, LogLevel } from '../contracts/log.ts'
import { bufferedStdout, type LineSink, promptStdout } from './log-output.ts'

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
