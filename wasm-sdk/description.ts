/** Reads what a module says about itself, and says what is wrong with it. */
import { ABI_VERSION, type ModuleDescription, type ModuleNeeds } from './abi.ts'
import { SETTING_TYPES, type Settings } from './settings.ts'

const MEMBERS = ['abi', 'needs', 'instance', 'on_failure', 'settings']
const FLAGS = ['credentials', 'client_ip', 'request_body', 'response_body']
const LISTS = ['headers', 'response_headers']

/**
 * @param bytes JSON in UTF-8
 * @throws Error naming the member that is wrong; unknown members are wrong too
 */
export function readDescription(bytes: Uint8Array): ModuleDescription {
  let found: unknown
  try {
    found = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new Error('the output of describe is not valid JSON')
  }
  const { abi, needs, instance, on_failure, settings } = object(found, 'the description', MEMBERS)
  if (typeof abi !== 'number' || !Number.isInteger(abi) || abi < 1) {
    throw new Error('abi of the description must be an integer >= 1')
  }
  if (abi > ABI_VERSION)
    throw new Error(`the module requires interface version ${abi}; the gateway supports 1 to ${ABI_VERSION}`)
  return {
    abi,
    ...(needs === undefined ? {} : { needs: readNeeds(needs) }),
    ...(instance === undefined
      ? {}
      : { instance: oneOf(instance, 'instance', ['fresh', 'reuse', 'shared'] as const) }),
    ...(on_failure === undefined
      ? {}
      : { on_failure: oneOf(on_failure, 'on_failure', ['open', 'closed'] as const) }),
    ...(settings === undefined ? {} : { settings: readSettings(settings) }),
  }
}

function readNeeds(value: unknown): ModuleNeeds {
  const needs = object(value, 'needs', [...FLAGS, ...LISTS])
  for (const name of FLAGS) {
    if (needs[name] !== undefined && typeof needs[name] !== 'boolean')
      throw new Error(`${name} must be a boolean`)
  }
  for (const name of LISTS) {
    const list = needs[name]
    const isNames = Array.isArray(list) && list.every((item) => typeof item === 'string')
    if (list !== undefined && typeof list !== 'boolean' && !isNames) {
      throw new Error(`${name} must be a boolean or a list of names`)
    }
  }
  return needs as ModuleNeeds
}

const SETTING_MEMBERS = ['type', 'required', 'values', 'minimum', 'maximum', 'default', 'description']

function readSettings(value: unknown): Settings {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('settings must be an object')
  for (const [name, given] of Object.entries(value)) {
    const what = `settings.${name}`
    const { type, required, values, minimum, maximum, ...texts } = object(given, what, SETTING_MEMBERS)
    if (type !== undefined) oneOf(type, `${what}.type`, SETTING_TYPES)
    if (required !== undefined && typeof required !== 'boolean')
      throw new Error(`${what}.required must be a boolean`)
    if (values !== undefined && !(Array.isArray(values) && values.every((one) => typeof one === 'string')))
      throw new Error(`${what}.values must be a list of strings`)
    for (const [member, limit] of Object.entries({ minimum, maximum }))
      if (limit !== undefined && typeof limit !== 'number')
        throw new Error(`${what}.${member} must be a number`)
    for (const [member, text] of Object.entries(texts))
      if (text !== undefined && typeof text !== 'string')
        throw new Error(`${what}.${member} must be a string`)
  }
  return value as Settings
}

function object(value: unknown, what: string, members: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${what} must be an object`)
  }
  const unknown = Object.keys(value).find((name) => !members.includes(name))
  if (unknown !== undefined) throw new Error(`${what} has an unknown member ${unknown}`)
  return value as Record<string, unknown>
}

function oneOf<T extends string>(value: unknown, name: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value)
  if (found === undefined) throw new Error(`${name} must be one of ${choices.join(', ')}`)
  return found
}
