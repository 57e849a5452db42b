import { expect, test } from 'vitest'
import { defineValidator } from '#kernel'
import { parserProblems } from './check-names.ts'
import { parsersConfig } from './config.ts'
import { toolFormats } from './formats/format-table.ts'
import { reasoningFormats } from './reasoning/reasoning-table.ts'

const problemsOf = (section: object) => [...parserProblems(defineValidator(parsersConfig).parse(section))]

test('an unknown parser is refused with the names that there are', () => {
  const [tool, reasoning] = problemsOf({ toolParser: 'qwenn', reasoningParser: 'deep' })
  expect(tool.path).toEqual(['toolParser'])
  expect(tool.text).toMatch(/^names no tool parser, got "qwenn"; there are /)
  for (const { name } of toolFormats) expect(tool.text).toContain(name)
  expect(reasoning.path).toEqual(['reasoningParser'])
  for (const { name } of reasoningFormats) expect(reasoning.text).toContain(name)
})

test.each(['toolParser', 'reasoningParser'])('every name of %s that is listed is taken', (setting) => {
  const [{ text }] = problemsOf({ [setting]: 'nobodys' })
  const names = /there are (.*)$/.exec(text)?.[1].split(', ') ?? []
  expect(names.length).toBeGreaterThan(10)
  for (const known of names) expect(problemsOf({ [setting]: known })).toEqual([])
})
