/** Reads the two facts about an outgoing JSON-RPC message that the HTTP side needs, without parsing the arguments. */

const CANCELLED = '"method":"notifications/cancelled"'
const TAIL = /"jsonrpc":"2\.0","id":(\d{1,15})\}$/
const CANCELLED_ID = /"requestId":(\d{1,15})[,}]/

/** Id of a request as the protocol library writes it, id last; null for notifications, answers and anything else. */
export function requestIdOf(body: string): number | null {
  const tail = TAIL.exec(body.slice(-48))
  return tail === null ? null : Number(tail[1])
}

/** Id of the request that this message gives up; null for all other messages. */
export function cancelledIdOf(body: string): number | null {
  if (body.length > 4096 || !body.includes(CANCELLED)) return null
  const found = CANCELLED_ID.exec(body)
  return found === null ? null : Number(found[1])
}
