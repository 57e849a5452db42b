import { expect, test } from 'vitest'
import { defineValidator } from '#kernel'
import { tracingConfig } from './config.ts'

const check = (headers: unknown) => () => defineValidator(tracingConfig).parse({ headers })

test('invalid export headers are rejected by the configuration check', () => {
  expect(check({ authorization: 'Bearer abc', 'x-team': '' })).not.toThrow()
  expect(check({ 'x team': 'a' })).toThrow(/x team/)
  expect(check({ 'x-team': 'a\nb' })).toThrow(/headers\.x-team/)
})
