/** Requests that need the store are rejected while it is down, before anything is generated. */
import { storageUnavailable } from '#shared'
import type { RunParts } from '../parts.ts'
import type { CreateRequest } from '../read/read-request.ts'
import type { RememberedTurn } from './load-past.ts'

/** @throws storage_unavailable (503) if the request stores a response or continues a stored one, and the store is down */
export function requireStore(
  { history }: Pick<RunParts, 'history'>,
  { store, background, conversationId, previousResponseId }: CreateRequest,
  remembered: RememberedTurn | null,
): void {
  const outage = history?.outage() ?? null
  if (outage === null) return
  const continues = previousResponseId !== null && previousResponseId !== remembered?.responseId
  if (store || background || conversationId !== null || continues)
    throw storageUnavailable(
      `${outage}; only requests with store set to false and their whole input are served`,
    )
}
