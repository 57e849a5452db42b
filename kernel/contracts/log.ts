/** The logger of plugins: a fixed phrase and structured fields. Never log a secret. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Writes log lines: a fixed phrase and structured fields. Fields must not hold secrets. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  /** The same logger with fields added to each line. */
  child(fields: object): Logger
}
