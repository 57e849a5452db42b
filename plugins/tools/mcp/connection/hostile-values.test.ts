/** Invalid error responses of a tool server are read without an unexpected exception. */
import { SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client'
import { expect, test } from 'vitest'
import { toToolServerError } from './tool-server-error.ts'

/** `String()` throws for it. */
const UNPRINTABLE = { toString: 1, valueOf: 1 }
const failure = (body: unknown) => {
  const text = JSON.stringify(body)
  const about = { status: 400, text }
  return new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, `Error POSTing to endpoint: ${text}`, about)
}

test('an unprintable message is replaced by the status', () => {
  expect(toToolServerError(failure({ error: { message: UNPRINTABLE } }))).toMatchObject({
    type: 'http_error',
    code: 400,
    isSessionLost: false,
  })
})

test('the error in a response body reaches the model, and a lost session is recognised', () => {
  const error = { code: -32602, message: 'date must be ISO 8601' }
  expect(toToolServerError(failure({ error }))).toMatchObject({ type: 'mcp_protocol_error', ...error })
  const lost = { error: { code: -32000, message: 'Bad Request: No valid session ID provided' } }
  expect(toToolServerError(failure(lost))).toMatchObject({
    type: 'http_error',
    code: 400,
    isSessionLost: true,
  })
})
