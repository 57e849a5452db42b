/**
 * Bundles the pages of the console: `node plugins/operations/console/build-app.ts` writes index.html, the code and the style
 * with the hash of their content in their names, and a compressed copy of each.
 */

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const root = new URL('../../../', import.meta.url)
const out = new URL('dist/plugins/operations/console/app/', root)

rmSync(out, { recursive: true, force: true })
const { metafile } = await build({
  absWorkingDir: fileURLToPath(root),
  entryPoints: ['plugins/operations/console/app/main.tsx'],
  outdir: fileURLToPath(out),
  entryNames: 'app-[hash]',
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  metafile: true,
})
const names = Object.keys(metafile.outputs).map((path) => basename(path))
const tags = names.map((name) =>
  name.endsWith('.css')
    ? `<link rel="stylesheet" href="/console/${name}">`
    : `<script type="module" src="/console/${name}"></script>`,
)
const index = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Weir console</title>
<link rel="icon" href="data:,">
${tags.join('\n')}
</head>
<body><div id="app"></div></body>
</html>
`
writeFileSync(new URL('index.html', out), index)
for (const name of [...names, 'index.html'])
  writeFileSync(new URL(`${name}.gz`, out), gzipSync(readFileSync(new URL(name, out)), { level: 9 }))
