import { expect, test } from 'vitest'
import { toQuestionAnswer } from './question-answers.ts'

const call = { approvalId: 'mcpq_1', label: 'ops', name: 'deploy', arguments: '{}' }
const schema = { type: 'object', properties: { n: { type: 'integer', maximum: 9 } } }
const ask = (params: Record<string, unknown>) => ({ key: 'k', params, requestState: 's', server: 'x' })

test('the response to the server has content only for an accepted form', () => {
  const form = ask({ message: 'How many?', requestedSchema: schema })
  const page = ask({ mode: 'url', message: 'Log in', url: 'https://login.example.com' })
  const accepted = { ...call, isApproved: true }
  expect(toQuestionAnswer({ ...accepted, reason: '{"n":3}' }, form).response).toEqual({
    action: 'accept',
    content: { n: 3 },
  })
  expect(toQuestionAnswer(accepted, form).response).toEqual({ action: 'accept', content: {} })
  expect(toQuestionAnswer({ ...accepted, reason: 'done' }, page).response).toEqual({ action: 'accept' })
  const denied = { ...call, isApproved: false, reason: '{"n":3}' }
  expect(toQuestionAnswer(denied, form)).toEqual({
    key: 'k',
    requestState: 's',
    response: { action: 'decline' },
  })
  expect(() => toQuestionAnswer({ ...accepted, reason: '{"n":10}' }, form)).toThrow(/'mcpq_1'.*'n'/)
})
