/** Every bundled error format, and one of a third-party plugin, against the contract. */
import { adminErrorFormat, apiErrorFormat, type ErrorFormat, Type } from '#kernel'
import { messagesErrorFormat } from '../../plugins/protocols/messages/error-format.ts'
import { errorFormatContract } from './error-format-contract.ts'

/** Plain text, its own status codes, and a stream that ends with two events. */
const thirdPartyFormat: ErrorFormat = {
  name: 'ThirdPartyError',
  schema: Type.String(),
  contentType: 'text/plain; charset=utf-8',
  status: ({ kind }) => (kind === 'unavailable' ? 429 : 400),
  headers: (_error, { requestId }) => ['x-trouble', requestId],
  body: ({ code }, { requestId }) => `${code} in ${requestId}`,
  lastEvents: ({ code }) => `event: broken\ndata: ${code}\n\nevent: end\ndata:\n\n`,
}

errorFormatContract('api', apiErrorFormat)
errorFormatContract('admin', adminErrorFormat)
errorFormatContract('messages', messagesErrorFormat)
errorFormatContract('third-party', thirdPartyFormat)
