/** ABI.md says the same as abi.ts: no name is missing, and none is made up. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  ABI_VERSION,
  EXPORT_OF_ATTACH_POINT,
  HOST_FUNCTIONS,
  HOST_NAMESPACE,
  PROTECTED_HEADERS,
} from './abi.ts'

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')
const document = read('ABI.md')
const source = read('abi.ts')

/** Names in backquotes in the first column of a table under a heading. */
function firstColumn(heading: string): string[] {
  const section = document.split(/^## /m).find((part) => part.startsWith(heading)) ?? ''
  return section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => [...line.split('|')[1].matchAll(/`([^`]+)`/g)].map(([, name]) => name))
}

/** Members of an interface of abi.ts, with those of objects in it after a dot. */
function membersOf(name: string): string[] {
  const body = source.split(`export interface ${name} {`)[1].split(/^}/m)[0]
  const found: string[] = []
  let parent = ''
  for (const line of body.split('\n')) {
    const member = line.match(/^( +)readonly (\w+)\??:(.*)$/)
    if (member === null) continue
    const [, indent, text, type] = member
    if (indent.length === 2) parent = ''
    const isObject = type.trim() === '{'
    if (!isObject) found.push(parent === '' ? text : `${parent}.${text}`)
    if (isObject) parent = text
  }
  return found
}

test('the document is about this version and this namespace', () => {
  expect(document).toContain(`version ${ABI_VERSION}`)
  expect(document).toContain(`\`${HOST_NAMESPACE}\``)
})

test('every attach point and its export is there', () => {
  for (const [point, name] of Object.entries(EXPORT_OF_ATTACH_POINT)) {
    expect(document).toContain(`| \`${point}\` | \`${name}\` |`)
  }
})

test('host functions are those of abi.ts, with as many parameters', () => {
  expect(firstColumn('Host functions')).toEqual(Object.keys(HOST_FUNCTIONS))
  for (const [name, { parameters }] of Object.entries(HOST_FUNCTIONS)) {
    const row =
      document
        .split('## Host functions')[1]
        .split('\n')
        .find((line) => line.startsWith(`| \`${name}\``)) ?? ''
    // Remarks in brackets have commas of their own.
    const told = row
      .split('|')[2]
      .replaceAll(/\([^)]*\)/g, '')
      .trim()
    expect(told === '' ? 0 : told.split(',').length, name).toBe(parameters.length)
  }
})

test('members of the input are those of abi.ts', () => {
  expect(firstColumn('Input').sort()).toEqual(membersOf('GuestInput').sort())
})

test('members of the description are those of abi.ts', () => {
  const needs = membersOf('ModuleNeeds').map((name) => `needs.${name}`)
  const own = membersOf('ModuleDescription').filter((name) => name !== 'needs')
  expect(
    firstColumn('Exports')
      .filter((name) => !name.startsWith('On'))
      .sort(),
  ).toEqual([...own, ...needs].sort())
})

test('members of the actions are all there', () => {
  const section = document.split(/^## /m).find((part) => part.startsWith('Output')) ?? ''
  const actions = [
    'RejectAction',
    'ModifyAction',
    'FetchAction',
    'StreamAction',
    'TextAction',
    'PickAction',
  ].flatMap(membersOf)
  const fetched = membersOf('FetchedHead').map((name) => `fetched.${name}`)
  for (const name of [...actions, ...fetched]) expect(section).toContain(`\`${name}\``)
})

describe('the guest libraries', () => {
  const languages = {
    AssemblyScript: read('assembly/extism.ts'),
    Rust: read('rust/src/host.rs'),
    C: read('c/weir.h'),
  }

  test.each(Object.entries(languages))('declare every host function in %s', (_, library) => {
    for (const name of Object.keys(HOST_FUNCTIONS))
      expect(library).toMatch(new RegExp(`fn ${name}\\(|function ${name}\\(|WEIR_USER\\(${name}\\)`))
  })

  test('speak this version', () => {
    expect(read('assembly/abi.ts')).toContain(`ABI_VERSION: i32 = ${ABI_VERSION}`)
    expect(languages.C).toContain(`#define WEIR_ABI_VERSION ${ABI_VERSION}\n`)
    expect(read('rust/src/lib.rs')).toContain(`ABI_VERSION: u32 = ${ABI_VERSION};`)
  })
})

test('headers that no module may change are all named', () => {
  for (const name of PROTECTED_HEADERS) expect(document).toContain(`\`${name}\``)
})
