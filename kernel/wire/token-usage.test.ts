import { expect, test } from 'vitest'
import { usageOfBody } from './token-usage.ts'

const usageIn = (text: string) => usageOfBody(Buffer.from(text))

test('the usage of a body is found also before other members, and in the end of a long body', () => {
  const end =
    '"usage" : {"prompt_tokens":7,"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":1}}, "x": [1, {"y": "}"}] } \n'
  const usage = { input: 7, output: 3, cached: 0, reasoning: 1 }
  expect(usageIn(`{"choices":[],${end}`)).toEqual(usage)
  expect(usageIn(`ntent":"cut"}],${end}`)).toEqual(usage)
})

test('members named usage inside of content do not count', () => {
  const call = '{"content":[{"type":"tool_use","input":{"usage":{"output_tokens":1}}}]'
  expect(usageIn(`${call}}`)).toBeNull()
  expect(usageIn(`{"usage":{"input_tokens":2,"output_tokens":5},${call.slice(1)}}`)).toMatchObject({
    output: 5,
  })
  expect(usageIn(String.raw`{"content":"\"usage\":{\"input_tokens\":1}"}`)).toBeNull()
})

test.each([
  '',
  '{',
  '{"usage":null}',
  '{"usage":{}}',
  '{"usage":{"prompt_tokens":"7"}}',
  '"usage"',
  '{"usage":{"prompt_tokens":1}',
])('no usage in %j', (text) => expect(usageIn(text)).toBeNull())

test('counts that are no whole positive numbers are 0', () => {
  expect(usageIn('{"usage":{"prompt_tokens":-7,"completion_tokens":2.5}}')).toEqual({
    input: 0,
    output: 0,
    cached: 0,
    reasoning: 0,
  })
})

test('a body of many members named usage takes linear time', () => {
  const members = '"usage":{},'.repeat(90_000)
  const before = process.cpuUsage()
  expect(usageIn(`{"x":{${members}"y":{}}}`)).toBeNull()
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1_000).toBeLessThan(1_000)
})

test('an object of numbers at the end reads as any other form does', () => {
  const forms = [
    '"usage":{"prompt_tokens":12,"total_tokens":32,"completion_tokens":20}',
    '"usage":{"prompt_tokens":12,"completion_tokens":20,"prompt_tokens":12}',
    '"usage": {"prompt_tokens":12,"completion_tokens":20}',
    '"usage":{"prompt_tokens":12,"completion_tokens":20,"prompt_tokens_details":null}',
    '"usage":{"prompt_tokens":12.0,"completion_tokens":20}',
  ]
  for (const form of forms)
    expect(usageIn(`{"id":"x",${form}}`), form).toEqual({ input: 12, output: 20, cached: 0, reasoning: 0 })
  expect(usageIn('{"x":{"usage":{"prompt_tokens":12,"completion_tokens":20}}}')).toBeNull()
  expect(usageIn('{"usage":{"prompt_tokens":12,"completion_tokens":20}')).toBeNull()
})
