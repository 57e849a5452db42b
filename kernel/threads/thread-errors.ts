/** Errors of the links between threads, and how any error crosses from one thread to another. */
import { defineErrors } from '../errors/define-errors.ts'
import { fromPlainError, GatewayError, toPlainError } from '../errors/gateway-error.ts'
import type { CommandFailure } from './messages.ts'

export const threadErrors = defineErrors('threads', {
  unknown_command: {
    kind: 'internal',
    source: 'gateway',
    text: (name: string) => `no plugin handles the command ${name}`,
  },
})

/** What crosses of an error: all of a GatewayError, only the message of others. */
export function toFailure(error: unknown): CommandFailure {
  if (error instanceof GatewayError) return { kind: 'gateway', error: toPlainError(error) }
  return { kind: 'internal', message: error instanceof Error ? error.message : String(error) }
}

/** The error as the caller of the command sees it. */
export function fromFailure(failure: CommandFailure): Error {
  return failure.kind === 'gateway' ? fromPlainError(failure.error) : new Error(failure.message)
}
