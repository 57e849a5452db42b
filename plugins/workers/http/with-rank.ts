/** Names the data-parallel rank in a request: one engine serves all ranks at one URL. @hot */

import type { UpstreamRequest } from '#kernel'
import { withMembers } from '#shared'

/** The same request where its body is no JSON object. */
export function withRank(request: UpstreamRequest, rank: number): UpstreamRequest {
  const { method, path, headers } = request
  if (request.body === null) return request
  const body = withMembers(request.body, new Map([['data_parallel_rank', String(rank)]]))
  return body === null ? request : { method, path, headers, body }
}
