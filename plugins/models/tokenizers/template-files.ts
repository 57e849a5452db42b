/** Finds the chat templates of a tokenizer. */
import { join } from 'node:path'
import { isObject } from '../../../kernel/wire/is-object.ts'
import {
  listFolder,
  parseJson,
  readJson,
  readText,
  readTextFile,
  SourceError,
  type SourceFiles,
} from './source-files.ts'

/** Templates for special uses, one file each, beside `chat_template.jinja`. */
const NAMED_FOLDER = 'additional_chat_templates'

/** Largest known templates have 40 kB, and there are three of them. */
const MAX_TEMPLATE_CHARACTERS = 262_144
const MAX_TEMPLATES = 32

/** Template text by name; empty when there is none. @param explicitPath wins over all others @throws SourceError */
export function readTemplates(...args: Parameters<typeof findTemplates>): Map<string, string> {
  const templates = findTemplates(...args)
  if (templates.size > MAX_TEMPLATES)
    throw new SourceError(`there are ${templates.size} chat templates, the limit is ${MAX_TEMPLATES}`)
  for (const [name, text] of templates) {
    if (text.length > MAX_TEMPLATE_CHARACTERS)
      throw new SourceError(
        `the chat template '${name}' has ${text.length} characters, the limit is ${MAX_TEMPLATE_CHARACTERS}`,
      )
  }
  return templates
}

function findTemplates(
  files: SourceFiles,
  config: Readonly<Record<string, unknown>>,
  explicitPath: string | undefined,
  roots: readonly string[] | null,
): Map<string, string> {
  if (explicitPath !== undefined) {
    const text = readTextFile(explicitPath, roots)
    return explicitPath.endsWith('.json') ? fromJson(parseJson(explicitPath, text)) : oneTemplate(text)
  }
  const inJson = readJson(files, 'chat_template.json')
  if ('chat_template' in inJson) return fromJson(inJson)
  const jinja = files.names.includes('chat_template.jinja')
    ? 'chat_template.jinja'
    : files.names.find((name) => name.endsWith('.jinja'))
  const text = jinja === undefined ? null : readText(files, jinja)
  if (text !== null) return new Map([...oneTemplate(text), ...namedFiles(files)])
  return 'chat_template' in config ? fromJson(config) : new Map()
}

function oneTemplate(text: string): Map<string, string> {
  return new Map([['default', text]])
}

/** A text, or a list of named texts, or an object of them under `chat_template`. */
function fromJson(value: unknown): Map<string, string> {
  const found = isObject(value) && 'chat_template' in value ? value.chat_template : value
  if (found === null || found === undefined) return new Map()
  if (typeof found === 'string') return oneTemplate(found)
  const entries: (readonly [unknown, unknown])[] = Array.isArray(found)
    ? found.filter(isObject).map(({ name, template }) => [name, template] as const)
    : Object.entries(found)
  const named = entries.filter((entry): entry is readonly [string, string] =>
    entry.every((part) => typeof part === 'string'),
  )
  if (named.length === 0) throw new SourceError('chat_template is neither a text nor a list of named texts')
  return new Map(named)
}

function namedFiles({ folder, names, roots }: SourceFiles): [string, string][] {
  if (!names.includes(NAMED_FOLDER)) return []
  return listFolder(join(folder, NAMED_FOLDER), roots)
    .filter((name) => name.endsWith('.jinja'))
    .map((name) => [name.slice(0, -'.jinja'.length), readTextFile(join(folder, NAMED_FOLDER, name), roots)])
}
