/** Errors of the thread links, and the conversion of any error to a message between threads. */
import { defineErrors } from '../errors/define-errors.ts'
import { fromPlainError, GatewayError, toPlainError } from '../errors/gateway-error.ts'
import { messageOf } from '../errors/message-of.ts'
import type { CommandFailure } from './messages.ts'

export const threadErrors = defineErrors('threads', {
  unknown_command: {
    kind: 'internal',
    source: 'gateway',
    text: (name: string) => `no plugin handles the command ${name}`,
  },
})

/** Keeps all fields of a GatewayError, and only the message of other errors. */
export function toFailure(error: unknown): CommandFailure {
  if (error instanceof GatewayError) return { kind: 'gateway', error: toPlainError(error) }
  return { kind: 'internal', message: messageOf(error) }
}

/** The error that the caller of the command receives. */
export function fromFailure(failure: CommandFailure): Error {
  return failure.kind === 'gateway' ? fromPlainError(failure.error) : new Error(failure.message)
}
